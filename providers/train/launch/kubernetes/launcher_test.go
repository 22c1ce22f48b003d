package kubernetes

import (
	"errors"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/train/launch"
)

// TestAcceptedUnderRestricted has the real API server take every golden run,
// strictly, and the pods that its Jobs make.
func TestAcceptedUnderRestricted(t *testing.T) {
	for name, l := range layouts() {
		t.Run(name, func(t *testing.T) {
			level := "restricted"
			if name == "privileged" {
				level = "privileged"
			}
			w := newWorld(t, level)
			l.Namespace = w.ns
			c := &cluster{Client: w.client(w.Kubeconfig()), namespace: w.ns}
			if err := c.start(t.Context(), l, "op-1", codeOf(t, l)); err != nil {
				t.Fatal(err)
			}
			for _, j := range l.jobs() {
				if err := w.dryRun(j.Name, j.Spec.Template); err != nil {
					t.Errorf("a pod of %s: %v", j.Name, err)
				}
			}
			if err := c.purge(t.Context(), l.id, ""); err != nil {
				t.Fatal(err)
			}
			w.empty()
		})
	}
	w := newWorld(t, "restricted")
	l := &layout{"run-0000000000000005", someRun(1, 1), privileged(), 0}
	if err := w.dryRun("x", l.template(worker)); err == nil || !strings.Contains(err.Error(), "hostPath") || !strings.Contains(err.Error(), "nfs") {
		t.Errorf("volumes that restricted refuses: %v", err)
	}
}

// dryRun asks the API server for a pod without making it.
func (w *world) dryRun(name string, template core.PodTemplateSpec) error {
	pod := &core.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name = name + "-x"
	_, err := w.Client.CoreV1().Pods(w.ns).Create(w.t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	return err
}

// TestStartedTwice: a second launch of one operation is refused, and leaves the
// first as it is.
func TestStartedTwice(t *testing.T) {
	w := newWorld(t, "restricted")
	l := w.launcher(accelerated())
	if _, err := l.Start(t.Context(), "op-twice", someRun(2, 1), launch.Code{}); err != nil {
		t.Fatal(err)
	}
	before := len(w.left())
	if _, err := l.Start(t.Context(), "op-twice", someRun(2, 1), launch.Code{}); !errors.Is(err, errTaken) {
		t.Errorf("a second launch: %v", err)
	}
	if after := len(w.left()); after != before {
		t.Errorf("%d objects were left, of %d", after, before)
	}
}

// TestSettleAfterEachObject kills a launch after each object that it makes: the
// next stoke keeps the run where it was let go, and removes it before that.
func TestSettleAfterEachObject(t *testing.T) {
	w := newWorld(t, "restricted")
	p := accelerated()
	const objects = 9 // ConfigMap, Secret, Service, NetworkPolicy, claim, 4 Jobs
	if id, err := w.launcher(p).Start(t.Context(), "op-classes", someRun(3, 1), launch.Code{}); err != nil {
		t.Fatal(err) // the priority classes stay
	} else if n := len(w.left()); n < objects {
		t.Fatalf("a run has %d objects", n)
	} else if err := w.launcher(p).Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	for made := range objects + 1 {
		client := *w.client(w.Kubeconfig())
		client.Dynamic = &mortal{Interface: client.Dynamic, lives: made}
		operation := "op-" + string(rune('a'+made))
		_, err := w.by(&client, p).Start(t.Context(), operation, someRun(3, 1), launch.Code{})
		alive := w.launcher(p)
		if made < objects {
			if !errors.Is(err, errKilled) {
				t.Fatalf("after %d objects: %v", made, err)
			}
			for range 2 { // deciding again changes nothing
				if id, err := alive.Settle(t.Context(), operation); !errors.Is(err, launch.ErrNoRun) || id != "" {
					t.Fatalf("settled after %d objects: %q, %v", made, id, err)
				}
			}
			w.empty()
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if id, err := alive.Settle(t.Context(), operation); err != nil || id != alive.ID(operation) {
				t.Fatalf("settled after all objects: %q, %v", id, err)
			}
		}
		for range 2 { // so does removing
			if err := alive.Remove(t.Context(), alive.ID(operation)); err != nil {
				t.Fatal(err)
			}
		}
		w.empty()
	}
}

// TestForeignObjectsStay keeps off a ConfigMap of the run's name that somebody
// else has made.
func TestForeignObjectsStay(t *testing.T) {
	w := newWorld(t, "restricted")
	l := w.launcher(small())
	id := l.ID("op-1")
	w.Kubectl(t, "", "-n", w.ns, "create", "configmap", id, "--from-literal=theirs=yes")
	if _, err := l.Status(t.Context(), id); !errors.Is(err, launch.ErrForeign) {
		t.Errorf("status: %v", err)
	}
	if _, err := l.Start(t.Context(), "op-1", someRun(1, 1), launch.Code{}); err == nil {
		t.Error("a run was made in its place")
	}
	if _, err := l.Settle(t.Context(), "op-1"); !errors.Is(err, launch.ErrNoRun) {
		t.Errorf("settle: %v", err)
	}
	if err := l.Remove(t.Context(), id); !errors.Is(err, launch.ErrForeign) {
		t.Errorf("remove: %v", err)
	}
	if got := w.Kubectl(t, "", "-n", w.ns, "get", "configmap", id, "-o", "jsonpath={.data.theirs}"); got != "yes" {
		t.Errorf("it is not theirs any more: %q", got)
	}
	if _, err := l.Status(t.Context(), l.ID("op-2")); !errors.Is(err, launch.ErrNoRun) {
		t.Errorf("status of nothing: %v", err)
	}
}

// TestChangeScalesInPlace rescales a run whose pods wait: its Jobs stay the same
// objects.
func TestChangeScalesInPlace(t *testing.T) {
	w := newWorld(t, "restricted")
	p := small()
	p.HighPriority = 1
	l := w.launcher(p)
	id, err := l.Start(t.Context(), "op-1", someRun(2, 1), launch.Code{})
	if err != nil {
		t.Fatal(err)
	}
	uid := func() string {
		return w.Kubectl(t, "", "-n", w.ns, "get", "job", job(id, workerHigh), "-o", "jsonpath={.metadata.uid}")
	}
	before := uid()
	for _, step := range []struct {
		workers int
		want    string
	}{
		{4, "coordinator 1/1,ps 1/1,worker 3/3,worker-high 1/1"},
		{1, "coordinator 1/1,ps 1/1,worker-high 1/1"},
		{3, "coordinator 1/1,ps 1/1,worker 2/2,worker-high 1/1"},
	} {
		s := someRun(step.workers, 1)
		for range 2 {
			if err := l.Change(t.Context(), id, s); err != nil {
				t.Fatalf("to %d workers: %v", step.workers, err)
			}
		}
		if got := strings.Join(w.jobs(id), ","); got != step.want {
			t.Errorf("%d workers: %s, want %s", step.workers, got, step.want)
		}
		if is, err := l.Spec(t.Context(), id); err != nil || is.Worker.Replicas != step.workers {
			t.Errorf("the run says that it has %d workers, want %d: %v", is.Worker.Replicas, step.workers, err)
		}
	}
	if after := uid(); after != before {
		t.Error("a Job was made anew")
	}
}
