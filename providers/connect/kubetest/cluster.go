package kubetest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// patience is how long anything may take that a cluster does; generous, for
// machines that are busy.
const patience = 10 * time.Minute

// Options say what a cluster is made of.
type Options struct {
	// Nodes are there and ready when the cluster is.
	Nodes []Node
	// APIOnly leaves out the controllers, the scheduler, and the nodes: nobody else
	// asks the API server for anything, so that its requests can be counted.
	APIOnly bool
	// APIServer are further flags of kube-apiserver.
	APIServer []string
}

// Cluster is a control plane on loopback.
type Cluster struct {
	// Endpoint is the API server's URL, with its address and port.
	Endpoint string
	// UID is the namespace kube-system's, which identifies the cluster.
	UID string
	// Version is the API server's, such as "v1.37.2".
	Version string
	// Admin may do everything. It does not limit its own requests.
	Admin *rest.Config
	// Client is a client of Admin's.
	Client kubernetes.Interface

	options   Options
	nodes     atomic.Uint32 // added so far
	binaries  string
	dir       string
	authority *authority
	reserved  []port
	api       port
	store     port
	peers     port

	etcd   *process
	server *process
	others []*process // kube-controller-manager, kube-scheduler, kwok
}

// Start starts a cluster for one test. It is ready when this returns, and ends
// with the test. Where there are no programs for it the test is skipped.
func Start(t testing.TB, options Options) *Cluster {
	t.Helper()
	dir, err := binaries()
	if err != nil {
		refuse(t, err)
	}
	c, err := start(t.Context(), dir, t.TempDir(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.end)
	c.tell(t)
	return c
}

// start starts a cluster with the programs in binaries, all of whose files are
// in dir.
func start(ctx context.Context, binaries, dir string, options Options) (*Cluster, error) {
	c := &Cluster{options: options, binaries: binaries, dir: dir}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := c.up(ctx); err != nil {
		c.end()
		return nil, fmt.Errorf("start a cluster: %w", err)
	}
	return c, nil
}

func (c *Cluster) up(ctx context.Context) error {
	if err := c.prepare(); err != nil {
		return err
	}
	var err error
	if c.Admin, err = clientcmd.BuildConfigFromFlags("", c.Kubeconfig()); err != nil {
		return err
	}
	c.Admin.QPS = -1
	if c.Client, err = kubernetes.NewForConfig(c.Admin); err != nil {
		return err
	}
	if err := c.etcd.start(); err != nil {
		return err
	}
	if err := c.serve(ctx); err != nil {
		return err
	}
	for _, p := range c.others {
		if err := p.start(); err != nil {
			return err
		}
	}
	return c.settle(ctx)
}

// serve starts the API server and waits until it is ready.
func (c *Cluster) serve(ctx context.Context) error {
	if err := c.server.start(); err != nil {
		return err
	}
	return c.until(ctx, "the API server is ready", func(ctx context.Context) (bool, error) {
		_, err := c.Client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil, err
	})
}

// settle waits until the cluster has what every cluster has.
func (c *Cluster) settle(ctx context.Context) error {
	err := c.until(ctx, "the API server has made the namespace kube-system", func(ctx context.Context) (bool, error) {
		ns, err := c.Client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		c.UID = string(ns.UID)
		return true, nil
	})
	if err != nil {
		return err
	}
	version, err := c.Client.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	c.Version = version.GitVersion
	if c.options.APIOnly {
		return nil
	}
	err = c.until(ctx, "the controllers have made the service account of the namespace default", func(ctx context.Context) (bool, error) {
		_, err := c.Client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, err
	})
	if err != nil {
		return err
	}
	return c.addNodes(ctx, c.options.Nodes)
}

// processes returns the cluster's processes in the order of their start.
func (c *Cluster) processes() []*process {
	return slices.DeleteFunc(append([]*process{c.etcd, c.server}, c.others...), func(p *process) bool { return p == nil })
}

// end ends all programs at once: nothing of theirs is kept.
func (c *Cluster) end() {
	all := c.processes()
	slices.Reverse(all)
	for _, p := range all {
		p.kill()
	}
	for _, p := range c.reserved {
		p.release()
	}
}

// until asks again until the answer is true. It ends early where a program did
// that is to be running, and after ctx with the last error.
func (c *Cluster) until(ctx context.Context, what string, ask func(context.Context) (bool, error)) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		ok, err := ask(ctx)
		if ok {
			return nil
		}
		for _, p := range c.processes() {
			if p.crashed() {
				return fmt.Errorf("wait until %s: %w", what, p.failure())
			}
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("wait until %s: %w", what, ctx.Err()), err)
		case <-ticker.C:
		}
	}
}

// Kubeconfig is the path of the administrator's kubeconfig, which has a client
// certificate in it.
func (c *Cluster) Kubeconfig() string { return c.file("admin.kubeconfig") }

// Program is the path of a program of Kubernetes, such as "kubelet".
func (c *Cluster) Program(name string) string { return filepath.Join(c.binaries, name) }

// CAFile is the path of the authority's certificate that signed the API server's.
func (c *Cluster) CAFile() string { return c.file("ca.crt") }

// Eventually waits until a condition, which what says in words, is true; it fails
// the test after three minutes, with the last error. Conflicts and objects that
// are not there are no reason to end early, and neither is any other error.
func (c *Cluster) Eventually(t testing.TB, what string, condition func(context.Context) (bool, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.until(ctx, what, condition); err != nil {
		t.Fatal(err)
	}
}

// Namespace makes a namespace of a new name and deletes it when the test ends,
// without waiting for that.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	ns, err := c.Client.CoreV1().Namespaces().Create(t.Context(), &core.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := c.Client.CoreV1().Namespaces().Delete(ctx, ns.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("delete the test's namespace: %v", err)
		}
	})
	return ns.Name
}
