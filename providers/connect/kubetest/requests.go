package kubetest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/pattern"
)

// Request is a kind of requests, as the API server counts them.
type Request struct {
	// Verb is in capitals, such as GET, LIST, WATCH, POST, PUT, PATCH, APPLY,
	// DELETE.
	Verb string
	// Resource has its group and subresource where it has them, such as "pods",
	// "deployments.apps", or "deployments.apps/scale"; discovery and all else that is
	// no resource has a path, such as "/apis", "/openapi/v3", or "/readyz".
	Resource string
	// DryRun reports whether the request changed nothing.
	DryRun bool
}

// Requests counts requests.
type Requests map[Request]int

// Since is what came after an earlier count.
func (r Requests) Since(before Requests) Requests {
	after := Requests{}
	for request, count := range r {
		if more := count - before[request]; more != 0 {
			after[request] = more
		}
	}
	return after
}

// Of is how many there are of a verb for a resource, dry runs or not; "" means
// any.
func (r Requests) Of(verb, resource string) int {
	sum := 0
	for request, count := range r {
		if (verb == "" || verb == request.Verb) && (resource == "" || resource == request.Resource) {
			sum += count
		}
	}
	return sum
}

// Requests is what the API server has answered since it was started last, to
// everybody, by its own apiserver_request_total. Watches count when they end. A
// request is counted some moments after its answer, so that the count is taken
// when it no longer changes.
func (c *Cluster) Requests(t testing.TB) Requests {
	t.Helper()
	var last Requests
	c.Eventually(t, "the API server's count of requests does not change", func(ctx context.Context) (bool, error) {
		text, err := c.Client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
		if err != nil {
			return false, err
		}
		count, err := parseRequests(text)
		if err != nil {
			return false, err
		}
		same := maps.Equal(last, count)
		last = count
		return same, nil
	})
	return last
}

var (
	sampleLine  = pattern.New(`^apiserver_request_total\{(.*)\} ([0-9.e+]+)$`)
	sampleLabel = pattern.New(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)
)

// parseRequests reads the API server's metrics in Prometheus' text format. They
// do not count what asks for themselves.
func parseRequests(text []byte) (Requests, error) {
	found := Requests{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		sample := sampleLine.FindStringSubmatch(lines.Text())
		if sample == nil {
			continue
		}
		count, err := strconv.ParseFloat(sample[2], 64)
		if err != nil {
			return nil, fmt.Errorf("metrics: %q: %w", lines.Text(), err)
		}
		labels := map[string]string{}
		for _, label := range sampleLabel.FindAllStringSubmatch(sample[1], -1) {
			labels[label[1]] = label[2]
		}
		found[Request{Verb: labels["verb"], Resource: resourceOf(labels), DryRun: labels["dry_run"] != ""}] += int(count)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("metrics: no apiserver_request_total")
	}
	return found, nil
}

// resourceOf is a Request's Resource. The label of subresources has the path
// where there is no resource.
func resourceOf(labels map[string]string) string {
	name, part := labels["resource"], strings.TrimPrefix(labels["subresource"], "/")
	if name != "" && labels["group"] != "" {
		name += "." + labels["group"]
	}
	if name != "" && part == "" {
		return name
	}
	return name + "/" + part
}

// Asked is one request in the API server's audit log.
type Asked struct {
	// ID is the request's own.
	ID string
	// At is when it arrived.
	At time.Time
	// User is who asked, by the user name.
	User string
	// Agent is the User-Agent.
	Agent string
	// Verb is RBAC's: get, list, watch, create, update, patch, delete.
	Verb string
	// URI has the path and the query.
	URI string
	// Code is the status of HTTP.
	Code int
}

// String is the verb, the URI, and the status.
func (a Asked) String() string { return fmt.Sprintf("%s %s: %d", a.Verb, a.URI, a.Code) }

// Audit lists what a user has asked the API server for, in the order of the
// answers, since the cluster was started; "" means everybody. The log is written some
// moments after an answer, and read when it no longer grows by requests of
// that user.
func (c *Cluster) Audit(t testing.TB, user string) []Asked {
	t.Helper()
	last, found := -1, []Asked(nil)
	c.Eventually(t, "the audit log stands still", func(context.Context) (bool, error) {
		var err error
		if found, err = c.readAudit(user); err != nil {
			return false, err
		}
		same := len(found) == last
		last = len(found)
		return same, nil
	})
	return found
}

func (c *Cluster) readAudit(user string) ([]Asked, error) {
	text, err := os.ReadFile(c.file("audit.log"))
	if err != nil {
		return nil, err
	}
	name, err := json.Marshal(user)
	if err != nil {
		return nil, err
	}
	var found []Asked
	known := map[string]bool{}
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // it is being written
		}
		if user != "" && !bytes.Contains(line, name) {
			continue
		}
		var event struct {
			AuditID, RequestURI, Verb, UserAgent string
			User                                 struct{ Username string }
			ResponseStatus                       struct{ Code int }
			RequestReceivedTimestamp             time.Time
		}
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("audit log: %w", err)
		}
		if user != "" && event.User.Username != user || known[event.AuditID] {
			continue
		}
		known[event.AuditID] = true
		found = append(found, Asked{ID: event.AuditID, At: event.RequestReceivedTimestamp, User: event.User.Username, Agent: event.UserAgent,
			Verb: event.Verb, URI: event.RequestURI, Code: event.ResponseStatus.Code})
	}
	return found, nil
}
