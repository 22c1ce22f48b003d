package kubernetes

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/connect/kubetest"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/certificate"
	"github.com/stokehq/stoke/runtime/spec"
)

// believer is the API of a coordinator that takes its run to go on until it is
// stopped.
type believer struct {
	mu      sync.Mutex
	status  spec.Status
	stopped int
}

func (b *believer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch r.URL.Path {
	case api.PathStatus:
		_ = json.NewEncoder(w).Encode(b.status)
	case api.PathStop:
		b.stopped++
		b.status.Phase, b.status.Cause, b.status.Saved = spec.Stopped, spec.CauseRequest, b.status.Step
	case api.PathMetrics, api.PathCollected:
	default:
		http.NotFound(w, r)
	}
}

// serve answers in the place of a run's coordinator, with the run's certificate.
func (b *believer) serve(w *world, id string, on net.Listener) {
	w.t.Helper()
	secret, err := w.Client.CoreV1().Secrets(w.ns).Get(w.t.Context(), id, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	own, err := certificate.Read(secret.Data[keyIdentity])
	if err != nil {
		w.t.Fatal(err)
	}
	server := &http.Server{Handler: b, ReadHeaderTimeout: time.Minute}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(tls.NewListener(on, own.Server())) }) // it ends when it is closed
	w.t.Cleanup(func() { server.Close(); serving.Wait() })
}

// onKubelet waits until a run's pods of a role run, and gives their names.
func (w *world) onKubelet(id, role string, n int) (names []string) {
	w.t.Helper()
	w.Eventually(w.t, "pods of "+role+" run", func(ctx context.Context) (bool, error) {
		found, err := w.Client.CoreV1().Pods(w.ns).List(ctx, metav1.ListOptions{LabelSelector: runLabel + "=" + id + "," + roleLabel + "=" + role})
		if err != nil {
			return false, err
		}
		names = nil
		for _, p := range found.Items {
			if p.DeletionTimestamp == nil && len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Running != nil {
				names = append(names, p.Name)
			}
		}
		return len(names) == n, fmt.Errorf("%q", names)
	})
	return names
}

// eventually waits until the run's status is as wanted.
func (w *world) eventually(l *Launcher, id, what string, as func(launch.State) bool) (state launch.State) {
	w.t.Helper()
	w.Eventually(w.t, what, func(ctx context.Context) (bool, error) {
		var err error
		state, err = l.Status(ctx, id)
		return err == nil && as(state), errors.Join(err, fmt.Errorf("%+v", state))
	})
	return state
}

// TestBrokenRunIsResumed: the workers' Job fails while the coordinator waits for
// workers. The run is lost, and says by what; resumed, it is saved before its
// Jobs are made anew. An image that is not there then loses nothing either.
func TestBrokenRunIsResumed(t *testing.T) {
	w := newWorld(t, "restricted")
	kubelet := w.AddKubelet(t, "node-"+w.ns)
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := small()
	p.Port, p.Checkpoints = at.Addr().(*net.TCPAddr).Port-1, "gs://lab/run"
	l := w.launcher(p)
	s := someRun(2, 1)
	id, err := l.Start(t.Context(), "op-1", s, launch.Code{})
	if err != nil {
		t.Fatal(err)
	}
	b := &believer{status: spec.Status{Run: id, Hash: s.Hash(), Phase: spec.Running, Step: 9, Saved: 5, Evaluated: -1}}
	b.serve(w, id, at)
	w.onKubelet(id, coordinator, 1)
	w.eventually(l, id, "the run runs", func(s launch.State) bool { return s.Phase == spec.Running && s.Step == 9 })
	for _, pod := range w.onKubelet(id, worker, 2) {
		kubelet.End(t, w.ns, pod, "trainer", int32(spec.EndNoCoordinator), "Error")
	}
	state := w.eventually(l, id, "the run is lost", func(s launch.State) bool { return s.Phase == spec.Lost })
	if !strings.Contains(state.CannotContinue, "the Job "+job(id, worker)+" failed") || !strings.Contains(state.CannotContinue, "no coordinator for too long") || state.Step != 9 || state.Saved != 5 {
		t.Errorf("a run without workers: %+v", state)
	}
	uid := func() string {
		return w.Kubectl(t, "", "-n", w.ns, "get", "job", job(id, worker), "-o", "jsonpath={.metadata.uid}")
	}
	before := uid()
	if err := l.Resume(t.Context(), id, s, launch.Code{}); err != nil {
		t.Fatal(err)
	}
	if b.stopped != 1 || uid() == before {
		t.Errorf("it was stopped %d times before its Jobs were made anew", b.stopped)
	}
	w.unpulled(kubelet, l, id)
	if err := l.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.empty()
}

// unpulled has the resumed run's image not be there: the run waits and says so,
// and can be stopped and resumed like any other.
func (w *world) unpulled(kubelet *kubetest.Kubelet, l *Launcher, id string) {
	w.t.Helper()
	pod := w.onKubelet(id, coordinator, 1)[0]
	kubelet.Wait(w.t, w.ns, pod, "trainer", "ImagePullBackOff", "no such image")
	state := w.eventually(l, id, "the image is missed", func(s launch.State) bool { return strings.Contains(s.Message, "no such image") })
	if waits := strings.Join(state.Waiting(), "\n"); state.Phase != spec.Pending || !strings.Contains(waits, "coordinator-0: ImagePullBackOff: no such image") {
		w.t.Errorf("a run without an image is %s: %s", state.Phase, waits)
	}
	if err := l.Stop(w.t.Context(), id, time.Second); err != nil {
		w.t.Fatal(err)
	}
	state, err := l.Status(w.t.Context(), id)
	if err != nil || state.Phase != spec.Stopped || state.Saved < 0 {
		w.t.Errorf("stopped, it is %+v, %v", state, err)
	}
	if err := l.Resume(w.t.Context(), id, someRun(2, 1), launch.Code{}); err != nil {
		w.t.Fatal(err)
	}
	w.onKubelet(id, coordinator, 1)
}
