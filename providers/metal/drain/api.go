package drain

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/metal/host"
)

const (
	askFor    = 30 * time.Second // an answer of the API server
	maxAnswer = 64 << 20         // bytes of one
)

// api is the API server as a node sees it, or whoever works on one.
type api struct {
	name    string // of the node
	client  *rest.RESTClient
	who     string    // its user and origin, for messages
	expires time.Time // of the client certificate; zero if there is none, or it is not known
	forget  func()
	// as returns the same API server with another identity; nil if only the
	// present identity can reach it.
	as func(*identity) (*api, error)
}

// newAPI prepares requests of an identity, from a machine, with a User-Agent. None is
// sent.
func newAPI(m host.Machine, id *identity, agent string) (*api, error) {
	known := runtime.NewScheme()
	if err := core.AddToScheme(known); err != nil {
		return nil, err
	}
	dialled := &http.Transport{
		// Address and connection belong to the machine: our proxy is not used.
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return host.Dial(ctx, m, network, address)
		},
		TLSClientConfig:     &tls.Config{RootCAs: id.roots, ServerName: id.server, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: askFor,
		IdleConnTimeout:     time.Minute,
		MaxIdleConns:        2,
	}
	if id.cert.Certificate != nil {
		dialled.TLSClientConfig.Certificates = []tls.Certificate{id.cert}
	}
	config := &rest.Config{
		Host: id.endpoint.String(), APIPath: "/api", QPS: -1, UserAgent: agent, WarningHandler: rest.NoWarnings{},
		ContentConfig: rest.ContentConfig{GroupVersion: &core.SchemeGroupVersion, NegotiatedSerializer: serializer.NewCodecFactory(known).WithoutConversion()},
	}
	var through http.RoundTripper = bounded{dialled}
	if id.token != "" {
		through = transport.NewBearerAuthRoundTripper(id.token, through)
	}
	client, err := rest.RESTClientForConfigAndClient(config, &http.Client{Transport: through})
	if err != nil {
		return nil, fmt.Errorf("API server %s: %w", id.endpoint, err)
	}
	a := &api{
		name: id.name, client: client, forget: dialled.CloseIdleConnections,
		who: fmt.Sprintf("API server %s, asked from %s as %s", id.endpoint.Host, m.Name(), id.describe()),
		as:  func(other *identity) (*api, error) { return newAPI(m, other, agent) },
	}
	if id.cert.Leaf != nil {
		a.expires = id.cert.Leaf.NotAfter
	}
	return a, nil
}

// requestsAs prepares requests of whoever a connection logs in as, about a node.
func requestsAs(c *kubernetes.Client, node string) (*api, error) {
	client, err := c.CoreREST()
	if err != nil {
		return nil, err
	}
	return &api{name: node, client: client, who: fmt.Sprintf("API server of %s", c.Name), forget: func() {}}, nil
}

// refuses is the error for a forbidden act on the node: "cordon", or one on a
// pod.
func (a *api) refuses(what string) string {
	switch {
	case a.as == nil && what == "cordon":
		return "the cluster does not let the connection's user cordon node " + a.name
	case a.as == nil:
		return "the cluster does not let the connection's user " + what
	case what == "cordon":
		what = "cordon itself"
	}
	return fmt.Sprintf("the cluster does not let node %s %s", a.name, what)
}

type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.RoundTripper.RoundTrip(req)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
	}
	return resp, err
}

// do sends a request once, or again where the server asks to come back.
func (a *api) do(ctx context.Context, req *rest.Request) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askFor, fmt.Errorf("no answer for %s", askFor))
	defer cancel()
	result := req.MaxRetries(0).Do(ctx)
	if err := result.Error(); err != nil { // unlike the error of Raw, it has the API server's text

		var said apierrors.APIStatus
		if !errors.As(err, &said) {
			a.forget() // the connection may be one into a machine that restarted
		}
		if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil {
			err = cause
		}
		if !a.expires.IsZero() && apierrors.IsUnauthorized(err) && time.Now().After(a.expires) {
			err = fmt.Errorf("%w: the client certificate ended at %s", err, a.expires.UTC().Format(time.RFC3339))
		}
		return nil, fmt.Errorf("%s: %w", a.who, err)
	}
	return result.Raw()
}

func (a *api) read(ctx context.Context, req *rest.Request, into any) error {
	out, err := a.do(ctx, req)
	if err == nil && json.Unmarshal(out, into) != nil {
		err = errors.New("the API server's answer is not an object of Kubernetes")
	}
	return err
}

// send sends a request with a body. try only asks whether it would be allowed.
func (a *api) send(ctx context.Context, req *rest.Request, body any, try bool) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	if try {
		req = req.Param("dryRun", metav1.DryRunAll)
	}
	_, err = a.do(ctx, req.Body(b))
	return err
}

// pages reads a list of things; each reads one page and says where the next begins.
func (a *api) pages(things string, each func(*rest.Request) (next string, err error)) error {
	for token := ""; ; {
		next, err := each(a.client.Get().Resource(things).Param("limit", "500").Param("continue", token))
		if err != nil || next == "" {
			return err
		}
		token = next
	}
}

func (a *api) node(ctx context.Context) (*core.Node, error) {
	var n core.Node
	return &n, a.read(ctx, a.client.Get().Resource("nodes").Name(a.name), &n)
}

// nodes lists all nodes, which newer API servers forbid.
func (a *api) nodes(ctx context.Context) (all []core.Node, err error) {
	err = a.pages("nodes", func(req *rest.Request) (string, error) {
		var list core.NodeList
		err := a.read(ctx, req, &list)
		all = append(all, list.Items...)
		return list.Continue, err
	})
	return all, err
}

// pods lists what is bound to the node.
func (a *api) pods(ctx context.Context) (all []core.Pod, err error) {
	err = a.pages("pods", func(req *rest.Request) (string, error) {
		var list core.PodList
		err := a.read(ctx, req.Param("fieldSelector", "spec.nodeName="+a.name), &list)
		all = append(all, list.Items...)
		return list.Continue, err
	})
	return all, err
}

// renewed is when the kubelet last renewed its lease; "" when it has none.
func (a *api) renewed(ctx context.Context) (string, error) {
	var lease coordination.Lease
	err := a.read(ctx, a.client.Get().AbsPath("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases", a.name), &lease)
	if err != nil || lease.Spec.RenewTime == nil {
		return "", err
	}
	return lease.Spec.RenewTime.UTC().Format(time.RFC3339Nano), nil
}

// patch changes the node, if it is still the version that was read.
func (a *api) patch(ctx context.Context, version string, annotations map[string]any, unschedulable, try bool) error {
	return a.send(ctx, a.client.Patch(types.MergePatchType).Resource("nodes").Name(a.name).Param("fieldManager", "stoke"), map[string]any{
		"metadata": map[string]any{"resourceVersion": version, "annotations": annotations},
		"spec":     map[string]any{"unschedulable": unschedulable},
	}, try)
}

// evict asks for a pod to leave. try only asks whether the eviction would be
// allowed.
func (a *api) evict(ctx context.Context, p Pod, try bool) error {
	body := policy.Eviction{
		TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"},
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		// Another pod may have the name by then.
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.uid}},
	}
	if try {
		body.DeleteOptions.DryRun = []string{metav1.DryRunAll}
	}
	req := a.client.Post().Namespace(p.Namespace).Resource("pods").Name(p.Name).SubResource("eviction")
	return a.send(ctx, req.SetHeader("Content-Type", "application/json"), body, try)
}

// remove deletes a pod without its kubelet's word that its containers have
// ended.
func (a *api) remove(ctx context.Context, p Pod) error {
	options := kubernetes.Unconfirmed(p.uid)
	options.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
	req := a.client.Delete().Namespace(p.Namespace).Resource("pods").Name(p.Name)
	return a.send(ctx, req.SetHeader("Content-Type", "application/json"), options, false)
}
