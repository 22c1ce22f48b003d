package kubernetes

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/stokehq/stoke/providers/connect"
	connected "github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/connect/kubetest"
	"github.com/stokehq/stoke/providers/train/launch"
)

// shared has no nodes: pods stay as tests say that they are.
var shared kubetest.Shared

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// world is a namespace, and who looks at it.
type world struct {
	*kubetest.Cluster
	t  *testing.T
	ns string
}

// newWorld makes a namespace that enforces a Pod Security level.
func newWorld(t *testing.T, level string) *world {
	t.Helper()
	c := shared.Cluster(t)
	w := &world{c, t, c.Namespace(t)}
	w.Kubectl(t, "", "label", "namespace", w.ns, "pod-security.kubernetes.io/enforce="+level)
	w.Eventually(t, "pods can be made", func(ctx context.Context) (bool, error) {
		_, err := c.Client.CoreV1().ServiceAccounts(w.ns).Get(ctx, "default", metav1.GetOptions{})
		return err == nil, err
	})
	return w
}

// client connects as the user of a kubeconfig.
func (w *world) client(kubeconfig string) *connected.Client {
	w.t.Helper()
	client, err := connected.Dial(w.t.Context(), connect.Connection{Credential: connect.Credential{Kubeconfig: &connect.Kubeconfig{Path: kubeconfig}}}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(client.Close)
	return client
}

// launcher is the administrator's.
func (w *world) launcher(p launch.Placement) *Launcher {
	w.t.Helper()
	return w.by(w.client(w.Kubeconfig()), p)
}

func (w *world) by(client *connected.Client, p launch.Placement) *Launcher {
	p.Namespace = w.ns
	return New(func(context.Context) (*connected.Client, error) { return client, nil }, p, w.t.TempDir())
}

// left lists what there is in the namespace of runs.
func (w *world) left() []string {
	w.t.Helper()
	out := w.Kubectl(w.t, "", "-n", w.ns, "get", "configmaps,secrets,services,networkpolicies,persistentvolumeclaims,jobs,pods", "-l", runLabel, "-o", "name")
	return strings.Fields(out)
}

// empty waits until nothing of a run is there: what protects claims and pods
// lets go of them in its own time.
func (w *world) empty() {
	w.t.Helper()
	w.Eventually(w.t, "nothing of the run is left", func(context.Context) (bool, error) {
		left := w.left()
		return len(left) == 0, errors.New(strings.Join(left, " "))
	})
}

// jobs are the run's by their names, as KIND/NAME COMPLETIONS UID.
func (w *world) jobs(id string) []string {
	w.t.Helper()
	out := w.Kubectl(w.t, "", "-n", w.ns, "get", "jobs", "-l", runLabel+"="+id,
		"-o", `jsonpath={range .items[*]}{.metadata.labels.stoke\.dev/role} {.spec.completions}/{.spec.parallelism}{"\n"}{end}`)
	all := strings.Split(strings.TrimSpace(out), "\n")
	slices.Sort(all)
	return all
}

// errKilled is what a stoke that was killed would have been told.
var errKilled = errors.New("killed")

// mortal is a client of somebody who is killed once so many objects are made, or,
// with writes, once so many are made, changed or deleted.
type mortal struct {
	dynamic.Interface
	lives  int
	writes bool
}

func (m *mortal) wrote() {
	if m.writes {
		m.lives--
	}
}

func (m *mortal) Resource(kind schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	of := m.Interface.Resource(kind)
	return &mortalKind{mortalIn{of, m}, of}
}

type mortalKind struct {
	mortalIn
	of dynamic.NamespaceableResourceInterface
}

func (k *mortalKind) Namespace(ns string) dynamic.ResourceInterface {
	return &mortalIn{k.of.Namespace(ns), k.m}
}

type mortalIn struct {
	dynamic.ResourceInterface
	m *mortal
}

func (i *mortalIn) Create(ctx context.Context, o *unstructured.Unstructured, options metav1.CreateOptions, sub ...string) (*unstructured.Unstructured, error) {
	if i.m.lives <= 0 {
		return nil, errKilled
	}
	i.m.lives--
	return i.ResourceInterface.Create(ctx, o, options, sub...)
}

func (i *mortalIn) Get(ctx context.Context, name string, options metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	if i.m.lives <= 0 {
		return nil, errKilled
	}
	return i.ResourceInterface.Get(ctx, name, options, sub...)
}

func (i *mortalIn) List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if i.m.lives <= 0 {
		return nil, errKilled
	}
	return i.ResourceInterface.List(ctx, options)
}

func (i *mortalIn) Delete(ctx context.Context, name string, options metav1.DeleteOptions, sub ...string) error {
	if i.m.lives <= 0 {
		return errKilled
	}
	i.m.wrote()
	return i.ResourceInterface.Delete(ctx, name, options, sub...)
}

func (i *mortalIn) Patch(ctx context.Context, name string, kind types.PatchType, text []byte, options metav1.PatchOptions, sub ...string) (*unstructured.Unstructured, error) {
	if i.m.lives <= 0 {
		return nil, errKilled
	}
	i.m.wrote()
	return i.ResourceInterface.Patch(ctx, name, kind, text, options, sub...)
}
