package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// TestWithoutClaim: a run whose claim is lost goes on while its coordinator does,
// and is renewed where that loses nothing; without a coordinator it is lost, and
// what it had saved with it, unless that is somewhere else.
func TestWithoutClaim(t *testing.T) {
	pod := func(node string, runs bool) core.Pod {
		p := core.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{roleLabel: coordinator}}, Spec: core.PodSpec{NodeName: node}}
		if runs {
			p.Status.ContainerStatuses = []core.ContainerStatus{{Name: container, State: core.ContainerState{Running: new(core.ContainerStateRunning)}}}
		}
		return p
	}
	const bucket = "gs://lab/run"
	for _, tt := range []struct {
		name     string
		phase    spec.Phase
		why      string
		going    bool
		pods     []core.Pod
		place    string
		want     spec.Phase
		renew    bool
		warns    bool
		perished bool
	}{
		{name: "well", phase: spec.Running, want: spec.Running, pods: []core.Pod{pod("a", true)}},
		{name: "goes on", phase: spec.Running, why: "gone", want: spec.Running, pods: []core.Pod{pod("a", true)}, warns: true},
		{name: "goes on, saved elsewhere", phase: spec.Running, why: "gone", going: true, want: spec.Running, pods: []core.Pod{pod("a", true)}, place: bucket, renew: true},
		{name: "its process is started again", phase: spec.Pending, why: "going", going: true, want: spec.Pending, pods: []core.Pod{pod("a", false)}, warns: true},
		{name: "its pod waits for a claim that goes", phase: spec.Pending, why: "going", going: true, want: spec.Lost, pods: []core.Pod{pod("", false)}, perished: true},
		{name: "its pod waits for what is gone", phase: spec.Pending, why: "gone", want: spec.Lost, pods: []core.Pod{pod("", false)}, perished: true},
		{name: "its pod waits, saved elsewhere", phase: spec.Pending, why: "gone", want: spec.Lost, pods: []core.Pod{pod("", false)}, place: bucket},
		{name: "others are missing, too", phase: spec.Lost, why: "going", going: true, want: spec.Lost, pods: []core.Pod{pod("a", true)}, perished: true},
		{name: "stopped, its coordinator waits", phase: spec.Stopped, why: "going", going: true, want: spec.Stopped, pods: []core.Pod{pod("a", true)}, perished: true},
		{name: "stopped", phase: spec.Stopped, why: "gone", want: spec.Stopped, perished: true},
		{name: "succeeded", phase: spec.Succeeded, why: "gone", want: spec.Succeeded},
		{name: "failed", phase: spec.Failed, why: "gone", want: spec.Failed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			state := launch.State{Status: spec.Status{Phase: tt.phase}, Saved: 7}
			(&sight{pods: tt.pods}).withoutClaim(&state, tt.why, tt.going, launch.Placement{Storage: "1Gi", Checkpoints: tt.place})
			saved := int64(7)
			if tt.perished {
				saved = -1
			}
			if state.Phase != tt.want || (state.RestartReason != "") != tt.renew || len(state.Warnings) > 0 != tt.warns || state.DiesWithCoordinator != tt.warns || state.CheckpointsLost != tt.perished || state.Saved != saved {
				t.Errorf("%+v", state)
			}
			if (state.CannotContinue != "") != (tt.want == spec.Lost || tt.perished) {
				t.Errorf("broken: %q", state.CannotContinue)
			}
		})
	}
}

// volume makes one that the claims of a class may have.
func (w *world) volume(name, class string) {
	w.t.Helper()
	w.Kubectl(w.t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": %q}, "spec": {"capacity": {"storage": "1Gi"},
		"accessModes": ["ReadWriteOnce"], "storageClassName": %q, "persistentVolumeReclaimPolicy": "Retain", "hostPath": {"path": "/var/empty"}}}`, name, class),
		"create", "-f", "-")
	w.t.Cleanup(func() {
		_ = w.Client.CoreV1().PersistentVolumes().Delete(context.WithoutCancel(w.t.Context()), name, metav1.DeleteOptions{})
	})
}

// TestLostClaimIsMadeAgain: the claim of a run is deleted by hand, and later its
// volume is. The run says so each time, and resumed it has a claim again.
func TestLostClaimIsMadeAgain(t *testing.T) {
	w := newWorld(t, "restricted")
	w.AddKubelet(t, "node-"+w.ns)
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	class := "lab-" + w.ns
	p := small()
	p.Port, p.Checkpoints, p.Storage, p.StorageClass = at.Addr().(*net.TCPAddr).Port-1, "gs://lab/run", "1Gi", class
	l := w.launcher(p)
	s := someRun(1, 0)
	w.volume("one-"+w.ns, class)
	id, err := l.Start(t.Context(), "op-1", s, launch.Code{})
	if err != nil {
		t.Fatal(err)
	}
	b := &believer{status: spec.Status{Run: id, Hash: s.Hash(), Phase: spec.Running, Step: 9, Saved: 5, Evaluated: -1}}
	b.serve(w, id, at)
	w.onKubelet(id, coordinator, 1)
	w.eventually(l, id, "the run runs", func(s launch.State) bool {
		return s.Phase == spec.Running && s.RestartReason == "" && len(s.Warnings) == 0
	})
	claim := func() string {
		return w.Kubectl(t, "", "-n", w.ns, "get", "pvc", id, "-o", "jsonpath={.metadata.uid} {.metadata.deletionTimestamp} {.status.phase}")
	}

	b.mu.Lock()
	b.status.Run = "somebody else's" // nobody believes that
	b.mu.Unlock()
	before, _, _ := strings.Cut(claim(), " ")
	w.Kubectl(t, "", "-n", w.ns, "delete", "pvc", id, "--wait=false")
	w.eventually(l, id, "the run is warned of", func(s launch.State) bool {
		return s.Phase == spec.Pending && s.RestartReason == "" && strings.Contains(strings.Join(s.Warnings, " "), "the claim "+id+" is being deleted")
	})
	b.mu.Lock()
	b.status.Run = id
	b.mu.Unlock()
	w.eventually(l, id, "the run is to be renewed", func(s launch.State) bool {
		return s.Phase == spec.Running && strings.Contains(s.RestartReason, "the claim "+id+" is being deleted")
	})
	w.volume("two-"+w.ns, class)
	if err := l.Stop(t.Context(), id, time.Minute); err != nil {
		t.Fatal(err)
	}
	state, err := l.Status(t.Context(), id)
	if err != nil || b.stopped != 1 || state.Phase != spec.Stopped || state.Saved != 9 {
		t.Fatalf("stopped %d times at a checkpoint, it is %+v, %v", b.stopped, state, err)
	}
	if err := l.Resume(t.Context(), id, s, launch.Code{}); err != nil {
		t.Fatal(err)
	}
	w.onKubelet(id, coordinator, 1)
	if is := claim(); strings.HasPrefix(is, before) || !strings.HasSuffix(is, "  Bound") {
		t.Errorf("resumed, its claim is %q, and was %s", is, before)
	}

	b.mu.Lock()
	b.status.Phase, b.status.Cause = spec.Running, ""
	b.mu.Unlock()
	before, _, _ = strings.Cut(claim(), " ")
	w.Kubectl(t, "", "delete", "pv", "two-"+w.ns, "--wait=false")
	w.Kubectl(t, "", "patch", "pv", "two-"+w.ns, "--type=merge", "-p", `{"metadata": {"finalizers": null}}`)
	w.eventually(l, id, "its volume is missed", func(s launch.State) bool {
		return strings.Contains(s.RestartReason, "the claim "+id+" has lost its volume")
	})
	if err := l.Stop(t.Context(), id, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := l.Resume(t.Context(), id, s, launch.Code{}); err != nil {
		t.Fatal(err)
	}
	if is := claim(); strings.HasPrefix(is, before) || strings.HasSuffix(is, "Lost") {
		t.Errorf("resumed, its claim is %q, and was %s", is, before)
	}
	if err := l.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.empty()
}

// TestResumeThatWaitsForItsClaim: two stokes resume a run while its claim is on
// its way out. One of them does, and all of its Jobs are that one's.
func TestResumeThatWaitsForItsClaim(t *testing.T) {
	w := newWorld(t, "restricted")
	p := small()
	p.Checkpoints, p.Storage = "gs://lab/run", "1Gi"
	id, err := w.launcher(p).Start(t.Context(), "op-1", someRun(1, 1), launch.Code{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.launcher(p).Stop(t.Context(), id, 0); err != nil {
		t.Fatal(err)
	}
	hold := func(finalizers string) {
		w.Kubectl(t, "", "-n", w.ns, "patch", "pvc", id, "--type=merge", "-p", `{"metadata": {"finalizers": `+finalizers+`}}`)
	}
	hold(`["stoke.test/hold"]`)
	w.Kubectl(t, "", "-n", w.ns, "delete", "pvc", id, "--wait=false")
	turn := func() string {
		return w.Kubectl(t, "", "-n", w.ns, "get", "configmap", id, "-o", `jsonpath={.metadata.annotations.stoke\.dev/turn}`)
	}
	results := make(chan error, 2)
	for _, image := range []string{"registry.test/trainer:2", "registry.test/trainer:3"} {
		is, before := p, turn()
		is.Image = image
		l := w.launcher(is)
		go func() { results <- l.Resume(t.Context(), id, someRun(1, 1), launch.Code{}) }()
		w.Eventually(t, "the run is taken", func(context.Context) (bool, error) { return turn() != before, nil })
	}
	hold("null")
	one, other := <-results, <-results
	if (one == nil) == (other == nil) || !errors.Is(errors.Join(one, other), errResumed) {
		t.Errorf("%v; %v", one, other)
	}
	p.Image = "registry.test/trainer:3" // of who took it last
	w.made(id, p, someRun(1, 1))
}
