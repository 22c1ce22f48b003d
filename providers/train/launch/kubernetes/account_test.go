package kubernetes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/train/launch"
)

// TestOverdue: a pod is deleted by force once its time to end is over, and that
// of its node, however long ago somebody began to look.
func TestOverdue(t *testing.T) {
	now := time.Now()
	for after, want := range map[time.Duration]bool{-grace * time.Second: false, 0: false, late - time.Second: false, late: true, time.Hour: true} {
		p := &core.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: now.Add(-after)}}}
		if overdue(p, now) != want {
			t.Errorf("%s after its time: want %t", after, want)
		}
	}
	if overdue(new(core.Pod), now) {
		t.Error("a pod that nobody has asked to end")
	}
}

// TestStopSaysWhatIsLeft: a stop that runs out of time names what it removed and
// what it did not.
func TestStopSaysWhatIsLeft(t *testing.T) {
	w := newWorld(t, "restricted")
	l := w.launcher(small())
	id, err := l.Start(t.Context(), "op-1", someRun(1, 1), launch.Code{})
	if err != nil {
		t.Fatal(err)
	}
	on := "gone-" + w.ns
	w.lostNode(on)
	var held core.Pod
	w.Eventually(t, "the worker has a pod", func(ctx context.Context) (bool, error) {
		found, err := w.podsOf(ctx, id, worker, "0")
		if err != nil || len(found) != 1 {
			return false, err
		}
		held = found[0]
		return true, nil
	})
	bind := &core.Binding{ObjectMeta: metav1.ObjectMeta{Name: held.Name}, Target: core.ObjectReference{Kind: "Node", Name: on}}
	if err := w.Client.CoreV1().Pods(w.ns).Bind(t.Context(), bind, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- l.Stop(ctx, id, time.Second) }()
	w.Eventually(t, "its pod is all that runs", func(context.Context) (bool, error) {
		left := w.left()
		named := func(kind string) int {
			return len(slices.DeleteFunc(slices.Clone(left), func(name string) bool { return !strings.HasPrefix(name, kind) }))
		}
		return named("job") == 0 && named("pod/") == 1, errors.New(strings.Join(left, " "))
	})
	cancel()
	left := new(launch.LeftError)
	if err := <-stopped; !errors.As(err, &left) || !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	slices.Sort(left.Left)
	want := []string{"ConfigMap " + id, "NetworkPolicy " + id, "Pod " + held.Name, "Secret " + id, "Service " + id}
	if !slices.Equal(left.Left, want) || left.Unseen != nil {
		t.Errorf("left are %q, want %q", left.Left, want)
	}
	for _, role := range []string{coordinator, server, worker} {
		if !slices.Contains(left.Removed, "Job "+job(id, role)) {
			t.Errorf("it does not say that the Job of %s was removed: %q", role, left.Removed)
		}
	}
	w.Kubectl(t, "", "-n", w.ns, "delete", "pod", held.Name, "--grace-period=0", "--force")
	if err := l.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.empty()
}

// TestFailedLaunchThatLeavesSomething names the run that is to be removed.
func TestFailedLaunchThatLeavesSomething(t *testing.T) {
	w := newWorld(t, "restricted")
	client := *w.client(w.Kubeconfig())
	client.Dynamic = &mortal{Interface: client.Dynamic, lives: 3}
	l := w.by(&client, small())
	left := new(launch.LeftError)
	id, err := l.Start(t.Context(), "op-1", someRun(1, 1), launch.Code{})
	if !errors.As(err, &left) || !errors.Is(err, errKilled) || id != l.ID("op-1") || left.Unseen == nil {
		t.Fatalf("%q, %v", id, err)
	}
	if n := len(w.left()); n != 3 {
		t.Errorf("%d objects are left", n)
	}
	alive := w.launcher(small())
	if err := errors.Join(alive.Stop(t.Context(), id, time.Second), alive.Remove(t.Context(), id)); err != nil {
		t.Fatal(err)
	}
	w.empty()
}

// TestPerished: where what a run saves goes with its coordinator, and nobody can
// tell how far it came, it starts over.
func TestPerished(t *testing.T) {
	durable := small()
	durable.Checkpoints = "gs://bucket/run"
	for name, p := range map[string]launch.Placement{"beside the coordinator": small(), "in a bucket": durable} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "restricted")
			l := w.launcher(p)
			id, err := l.Start(t.Context(), "op-1", someRun(1, 1), launch.Code{})
			if err != nil {
				t.Fatal(err)
			}
			if state, err := l.Status(t.Context(), id); err != nil || state.CheckpointsLost {
				t.Errorf("a run that waits: %+v, %v", state, err)
			}
			for _, step := range []func() error{
				func() error { w.Kubectl(t, "", "-n", w.ns, "delete", "job", job(id, coordinator)); return nil },
				func() error { return l.Stop(t.Context(), id, time.Second) }, // recorded
			} {
				if err := step(); err != nil {
					t.Fatal(err)
				}
				state, err := l.Status(t.Context(), id)
				if err != nil || !launch.Idle(state.Phase) || state.CheckpointsLost == p.Durable() || (state.Saved >= 0) != p.Durable() {
					t.Errorf("%+v, %v", state, err)
				}
			}
			if err := l.Remove(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			w.empty()
		})
	}
}
