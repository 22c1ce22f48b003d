package pods

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/connect/kubetest"
)

var shared = kubetest.Shared{Options: kubetest.Options{}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// world is a namespace of a real cluster, with one node whose kubelet the test
// plays.
type world struct {
	*testing.T
	*kubetest.Cluster
	kubelet *kubetest.Kubelet
	ns      string
	client  *kubernetes.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	c := shared.Cluster(t)
	w := &world{T: t, Cluster: c, kubelet: c.AddKubelet(t, strings.ToLower(t.Name())), ns: c.Namespace(t)}
	w.client = w.dial(c.Kubeconfig())
	return w
}

func (w *world) dial(kubeconfig string) *kubernetes.Client {
	w.Helper()
	client, err := kubernetes.Dial(w.Context(), connect.Connection{Credential: connect.Credential{Kubeconfig: &connect.Kubeconfig{Path: kubeconfig}}}, nil)
	if err != nil {
		w.Fatal(err)
	}
	w.T.Cleanup(client.Close)
	return client
}

// apply makes objects and gives those of the names that are said:
// "apps/Deployment/web", "Pod/alone".
func (w *world) apply(yaml string, names ...string) *Set {
	w.Helper()
	w.Kubectl(w, yaml, "apply", "-n", w.ns, "-f", "-")
	return w.set(names...)
}

func (w *world) set(names ...string) *Set {
	var objects []Object
	for _, name := range names {
		parts := strings.Split(name, "/")
		o := Object{Namespace: w.ns, Name: parts[len(parts)-1]}
		o.GroupKind = schema.GroupKind{Kind: parts[len(parts)-2]}
		if len(parts) == 3 {
			o.Group = parts[0]
		}
		objects = append(objects, o)
	}
	return New(w.client, objects)
}

// becomes waits until a set's status is as wanted and returns it.
func (w *world) becomes(s *Set, what string, wanted func(providers.RunStatus) bool) (is providers.RunStatus) {
	w.Helper()
	defer func() {
		if w.Failed() {
			w.Logf("the status was %+v", is)
		}
	}()
	w.Eventually(w, what, func(ctx context.Context) (bool, error) {
		var err error
		is, err = s.Status(ctx)
		return err == nil && wanted(is), err
	})
	return is
}

// run waits until a set runs and gives the names of its pods.
func (w *world) run(s *Set) (names []string) {
	w.Helper()
	is := w.becomes(s, "the pods run", func(is providers.RunStatus) bool { return is.Phase == Running })
	for _, r := range is.Roles {
		names = append(names, r.Name)
	}
	return names
}

// lines gathers what is handed out, and what is waited for.
type lines struct {
	mu    sync.Mutex
	all   []string // role: text
	waits []string
}

func (l *lines) line(line providers.RunLine) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, line.Role+": "+line.Text)
	return nil
}

func (l *lines) waiting(role, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waits = append(l.waits, role+": "+reason)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

func (l *lines) waited() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.waits, "\n")
}

// until waits for a condition; generous, for machines that are busy.
func (w *world) until(what string, true func() bool) {
	w.Helper()
	for end := time.Now().Add(3 * time.Minute); !true(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("never: %s", what)
		}
	}
}
