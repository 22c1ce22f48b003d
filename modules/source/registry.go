package source

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	svchost "github.com/hashicorp/terraform-svchost"
)

const (
	modulesService = "modules.v1"
	maxDocument    = 16 << 20
)

// Registry asks module registries by Terraform's protocol.
type Registry struct {
	HTTP        *http.Client
	Credentials *Credentials
	// Services are hosts whose services are known without asking, by name of
	// the service, as the CLI configuration may say.
	Services map[svchost.Hostname]map[string]string
	// Wait is how long the first new try of a failed request waits; zero for
	// half a second.
	Wait time.Duration
	// Tries is how often a request is made that may help itself; zero for
	// three times.
	Tries int

	mu    sync.Mutex
	known map[svchost.Hostname]*discovered
}

// discovered is where a host's registry is, or why that is not known.
type discovered struct {
	at  *url.URL
	err error
}

// Versions lists the versions that the registry has of a package, as it
// writes them and in its order.
func (r *Registry) Versions(ctx context.Context, a Address) ([]string, error) {
	var answer struct {
		Modules []struct {
			Versions []struct {
				Version string `json:"version"`
			} `json:"versions"`
		} `json:"modules"`
	}
	text, _, err := r.ask(ctx, a, "versions")
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &answer); err != nil || len(answer.Modules) == 0 {
		return nil, fmt.Errorf("the registry %s answers with no list of versions", a.Host())
	}
	versions := make([]string, 0, len(answer.Modules[0].Versions))
	for _, v := range answer.Modules[0].Versions {
		versions = append(versions, v.Version)
	}
	return versions, nil
}

// Location asks where a version of a package is.
func (r *Registry) Location(ctx context.Context, a Address, version string) (Address, error) {
	text, res, err := r.ask(ctx, a, url.PathEscape(version)+"/download")
	if err != nil {
		return Address{}, err
	}
	location := res.Header.Get("X-Terraform-Get")
	if location == "" && res.StatusCode == http.StatusOK {
		var answer struct {
			Location string `json:"location"`
		}
		if json.Unmarshal(text, &answer) == nil {
			location = answer.Location
		}
	}
	if location == "" {
		return Address{}, fmt.Errorf("the registry %s does not say where version %s is", a.Host(), version)
	}
	return follow(res.Request.URL, location)
}

// errNotThere is the answer 404.
var errNotThere = errors.New("there is no such page")

func (r *Registry) ask(ctx context.Context, a Address, what string) ([]byte, *http.Response, error) {
	base, err := r.service(ctx, a.registry.Host)
	if err != nil {
		return nil, nil, err
	}
	u := base.JoinPath(a.registry.Namespace, a.registry.Name, a.registry.TargetSystem, what)
	text, res, err := r.get(ctx, a.registry.Host, u)
	if errors.Is(err, errNotThere) {
		return nil, nil, fmt.Errorf("the registry %s has no module %s", a.Host(), a.registry.ForRegistryProtocol())
	}
	return text, res, err
}

// service finds out where a host's module registry is, once.
func (r *Registry) service(ctx context.Context, host svchost.Hostname) (*url.URL, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.known[host]; known != nil {
		return known.at, known.err
	}
	at, err := r.discover(ctx, host)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if r.known == nil {
		r.known = map[svchost.Hostname]*discovered{}
	}
	r.known[host] = &discovered{at, err}
	return at, err
}

func (r *Registry) discover(ctx context.Context, host svchost.Hostname) (*url.URL, error) {
	from := &url.URL{Scheme: "https", Host: host.String(), Path: "/.well-known/terraform.json"}
	location, forced := r.Services[host][modulesService]
	if !forced {
		text, res, err := r.get(ctx, host, from)
		if err != nil {
			return nil, fmt.Errorf("the registry %s does not describe itself: %w", host.ForDisplay(), err)
		}
		var services map[string]any
		if err := json.Unmarshal(text, &services); err != nil {
			return nil, fmt.Errorf("%s is not a registry: its description is not a JSON object", host.ForDisplay())
		}
		location, _ = services[modulesService].(string)
		from = res.Request.URL
	}
	if location == "" {
		return nil, fmt.Errorf("%s has no registry of modules", host.ForDisplay())
	}
	u, err := from.Parse(location)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, fmt.Errorf("%s names %q as its registry of modules, which is not a web address", host.ForDisplay(), clipped(location))
	}
	if !forced && u.Scheme != "https" {
		return nil, fmt.Errorf("%s names %q as its registry of modules, which is not encrypted", host.ForDisplay(), clipped(location))
	}
	return u, nil
}

// get reads a document, trying again where another try may help.
func (r *Registry) get(ctx context.Context, host svchost.Hostname, u *url.URL) ([]byte, *http.Response, error) {
	token, err := r.Credentials.token(ctx, host)
	if err != nil {
		return nil, nil, err
	}
	var text []byte
	var res *http.Response
	err = persist(ctx, cmp.Or(r.Tries, usualTries), cmp.Or(r.Wait, usualWait), func() (err error) {
		text, res, err = r.requestOnce(ctx, host, u, token)
		return err
	})
	return text, res, err
}

func (r *Registry) requestOnce(ctx context.Context, host svchost.Hostname, u *url.URL, token string) (text []byte,
	res *http.Response, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Accept", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := r.HTTP
	if client == nil {
		client = http.DefaultClient
	}
	res, err = client.Do(req)
	if err != nil {
		return nil, nil, fmt.Errorf("%s cannot be reached: %w", u.Host, httpCause(ctx, err))
	}
	defer res.Body.Close()
	text, err = io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("the answer of %s ends too early: %w", u.Host, httpCause(ctx, err))
	case res.StatusCode == http.StatusNotFound:
		return nil, nil, errNotThere
	case res.StatusCode == http.StatusUnauthorized, res.StatusCode == http.StatusForbidden:
		return nil, nil, fmt.Errorf("%s answers %s; give its token in %s", u.Host, res.Status, tokenPlace(host))
	case res.StatusCode/100 != 2:
		return nil, nil, &statusError{code: res.StatusCode, text: u.Host + " answers " + res.Status}
	case len(text) > maxDocument:
		return nil, nil, fmt.Errorf("the answer of %s has more than %d MiB", u.Host, maxDocument>>20)
	}
	return text, res, nil
}

// tokenPlace says where a host's token is looked for.
func tokenPlace(host svchost.Hostname) string {
	const block = "a credentials block of the CLI configuration"
	if strings.Contains(host.String(), ":") {
		return block // no shell can name such a variable
	}
	return "the environment as TF_TOKEN_" + strings.NewReplacer(".", "_", "-", "__").Replace(host.String()) + ", or in " + block
}
