package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/stokehq/stoke/providers/connect/kubetest"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// watched watches a run as a user of its own for as long as lasts after the first
// state that is as wanted. It returns the last state, and the requests since then.
func (w *world) watched(login kubetest.Login, p launch.Placement, id string, as func(launch.State) bool, lasts time.Duration) (last launch.State, since []kubetest.Asked) {
	w.t.Helper()
	l := w.by(w.client(w.KubeconfigFor(w.t, login)), p)
	ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Minute)
	defer cancel()
	var before int
	for s, err := range l.Watch(ctx, id) {
		if err != nil {
			w.t.Fatal(err)
		}
		if last = s; before == 0 && as(s) {
			before = len(w.Audit(w.t, login.User))
			time.AfterFunc(lasts, cancel)
		}
	}
	if before == 0 {
		w.t.Fatalf("the run is never as wanted: %+v", last)
	}
	return last, w.Audit(w.t, login.User)[before:]
}

// TestFewRequests: whoever waits for a run sends at most one request in 5 s, also
// while its pods wait for a claim, run, or do not answer.
func TestFewRequests(t *testing.T) {
	const lasts = 20 * time.Second
	for _, tt := range []struct {
		name    string
		runs    bool // the coordinator's pod
		answers bool
		as      func(launch.State) bool
	}{
		{"waits", false, false, func(s launch.State) bool { return s.Phase == spec.Pending }},
		{"runs", true, true, func(s launch.State) bool { return s.Phase == spec.Running && s.Step > 0 }},
		{"is silent", true, false, func(s launch.State) bool { return strings.Contains(s.Message, "does not answer") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, "restricted")
			on, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			p := small()
			p.Port = on.Addr().(*net.TCPAddr).Port - 1
			if tt.runs {
				w.AddKubelet(t, "node-"+w.ns)
			} else {
				p.Storage = "1Gi" // of a class that does not exist: events are read
			}
			l := w.launcher(p)
			id, err := l.Start(t.Context(), "op-1", someRun(2, 1), launch.Code{})
			if err != nil {
				t.Fatal(err)
			}
			b := &believer{status: spec.Status{Run: id, Hash: someRun(2, 1).Hash(), Phase: spec.Running, Step: 1, Evaluated: -1}}
			if tt.answers {
				b.serve(w, id, on)
			} else {
				on.Close()
			}
			p.Namespace = w.ns
			login := kubetest.Login{User: "waiter-" + w.ns, Groups: []string{"system:masters"}}
			last, since := w.watched(login, p, id, tt.as, lasts)
			if most := int(lasts / (5 * time.Second)); len(since) > most {
				t.Errorf("%d requests in %v, want %d at most:\n%s", len(since), lasts, most, requests(since))
			}
			t.Logf("%d requests in %v; %s", len(since), lasts, last.Message)
			if err := l.Remove(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			w.empty()
		})
	}
}

// TestWatchReconnects: a run whose connection breaks off is followed over another one.
func TestWatchReconnects(t *testing.T) {
	w := newWorld(t, "restricted")
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := small()
	p.Port = on.Addr().(*net.TCPAddr).Port - 1
	kubelet := w.AddKubelet(t, "node-"+w.ns)
	l := w.launcher(p)
	id, err := l.Start(t.Context(), "op-1", someRun(1, 1), launch.Code{})
	if err != nil {
		t.Fatal(err)
	}
	b := &believer{status: spec.Status{Run: id, Hash: someRun(1, 1).Hash(), Phase: spec.Running, Step: 1, Evaluated: -1}}
	b.serve(w, id, on)
	for s, err := range l.Watch(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Step == 1 {
			kubelet.Cut()
			b.mu.Lock()
			b.status.Step = 2
			b.mu.Unlock()
		}
		if s.Step == 2 {
			break
		}
	}
	if err := l.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.empty()
}

// TestWatchIsForbidden: a caller who may read a run and not watch it sees its changes
// all the same.
func TestWatchIsForbidden(t *testing.T) {
	w := newWorld(t, "restricted")
	p := small()
	id, err := w.launcher(p).Start(t.Context(), "op-1", someRun(2, 1), launch.Code{})
	if err != nil {
		t.Fatal(err)
	}
	login := kubetest.Login{User: "reader-" + w.ns, Grants: []kubetest.Grant{
		{Namespace: w.ns, Rules: []rbacv1.PolicyRule{{APIGroups: []string{"", "batch"}, Resources: []string{"configmaps", "secrets", "pods", "jobs", "events"}, Verbs: []string{"get", "list"}}}},
	}}
	changed := false
	for s, err := range w.by(w.client(w.KubeconfigFor(t, login)), p).Watch(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		if !changed {
			changed = true
			w.Kubectl(t, "", "-n", w.ns, "delete", "job", job(id, coordinator))
		}
		if s.Phase == spec.Lost {
			break
		}
	}
	if err := w.launcher(p).Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.empty()
}

// TestFollowedLogs: a caller who follows a log reads the run from watches, and the log by
// one request, and by another one after a cut.
func TestFollowedLogs(t *testing.T) {
	w := newWorld(t, "restricted")
	kubelet := w.AddKubelet(t, "node-"+w.ns)
	p := small()
	l := w.launcher(p)
	id, err := l.Start(t.Context(), "op-1", someRun(1, 1), launch.Code{})
	if err != nil {
		t.Fatal(err)
	}
	pod := w.onKubelet(id, worker, 1)[0]
	kubelet.Say(t, w.ns, pod, container, "line 1")
	login := kubetest.Login{User: "follower-" + w.ns, Groups: []string{"system:masters"}}
	const most = 5
	enough := errors.New("enough")
	by := w.by(w.client(w.KubeconfigFor(t, login)), p)
	n := 0
	err = by.Logs(t.Context(), id, launch.LogOptions{Role: "worker-0", Follow: true}, func(line launch.Line) error {
		if n++; line.Text != fmt.Sprintf("line %d", n) {
			return fmt.Errorf("line %d is %q", n, line.Text)
		}
		if n == most {
			return enough
		}
		if n == 3 {
			kubelet.Cut()
		}
		time.Sleep(1100 * time.Millisecond) // the times of lines are read in whole seconds
		kubelet.Say(t, w.ns, pod, container, fmt.Sprintf("line %d", n+1))
		return nil
	})
	if !errors.Is(err, enough) {
		t.Fatalf("%d lines, %v", n, err)
	}
	all := w.Audit(t, login.User)
	asked := slices.DeleteFunc(slices.Clone(all), func(a kubetest.Asked) bool { return strings.Contains(a.URI, "/log?") })
	if logs := len(all) - len(asked); logs > 3 { // the first, and one or two after the cut
		t.Errorf("%d requests of the log:\n%s", logs, requests(all))
	}
	if len(asked) > 12 { // of the login, and a list and a watch of each kind
		t.Errorf("%d requests beside those of the log:\n%s", len(asked), requests(asked))
	}
	if err := l.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.empty()
}

// TestPodsGoneIsWatched: a destroy waits for pods that take their time to end by a watch.
func TestPodsGoneIsWatched(t *testing.T) {
	w := newWorld(t, "restricted")
	p := small()
	id, err := w.launcher(p).Start(t.Context(), "op-1", someRun(1, 1), launch.Code{})
	if err != nil {
		t.Fatal(err)
	}
	const hold = `{"metadata":{"finalizers":["example.com/hold"]}}`
	pod := ""
	w.Eventually(t, "worker 0 has a pod", func(ctx context.Context) (bool, error) {
		found, err := w.podsOf(ctx, id, worker, "0")
		if len(found) > 0 {
			pod = found[0].Name
		}
		return len(found) == 1, err
	})
	w.Kubectl(t, "", "-n", w.ns, "patch", "pod", pod, "--type=merge", "-p", hold)
	login := kubetest.Login{User: "remover-" + w.ns, Groups: []string{"system:masters"}}
	by := w.by(w.client(w.KubeconfigFor(t, login)), p)
	removed := make(chan error, 1)
	go func() { removed <- by.Remove(t.Context(), id) }()
	w.Eventually(t, "the pod is to end", func(context.Context) (bool, error) {
		return w.Kubectl(t, "", "-n", w.ns, "get", "pod", pod, "-o", "jsonpath={.metadata.deletionTimestamp}") != "", nil
	})
	time.Sleep(3 * time.Second)
	select {
	case err := <-removed:
		t.Fatalf("the run is removed while it has a pod: %v", err)
	default:
	}
	w.Kubectl(t, "", "-n", w.ns, "patch", "pod", pod, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	if err := <-removed; err != nil {
		t.Fatal(err)
	}
	lists := slices.DeleteFunc(w.Audit(t, login.User), func(a kubetest.Asked) bool {
		return a.Verb != "list" || !strings.Contains(a.URI, "/pods?")
	})
	if len(lists) > 6 { // one begins the watch, one says that there are none; others are of looks at the run
		t.Errorf("%d lists of pods:\n%s", len(lists), requests(lists))
	}
	w.empty()
}

func requests(all []kubetest.Asked) string {
	var lines []string
	for _, a := range all {
		lines = append(lines, fmt.Sprintf("%s %s", a.At.Format("05.0"), a))
	}
	return strings.Join(lines, "\n")
}
