package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// between is a client of somebody who is slow: before it changes a run's
// ConfigMap, something else happens.
type between struct {
	dynamic.Interface
	happens func()
}

func (b *between) Resource(kind schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return &betweenKind{b.Interface.Resource(kind), kind, b}
}

type betweenKind struct {
	dynamic.NamespaceableResourceInterface
	kind schema.GroupVersionResource
	b    *between
}

func (k *betweenKind) Namespace(ns string) dynamic.ResourceInterface {
	return &betweenIn{k.NamespaceableResourceInterface.Namespace(ns), k}
}

type betweenIn struct {
	dynamic.ResourceInterface
	k *betweenKind
}

func (i *betweenIn) Patch(ctx context.Context, name string, kind types.PatchType, text []byte, o metav1.PatchOptions, sub ...string) (*unstructured.Unstructured, error) {
	if happens := i.k.b.happens; i.k.kind == configMaps && happens != nil {
		happens()
	}
	return i.ResourceInterface.Patch(ctx, name, kind, text, o, sub...)
}

// slow is a launcher before whose writes something happens.
func (w *world) slow(p launch.Placement, happens func()) (*Launcher, *between) {
	client := *w.client(w.Kubeconfig())
	b := &between{client.Dynamic, happens}
	client.Dynamic = b
	return w.by(&client, p), b
}

// ended has the coordinator of a run say that the run stopped.
func (w *world) ended(id string) {
	w.t.Helper()
	text, err := json.Marshal(spec.Status{Run: id, Hash: someRun(1, 1).Hash(), Phase: spec.Stopped, Message: "its deadline", Evaluated: -1, Step: 7, Saved: 5})
	if err != nil {
		w.t.Fatal(err)
	}
	w.pretend(id, coordinator, core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: int32(spec.EndOtherwise), Message: string(text)}})
}

// TestStaleEndIsNotRecorded: who saw the end of a run that others have resumed
// before it could write that down sees the run as it is now.
func TestStaleEndIsNotRecorded(t *testing.T) {
	w := newWorld(t, "restricted")
	p := small()
	p.Checkpoints = "gs://bucket/run"
	fast := w.launcher(p)
	id, err := fast.Start(t.Context(), "op-1", someRun(1, 1), launch.Code{})
	if err != nil {
		t.Fatal(err)
	}
	w.ended(id)
	resumed := 0
	slow, b := w.slow(p, nil)
	b.happens = func() {
		b.happens = nil
		w.Kubectl(t, "", "-n", w.ns, "delete", "pods", "--all", "--wait=false", "--grace-period=0", "--force")
		if err := fast.Resume(t.Context(), id, someRun(1, 1), launch.Code{}); err != nil {
			t.Errorf("resume: %v", err)
		}
		resumed++
	}
	state, err := slow.Status(t.Context(), id)
	if err != nil || resumed != 1 || state.Phase.Final() {
		t.Errorf("resumed %d times, and the run is %+v, %v", resumed, state, err)
	}
	if got := w.Kubectl(t, "", "-n", w.ns, "get", "configmap", id, "-o", `jsonpath={.data.status\.json}`); got != "" {
		t.Errorf("a resumed run has the end %s", got)
	}
	if err := fast.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.empty()
}

// TestResumedOnce: of two who resume a run, one does, and the other takes nothing
// from it; nobody resumes one that has reached its end meanwhile.
func TestResumedOnce(t *testing.T) {
	w := newWorld(t, "restricted")
	p := small()
	fast := w.launcher(p)
	id, err := fast.Start(t.Context(), "op-1", someRun(1, 1), launch.Code{})
	if err != nil {
		t.Fatal(err)
	}
	slow, b := w.slow(p, nil)
	b.happens = func() {
		b.happens = nil
		if err := fast.Resume(t.Context(), id, someRun(2, 1), launch.Code{}); err != nil {
			t.Errorf("resume: %v", err)
		}
	}
	if err := slow.Resume(t.Context(), id, someRun(3, 1), launch.Code{}); !errors.Is(err, errResumed) {
		t.Errorf("resumed twice: %v", err)
	}
	b.happens = func() {
		b.happens = nil
		c := &cluster{Client: w.client(w.Kubeconfig()), namespace: w.ns}
		s, err := c.look(t.Context(), id)
		if err == nil {
			err = c.record(t.Context(), s, launch.State{Status: spec.Status{Run: id, Phase: spec.Succeeded}})
		}
		if err != nil {
			t.Error(err)
		}
	}
	if err := slow.Resume(t.Context(), id, someRun(3, 1), launch.Code{}); err == nil || !strings.Contains(err.Error(), "the run has ended since") {
		t.Errorf("a run that has succeeded: %v", err)
	}
	got := w.Kubectl(t, "", "-n", w.ns, "get", "configmap", id, "-o", `jsonpath={.metadata.annotations.stoke\.dev/operation} {.data.spec-hash}`)
	if want := "op-1 " + someRun(2, 1).Hash(); got != want { // what is not changed stays
		t.Errorf("the run is %s, want %s", got, want)
	}
	if got, want := strings.Join(w.jobs(id), ","), "coordinator 1/1,ps 1/1,worker 2/2"; got != want {
		t.Errorf("Jobs are %s, want %s", got, want)
	}
	if err := fast.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.empty()
}

// TestChangeOfAnEndedRun: a change does not undo the end that somebody recorded
// meanwhile, and one that is always disturbed gives up.
func TestChangeOfAnEndedRun(t *testing.T) {
	w := newWorld(t, "restricted")
	p := small()
	fast := w.launcher(p)
	id, err := fast.Start(t.Context(), "op-1", someRun(2, 1), launch.Code{})
	if err != nil {
		t.Fatal(err)
	}
	touched := 0
	slow, b := w.slow(p, func() {
		touched++
		w.Kubectl(t, "", "-n", w.ns, "annotate", "--overwrite", "configmap", id, "touched="+strings.Repeat("x", touched))
	})
	if err := slow.Change(t.Context(), id, someRun(3, 1)); !apierrors.IsConflict(err) || touched != tries {
		t.Errorf("disturbed %d times: %v", touched, err)
	}
	b.happens = func() {
		b.happens = nil
		w.ended(id)
		if state, err := fast.Status(t.Context(), id); err != nil || state.Phase != spec.Stopped {
			t.Errorf("%+v, %v", state, err)
		}
	}
	if err := slow.Change(t.Context(), id, someRun(4, 1)); err == nil || !strings.Contains(err.Error(), "the run has ended") {
		t.Errorf("a change of an ended run: %v", err)
	}
	if state, err := slow.Status(t.Context(), id); err != nil || state.Phase != spec.Stopped || state.Step != 7 {
		t.Errorf("its end is lost: %+v, %v", state, err)
	}
	// What waits when the end is recorded starts no more.
	out := w.Kubectl(t, "", "-n", w.ns, "get", "jobs", "-l", runLabel+"="+id, "-o", `jsonpath={range .items[*]}{.metadata.labels.stoke\.dev/role}={.spec.suspend} {end}`)
	for _, want := range []string{"ps=true", "worker=true"} {
		if !strings.Contains(out, want) {
			t.Errorf("Jobs that wait go on after the end: %s", out)
		}
	}
	if err := fast.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.empty()
}
