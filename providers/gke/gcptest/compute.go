package gcptest

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	compute "google.golang.org/api/compute/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stokehq/stoke/runtime/pattern"
)

func computeInvalid(format string, args ...any) error {
	return &restError{http.StatusBadRequest, "invalid", fmt.Sprintf(format, args...)}
}

func computeNotFound(path string) error {
	return &restError{http.StatusNotFound, "notFound", fmt.Sprintf("The resource '%s' was not found", path)}
}

func computeExists(path string) error {
	return &restError{http.StatusConflict, "alreadyExists", fmt.Sprintf("The resource '%s' already exists", path)}
}

// busy rejects a call on an object with a running operation. The object is not
// ready: a network that others refer to during its creation
// (kubernetes/kubernetes#57413), a subnetwork during a change
// (isSubnetworkUnreadyError of terraform-provider-google), an address during its
// deletion (opstrace/opstrace#976).
func (c *Cloud) busy(path string) error {
	var err error
	for _, o := range c.runningOn("compute", path) {
		err = notReady(path)
		c.look(o)
	}
	return err
}

func notReady(path string) error {
	return &restError{http.StatusBadRequest, "resourceNotReady", fmt.Sprintf("The resource '%s' is not ready", path)}
}

// scope is the collection above a path's objects: "projects/p/zones/z",
// "projects/p/regions/r" or "projects/p/global". What is not there is refused.
func (c *Cloud) scope(r *request) (string, error) {
	p := r.path["project"]
	if slices.Contains(c.options.HostProjects, p) && strings.Contains(r.route.ID, "networks.") {
		return "projects/" + p, nil
	}
	if p != c.options.Project && p != c.projectNumber() {
		return "", &restError{http.StatusForbidden, "forbidden", fmt.Sprintf("Required 'compute.projects.get' permission for 'projects/%s'", p)}
	}
	scope := "projects/" + c.options.Project
	switch {
	case r.path["zone"] != "":
		scope += "/zones/" + r.path["zone"]
		if _, ok := c.options.Zones[r.path["zone"]]; !ok {
			return "", computeNotFound(scope)
		}
	case r.path["region"] != "":
		scope += "/regions/" + r.path["region"]
		if len(c.zonesOf(r.path["region"])) == 0 || isZone(r.path["region"]) {
			return "", computeNotFound(scope)
		}
	default:
		scope += "/global"
	}
	return scope, nil
}

// computeOperation is an operation in the words of compute v1.
func (c *Cloud) computeOperation(o *operation) *compute.Operation {
	out := &compute.Operation{
		Kind: "compute#operation", Id: o.id, Name: o.name, OperationType: o.kind,
		SelfLink: computeURL + o.parent + "/operations/" + o.name, TargetLink: computeURL + o.target, TargetId: number(o.target),
		User:       "stoke@" + c.options.Project + ".iam.gserviceaccount.com",
		InsertTime: c.stamp(o.start), Status: "PENDING", ClientOperationId: o.call.Query.Get("requestId"),
	}
	switch parts := strings.Split(o.parent, "/"); parts[2] {
	case "zones":
		out.Zone = computeURL + o.parent
	case "regions":
		out.Region = computeURL + o.parent
	}
	if o.looks > 0 {
		out.Status, out.StartTime = "RUNNING", out.InsertTime
		out.Progress = int64(100 * min(o.looks, 99) / (max(o.need, 99) + 1))
	}
	if !o.done() {
		return out
	}
	out.Status, out.Progress, out.StartTime, out.EndTime = "DONE", 100, out.InsertTime, c.stamp(o.end)
	if s := status.Convert(o.err); s.Code() != codes.OK {
		// The error stands in a field; that there is an HTTP status beside it is
		// nothing to build on.
		out.Error = &compute.OperationError{Errors: []*compute.OperationErrorErrors{{Code: computeCode(s.Code()), Message: s.Message()}}}
	}
	return out
}

func computeCode(of codes.Code) string {
	switch of {
	case codes.ResourceExhausted:
		return "ZONE_RESOURCE_POOL_EXHAUSTED"
	case codes.PermissionDenied:
		return "QUOTA_EXCEEDED"
	case codes.FailedPrecondition:
		return "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE"
	}
	return "INTERNAL_ERROR"
}

func (c *Cloud) getComputeOperation(r *request) (any, error) {
	scope, err := c.scope(r)
	if err != nil {
		return nil, err
	}
	o := c.findOperation("compute", scope, r.path["operation"])
	if o == nil {
		return nil, computeNotFound(scope + "/operations/" + r.path["operation"])
	}
	r.Operation = o.name
	c.look(o)
	return c.computeOperation(o), nil
}

func (c *Cloud) listComputeOperations(r *request) (any, error) {
	scope, err := c.scope(r)
	if err != nil {
		return nil, err
	}
	out := &compute.OperationList{Kind: "compute#operationList"}
	for _, o := range c.running {
		if o.service == "compute" && o.parent == scope {
			c.look(o)
			out.Items = append(out.Items, c.computeOperation(o))
		}
	}
	return list(r, "compute#operationList", out.Items, func(o *compute.Operation) map[string]string {
		return map[string]string{"name": o.Name, "targetLink": o.TargetLink, "status": o.Status, "operationType": o.OperationType}
	})
}

// listing is the form of every list of compute v1.
type listing[T any] struct {
	Kind  string `json:"kind"`
	ID    string `json:"id"`
	Items []T    `json:"items,omitempty"`
	Next  string `json:"nextPageToken,omitempty"`
}

// list answers a page of the items that a call's filter lets through, in the
// order given. A page's token is the number of items before it.
func list[T any](r *request, kind string, items []T, fields func(T) map[string]string) (any, error) {
	keep, err := filter(r.Query.Get("filter"))
	if err != nil {
		return nil, err
	}
	out := listing[T]{Kind: kind, ID: strings.TrimPrefix(r.Path, "/compute/v1/")}
	for _, item := range items {
		if keep(fields(item)) {
			out.Items = append(out.Items, item)
		}
	}
	from, size := 0, r.page
	if token := r.Query.Get("pageToken"); token != "" {
		if from, err = strconv.Atoi(token); err != nil || from < 0 || from > len(out.Items) {
			return nil, computeInvalid("Invalid value for field 'pageToken': '%s'.", token)
		}
	}
	if text := r.Query.Get("maxResults"); text != "" {
		most, err := strconv.Atoi(text)
		if err != nil || most < 0 || most > 500 {
			return nil, computeInvalid("Invalid value for field 'maxResults': '%s'. Must be between 0 and 500.", text)
		}
		size = min(size, most)
	}
	out.Items = out.Items[from:]
	if size > 0 && len(out.Items) > size {
		out.Items, out.Next = out.Items[:size], strconv.Itoa(from+size)
	}
	return out, nil
}

// term is one condition of a filter: name = "x", or name eq x with a regular
// expression; conditions may be in brackets and follow one another.
var term = pattern.New(`^\s*\(?\s*([\w.]+)\s*(=|!=|:|eq|ne)\s*("[^"]*"|[^\s()]+)\s*\)?\s*(AND\s+)?`)

// filter tells which items a filter expression lets through. Of the grammar it
// knows the conjunctions; the rest is refused.
func filter(text string) (func(fields map[string]string) bool, error) {
	type condition struct{ field, operator, value string }
	var all []condition
	for rest := text; strings.TrimSpace(rest) != ""; {
		found := term.FindStringSubmatch(rest)
		if found == nil {
			return nil, computeInvalid("Invalid value for field 'filter': '%s'. Invalid list filter expression.", text)
		}
		all = append(all, condition{found[1], found[2], strings.Trim(found[3], `"`)})
		rest = rest[len(found[0]):]
	}
	return func(fields map[string]string) bool {
		return !slices.ContainsFunc(all, func(one condition) bool {
			value, known := fields[one.field]
			equal := value == one.value
			switch one.operator {
			case "eq", "ne":
				matched, err := regexp.MatchString("^(?:"+one.value+")$", value)
				equal = err == nil && matched
			case ":":
				equal = known && (one.value == "*" || strings.Contains(value, strings.Trim(one.value, "*")))
			}
			return equal == (one.operator == "!=" || one.operator == "ne")
		})
	}, nil
}

// labelFields are labels as filters name them.
func labelFields(fields map[string]string, labels map[string]string) map[string]string {
	for name, value := range labels {
		fields["labels."+name] = value
	}
	return fields
}

// last is the last part of a path or URL.
func last(path string) string { return path[strings.LastIndex(path, "/")+1:] }
