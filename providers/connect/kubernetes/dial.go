package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/ssh"
)

const (
	// dialTime is how long the first answer may take once there is a credential.
	dialTime = 9 * time.Second
	// patience is for how long an API server that has answered is tried again.
	patience = 2 * time.Minute
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// Client talks to one cluster.
type Client struct {
	// ID is the UID of the namespace kube-system; "" where it may not be read.
	ID string
	// Endpoint is the API server's URL.
	Endpoint string
	// Name is what messages call the cluster: its context in the kubeconfig, or
	// the endpoint.
	Name string

	Dynamic dynamic.Interface

	rest      *rest.RESTClient
	known     kindCache
	config    *rest.Config
	http      *http.Client
	authority []byte   // in PEM; nil for the system's
	ends      []func() // what Close ends, in this order
	endpoint  *endpoint
	operator  *operator // logs in over SSH; nil: the endpoint has a credential
}

// way is how machines are reached that API servers lie behind.
type way struct {
	settings connect.SSHSettings
	machines *ssh.Pool
	agent    string // the User-Agent; "" is stoke's without a version
	warned   func(context.Context, string)
}

// OtherClusterError says that the connection leads to another cluster than it
// says.
type OtherClusterError struct{ Name, Want, Have string }

func (e *OtherClusterError) Error() string {
	return fmt.Sprintf("%s is the cluster %s, not %s", e.Name, e.Have, e.Want)
}

// errUnreadable: the identity of the cluster cannot be read.
var errUnreadable = errors.New("the namespace kube-system, whose UID identifies a cluster, may not be read")

// errAuthority: the configured CA is not a certificate.
var errAuthority = errors.New("its certificate authority (certificate-authority-data of a kubeconfig, or ca) has no certificate in PEM")

// UnboundError says that whoever logs in over SSH has no rights in the cluster.
type UnboundError struct {
	Name string // the cluster's
	Err  error  // what the API server said
}

func (e *UnboundError) Error() string {
	return fmt.Sprintf("%s: the group %s has no rights: %v", e.Name, Operators, e.Err)
}
func (e *UnboundError) Unwrap() error { return e.Err }

// errSlow ends a dial.
var errSlow = fmt.Errorf("no answer within %v", dialTime)

// Dial connects, and checks that it is the cluster that c.ID names, where it
// names one. It takes 10 s at most, and longer only for a credential plugin.
// waiting, where it is not nil, gets the error of each request that is repeated
// because the API server did not answer, and a *SlowPluginError. Where the way
// leads over SSH, the machines themselves and the environment say how to log in;
// a Pool can be told.
func Dial(ctx context.Context, c connect.Connection, waiting func(context.Context, error)) (*Client, error) {
	settings, diags := connect.ReadSSH(ctx, types.ObjectNull(nil))
	if diags.HasError() {
		return nil, &NoCredentialError{"the environment", errors.New(diags[0].Detail())}
	}
	w := way{settings: settings, machines: machines(settings)}
	client, err := dial(ctx, c, w, waiting)
	if err != nil {
		w.machines.Close()
		return nil, err
	}
	client.ends = append(client.ends, w.machines.Close)
	return client, nil
}

// dial is Dial on a way.
func dial(ctx context.Context, c connect.Connection, w way, waiting func(context.Context, error)) (*Client, error) {
	e, err := resolve(c, w)
	if err != nil {
		return nil, err
	}
	e.config.UserAgent = cmp.Or(w.agent, "stoke")
	client, retry, err := e.client(waiting)
	if err != nil {
		return nil, err
	}
	if e.plugin != nil {
		e.plugin.waiting = waiting
		if _, err := e.plugin.get(ctx); err != nil {
			client.Close()
			return nil, &DialError{Name: client.Name, Endpoint: client.Endpoint, Err: err, credential: e.credential}
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, dialTime, errSlow)
	defer cancel()
	if o, ok := retry.next.(*operator); ok {
		pair, err := o.login(ctx)
		if err == nil {
			err = o.take(pair)
		}
		if err != nil {
			client.Close()
			return nil, err
		}
	}
	system, err := client.Dynamic.Resource(namespaces).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	switch {
	case err == nil:
		client.ID = string(system.GetUID())
	case apierrors.IsForbidden(err) && e.tunnel != nil:
		client.Close()
		return nil, &UnboundError{Name: client.Name, Err: err}
	case apierrors.IsForbidden(err):
		if c.ID != "" {
			client.Close()
			return nil, fmt.Errorf("%s: %w: %w", client.Name, errUnreadable, err)
		}
	default:
		client.Close()
		if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil && !apierrors.IsUnauthorized(err) {
			err = fmt.Errorf("%w (%w)", cause, err)
		}
		return nil, &DialError{Name: client.Name, Endpoint: client.Endpoint, Err: err, credential: e.credential}
	}
	if c.ID != "" && client.ID != c.ID {
		client.Close()
		return nil, &OtherClusterError{Name: client.Name, Want: c.ID, Have: client.ID}
	}
	retry.patience.Store(int64(patience))
	return client, nil
}

// warnings passes the warnings of an API server on, such as those about a version
// of a kind that is deprecated.
type warnings func(context.Context, string)

// HandleWarningHeaderWithContext passes a Warning header of Kubernetes on, whose code
// is always 299.
func (w warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if w != nil && code == 299 && text != "" {
		w(ctx, text)
	}
}

// client makes what talks to the endpoint; nothing is sent yet.
func (e *endpoint) client(waiting func(context.Context, error)) (*Client, *retrying, error) {
	base, end, err := e.roundTripper()
	if err != nil {
		return nil, nil, err
	}
	retry := &retrying{next: base, waiting: waiting}
	h := &http.Client{Transport: retry}
	config := &rest.Config{
		Host: e.config.Host, APIPath: e.config.APIPath, UserAgent: e.config.UserAgent,
		WarningHandlerWithContext: warnings(e.warned),
		QPS:                       -1, // how much it takes at a time says the server: by 429 and Retry-After
	}
	c := &Client{
		Endpoint: e.config.Host, Name: e.name, config: config, http: h, authority: authority(e.config), ends: []func(){end}, endpoint: e,
	}
	c.operator, _ = base.(*operator)
	if c.Dynamic, err = dynamic.NewForConfigAndClient(config, h); err != nil {
		return nil, nil, fmt.Errorf("API server %s: %w", e.config.Host, err)
	}
	if c.rest, err = unversioned(config, h); err != nil {
		return nil, nil, fmt.Errorf("API server %s: %w", e.config.Host, err)
	}
	return c, retry, nil
}

// Close ends idle connections; the client must not be used any more.
func (c *Client) Close() {
	for _, end := range c.ends {
		end()
	}
}
