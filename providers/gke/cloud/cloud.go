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
	transport "google.golang.org/api/transport/http"
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
	Agent                 string // User-Agent of all calls, such as stoke/1.0
	// Container, Compute, File and Usage are endpoints: "" for the endpoint of
	// Google, else a URL. A URL with http:// has to lead to this machine; no token
	// is sent there. If the first three are http:// URLs and Usage is "", stoke
	// does not check services.
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
	// limits bound single calls, by service.
	limits    map[string]*limits
	interrupt *interrupt
}

// Pace is how long is waited between two looks at the same thing.
type Pace struct {
	First, Most time.Duration
	Call        time.Duration // limit of a single call; 0: the usual ones
}

// pace is Google's own advice for polling: often at first, then seldom.
var pace = Pace{First: 200 * time.Millisecond, Most: 10 * time.Second}

// isPlainHTTP tells whether an endpoint is without TLS, which only this machine may be.
func isPlainHTTP(endpoint string) (bool, error) {
	if endpoint == "" {
		return false, nil
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return false, fmt.Errorf("the endpoint %q is not a URL: give one such as https://container.googleapis.com", endpoint)
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
	i := new(interrupt)
	c := &Cloud{Settings: s, pace: pace, interrupt: i, limits: map[string]*limits{
		ContainerService: newLimits("Kubernetes Engine API", "container_endpoint", i),
		ComputeService:   newLimits("Compute Engine API", "compute_endpoint", i),
		FileService:      newLimits("Filestore API", "file_endpoint", i),
		UsageService:     newLimits("Service Usage API", "service_usage_endpoint", i),
	}}
	bare := true
	for _, endpoint := range []string{s.Container, s.Compute, s.File} {
		p, err := isPlainHTTP(endpoint)
		if err != nil {
			return nil, err
		}
		bare = bare && p
	}
	own, err := isPlainHTTP(s.Usage)
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
	if err := c.dial(tokens, usage); err != nil {
		return nil, err
	}
	return c, nil
}

// dial makes the clients.
func (c *Cloud) dial(tokens oauth2.TokenSource, usage bool) error {
	ctx := context.Background() // the clients outlive the call
	o, err := c.options(ContainerService, strings.TrimSuffix(c.Container, "/"), tokens)
	if c.Transport == REST && err == nil {
		c.Clusters, err = container.NewClusterManagerRESTClient(ctx, o...)
	} else if err == nil {
		c.Clusters, err = c.clusters(tokens)
	}
	if err != nil {
		return fmt.Errorf("make the client of the container API: %w", err)
	}
	if o, err = c.options(ComputeService, c.Settings.Compute, tokens); err == nil {
		c.Compute, err = compute.NewService(ctx, o...)
	}
	if err != nil {
		return fmt.Errorf("make the client of the compute API: %w", err)
	}
	if o, err = c.options(FileService, c.Settings.File, tokens); err == nil {
		c.File, err = file.NewService(ctx, o...)
	}
	if err != nil {
		return fmt.Errorf("make the client of the Filestore API: %w", err)
	}
	if !usage {
		return nil
	}
	if o, err = c.options(UsageService, c.Settings.Usage, tokens); err == nil {
		c.Usage, err = serviceusage.NewService(ctx, o...)
	}
	if err != nil {
		return fmt.Errorf("make the client of the Service Usage API: %w", err)
	}
	return nil
}

// options are those of a client over HTTP.
func (c *Cloud) options(service, endpoint string, tokens oauth2.TokenSource) ([]option.ClientOption, error) {
	var o []option.ClientOption
	if endpoint != "" {
		o = append(o, option.WithEndpoint(endpoint))
	}
	carrier := c.limits[service].transport(c.Agent)
	if p, _ := isPlainHTTP(endpoint); p {
		return append(o, option.WithHTTPClient(&http.Client{Transport: carrier})), nil
	}
	carrier, err := transport.NewTransport(context.Background(), carrier, c.credentialOptions(tokens)...)
	return append(o, option.WithHTTPClient(&http.Client{Transport: carrier})), err
}

// credentialOptions are the tokens of calls, and the project that they are counted in.
func (s Settings) credentialOptions(tokens oauth2.TokenSource) []option.ClientOption {
	o := []option.ClientOption{option.WithTokenSource(tokens)}
	if s.QuotaProject != "" {
		o = append(o, option.WithQuotaProject(s.QuotaProject))
	}
	return o
}

// clusters is the client of the container API over gRPC.
func (c *Cloud) clusters(tokens oauth2.TokenSource) (*container.ClusterManagerClient, error) {
	o := []option.ClientOption{option.WithUserAgent(c.Agent),
		option.WithGRPCDialOption(grpc.WithChainUnaryInterceptor(c.limits[ContainerService].unary))}
	p, _ := isPlainHTTP(c.Container)
	if c.Container != "" {
		u, err := url.Parse(c.Container)
		if err != nil {
			return nil, err
		}
		o = append(o, option.WithEndpoint(u.Host))
	}
	if p {
		o = append(o, option.WithoutAuthentication(), option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
	} else {
		o = append(o, c.credentialOptions(tokens)...)
	}
	return container.NewClusterManagerClient(context.Background(), o...)
}

// ForProject is the same services for another project; "" is its own.
func (c *Cloud) ForProject(project string) *Cloud {
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
	for _, l := range c.limits {
		l.shorten(p.Call)
	}
	return &other
}

// Close ends the connections.
func (c *Cloud) Close() error {
	if c == nil || c.Clusters == nil {
		return nil
	}
	return c.Clusters.Close()
}
