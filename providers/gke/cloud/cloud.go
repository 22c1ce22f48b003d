package cloud

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	container "cloud.google.com/go/container/apiv1"
	"golang.org/x/oauth2"
	compute "google.golang.org/api/compute/v1"
	file "google.golang.org/api/file/v1"
	"google.golang.org/api/option"
	serviceusage "google.golang.org/api/serviceusage/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// The transports of the container API.
const (
	GRPC = "grpc"
	REST = "rest"
)

// Settings is what a provider block says.
type Settings struct {
	Project, Region, Zone string
	CredentialsFile       string // "" for the application default credentials
	Impersonate           string // service account, "" for none
	QuotaProject          string // "" for the project of the credentials
	Labels                map[string]string
	Transport             string // GRPC or REST
	EnableServices        bool   // services that are missing are enabled
	// Container, Compute, File and Usage are endpoints: "" for Google's own, else a
	// URL. A URL with http:// has to lead to this machine; no token is sent there.
	// Where the first three do, and Usage is "", nobody is asked for services.
	Container, Compute, File, Usage string
}

// Location is where things are whose place is not given: the zone, else the region.
func (s Settings) Location() string {
	if s.Zone != "" {
		return s.Zone
	}
	return s.Region
}

// Cloud is the services of one project and one phase. It is safe for several
// goroutines.
type Cloud struct {
	Settings
	Clusters *container.ClusterManagerClient
	Compute  *compute.Service
	File     *file.Service
	Usage    *serviceusage.Service // nil where there is none to ask

	pace Pace
}

// Pace is how long is waited between two looks at the same thing.
type Pace struct{ First, Most time.Duration }

// pace is Google's own advice for polling: often at first, then seldom.
var pace = Pace{First: 200 * time.Millisecond, Most: 10 * time.Second}

// plain tells whether an endpoint is without TLS, which only this machine may be.
func plain(endpoint string) (bool, error) {
	if endpoint == "" {
		return false, nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false, fmt.Errorf("the endpoint %q is no URL: give one such as https://container.googleapis.com", endpoint)
	}
	if u.Scheme == "https" {
		return false, nil
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return false, fmt.Errorf("the endpoint %q is not encrypted and leads off this machine: give one with https://", endpoint)
	}
	return true, nil
}

// Open makes the clients, and asks for a token where one is needed. ctx is of the
// opening alone.
func Open(ctx context.Context, s Settings) (*Cloud, error) {
	c := &Cloud{Settings: s, pace: pace}
	bare := true
	for _, endpoint := range []string{s.Container, s.Compute, s.File} {
		p, err := plain(endpoint)
		if err != nil {
			return nil, err
		}
		bare = bare && p
	}
	own, err := plain(s.Usage)
	if err != nil {
		return nil, err
	}
	usage := s.Usage != "" || !bare
	bare = bare && (own || !usage)
	var tokens oauth2.TokenSource
	if !bare || s.CredentialsFile != "" || s.Impersonate != "" {
		var counted string
		if tokens, counted, err = s.tokens(ctx); err != nil {
			return nil, err
		}
		s.QuotaProject = cmp.Or(s.QuotaProject, counted)
		c.Settings = s
	}
	if c.Clusters, err = s.clusters(tokens); err != nil {
		return nil, fmt.Errorf("make the client of the container API: %w", err)
	}
	if c.Compute, err = compute.NewService(context.Background(), s.options(s.Compute, tokens)...); err != nil {
		return nil, fmt.Errorf("make the client of the compute API: %w", err)
	}
	if c.File, err = file.NewService(context.Background(), s.options(s.File, tokens)...); err != nil {
		return nil, fmt.Errorf("make the client of the Filestore API: %w", err)
	}
	if usage {
		if c.Usage, err = serviceusage.NewService(context.Background(), s.options(s.Usage, tokens)...); err != nil {
			return nil, fmt.Errorf("make the client of the Service Usage API: %w", err)
		}
	}
	return c, nil
}

// options are those of a client over HTTP.
func (s Settings) options(endpoint string, tokens oauth2.TokenSource) []option.ClientOption {
	var o []option.ClientOption
	if endpoint != "" {
		o = append(o, option.WithEndpoint(endpoint))
	}
	if p, _ := plain(endpoint); p {
		return append(o, option.WithHTTPClient(&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}))
	}
	o = append(o, option.WithTokenSource(tokens))
	if s.QuotaProject != "" {
		o = append(o, option.WithQuotaProject(s.QuotaProject))
	}
	return o
}

func (s Settings) clusters(tokens oauth2.TokenSource) (*container.ClusterManagerClient, error) {
	if s.Transport == REST {
		return container.NewClusterManagerRESTClient(context.Background(), s.options(strings.TrimSuffix(s.Container, "/"), tokens)...)
	}
	var o []option.ClientOption
	p, _ := plain(s.Container)
	if s.Container != "" {
		u, err := url.Parse(s.Container)
		if err != nil {
			return nil, err
		}
		o = append(o, option.WithEndpoint(u.Host))
	}
	if p {
		o = append(o, option.WithoutAuthentication(), option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
		return container.NewClusterManagerClient(context.Background(), o...)
	}
	o = append(o, option.WithTokenSource(tokens))
	if s.QuotaProject != "" {
		o = append(o, option.WithQuotaProject(s.QuotaProject))
	}
	return container.NewClusterManagerClient(context.Background(), o...)
}

// In is the same services for another project; "" is its own.
func (c *Cloud) In(project string) *Cloud {
	if project == "" || project == c.Project {
		return c
	}
	other := *c
	other.Project = project
	return &other
}

// Paced is the same services with another pace, for tests.
func (c *Cloud) Paced(p Pace) *Cloud {
	other := *c
	other.pace = p
	return &other
}

// Close ends the connections.
func (c *Cloud) Close() error {
	if c == nil || c.Clusters == nil {
		return nil
	}
	return c.Clusters.Close()
}
