package gcptest

import (
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	compute "google.golang.org/api/compute/v1"
	file "google.golang.org/api/file/v1"
	"google.golang.org/grpc"

	"cloud.google.com/go/container/apiv1/containerpb"

	"github.com/stokehq/stoke/providers/gke/catalogue"
)

// Options say what a Cloud is like. The zero value is a project without quota
// limits and with all the capacity in the world.
type Options struct {
	Project       string        // "stoke-test" if empty
	ProjectNumber int64         // 123456789012 if 0
	Polls         int           // looks at an operation until it is done; 1 if 0, done at the first look if negative
	Latency       time.Duration // added to every call
	// Now is the clock behind every timestamp; time.Now if nil.
	Now func() time.Time
	// Zones are the project's zones by name; see DefaultZones if nil.
	Zones map[string]Zone
	// Machines are further machine types, which the catalogue lacks.
	Machines []catalogue.Machine
	// Quota is the limit by region and metric, such as "us-central1" and
	// "NVIDIA_A100_GPUS"; what is missing has no limit.
	Quota map[string]map[string]float64
	// Services are the enabled APIs, such as "container.googleapis.com"; all if nil.
	Services []string
	// Networks are the networks of the project in addition to "default". Each has
	// one subnetwork in every region, like "default".
	Networks []string
	// Subnetworks are those with more to say than their name; Region and Network
	// may be names.
	Subnetworks []*compute.Subnetwork
	// Routers and Reservations are what projects have of them; Region, Network and
	// Zone may be names.
	Routers      []*compute.Router
	Reservations []*compute.Reservation
	// HostProjects are projects that share their networks with this one: each has
	// the same ones.
	HostProjects []string
	// PageSize is the greatest number of items in an answer of compute v1; 500 if 0.
	PageSize int
	// APIServer is the endpoint of every cluster that is created.
	APIServer APIServer
}

// APIServer is where the Kubernetes API of a cluster is.
type APIServer struct {
	Endpoint string // host or host:port, as in Cluster.endpoint; invented if empty
	CA       []byte // PEM; invented if empty
}

// Cloud is a running double. Its methods may be called from anywhere at any time.
type Cloud struct {
	containerpb.UnimplementedClusterManagerServer
	options   Options
	grpc      string
	rest      string
	mu        sync.Mutex // guards everything below; never held while a hook or a sleep runs
	calls     []*Call
	faults    []*Fault
	hooks     map[When][]Hook
	slow      []*slowness
	buried    []string // agents of calls
	serial    int      // calls so far
	begun     int      // operations so far
	capacity  map[Capacity]int
	quota     map[string]map[string]float64
	attempts  []Attempt
	enabled   map[string]bool
	clusters  map[string]*cluster
	running   []*operation
	requests  map[string]started // of compute v1, by request id
	passed    time.Duration      // by Pass
	disks     map[string]*compute.Disk
	tuned     map[string]time.Time // when the size or speed of a Hyperdisk changed last
	snapshots map[string]*compute.Snapshot
	firewalls map[string]*compute.Firewall
	files     map[string]*file.Instance
	instances map[string]*compute.Instance
}

// New starts a double that is stopped when the test ends.
func New(t testing.TB, o Options) *Cloud {
	t.Helper()
	c := newCloud(o)
	if _, err := documents(); err != nil {
		t.Fatal(err)
	}
	c.listen(t, func(l net.Listener) (serve func() error, stop func()) {
		c.grpc = l.Addr().String()
		server := grpc.NewServer(grpc.UnaryInterceptor(c.overGRPC))
		containerpb.RegisterClusterManagerServer(server, c)
		return func() error { return server.Serve(l) }, server.Stop
	})
	c.listen(t, func(l net.Listener) (serve func() error, stop func()) {
		c.rest = "http://" + l.Addr().String()
		server := &http.Server{Handler: c, ReadHeaderTimeout: time.Minute}
		return func() error { return server.Serve(l) }, func() { _ = server.Close() }
	})
	return c
}

func newCloud(o Options) *Cloud {
	if o.Project == "" {
		o.Project = "stoke-test"
	}
	if o.ProjectNumber == 0 {
		o.ProjectNumber = 123456789012
	}
	switch {
	case o.Polls == 0:
		o.Polls = 1
	case o.Polls < 0:
		o.Polls = 0
	}
	if o.PageSize == 0 {
		o.PageSize = 500
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Zones == nil {
		o.Zones = DefaultZones()
	}
	c := &Cloud{
		options:   o,
		hooks:     make(map[When][]Hook),
		capacity:  make(map[Capacity]int),
		quota:     make(map[string]map[string]float64),
		clusters:  make(map[string]*cluster),
		requests:  make(map[string]started),
		disks:     make(map[string]*compute.Disk),
		tuned:     make(map[string]time.Time),
		snapshots: make(map[string]*compute.Snapshot),
		firewalls: make(map[string]*compute.Firewall),
		files:     make(map[string]*file.Instance),
		instances: make(map[string]*compute.Instance),
	}
	for region, limits := range o.Quota {
		for metric, limit := range limits {
			c.setQuota(region, metric, limit)
		}
	}
	if o.Services != nil {
		c.enabled = make(map[string]bool)
		for _, name := range o.Services {
			c.enabled[name] = true
		}
	}
	return c
}

// listen runs a server on a free port of the loopback interface.
func (c *Cloud) listen(t testing.TB, start func(net.Listener) (serve func() error, stop func())) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("listen for the double of Google Cloud: %v", err)
	}
	serve, stop := start(l)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = serve() // ends with an error when it is stopped
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
}

// Container is the address, host:port, of container v1 over gRPC.
func (c *Cloud) Container() string { return c.grpc }

// REST is the base of all URLs, without a slash at the end; the package's
// comment says what follows for each service.
func (c *Cloud) REST() string { return c.rest }

// Project is the one project there is.
func (c *Cloud) Project() string { return c.options.Project }
