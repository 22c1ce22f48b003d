package pods

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stokehq/stoke/providers"
)

const pair = "{initContainers: [{name: first, image: x}], containers: [{name: main, image: x}, {name: side, image: x}]}"

// logs reads logs to their present end.
func (w *world) logs(s *Set, o providers.RunLogs) (*lines, error) {
	got := new(lines)
	o.Waiting = got.waiting
	err := s.Logs(w.Context(), o, got.line)
	return got, err
}

// Lines of several containers come in the order of time, each with what it is
// from; those of one pod, one container, or the life before on demand.
func TestLogs(t *testing.T) {
	w := newWorld(t)
	s := w.apply(pod("one", pair)+pod("two", "{containers: [{name: main, image: x}]}"), "Pod/one", "Pod/two")
	w.run(s)
	w.kubelet.Say(t, w.ns, "one", "main", "a")
	w.kubelet.Say(t, w.ns, "two", "main", "b", "c")
	w.kubelet.Say(t, w.ns, "one", "side", "d")
	w.kubelet.Say(t, w.ns, "one", "main", "e "+strings.Repeat("x", 200_000))
	for _, c := range []struct{ role, want string }{
		{"", "one/main: a\ntwo: b\ntwo: c\none/side: d\none/main: e "},
		{"two", "two: b\ntwo: c"},
		{"one/side", "one/side: d"},
		{"one", "one/main: a\none/side: d\none/main: e "},
		{"Pod/two", "two: b\ntwo: c"},
	} {
		got, err := w.logs(s, providers.RunLogs{Role: c.role})
		if text := strings.TrimRight(got.text(), "x"); err != nil || text != c.want {
			t.Errorf("role %q: %v\n%s", c.role, err, text)
		}
	}
	w.kubelet.Restart(t, w.ns, "two", "main", 1, "Error")
	w.kubelet.Say(t, w.ns, "two", "main", "f")
	if got, err := w.logs(s, providers.RunLogs{Role: "two"}); err != nil || got.text() != "two: f" {
		t.Errorf("after the restart: %v %s", err, got.text())
	}
	got, err := w.logs(s, providers.RunLogs{Previous: true})
	if err != nil || got.text() != "two: b\ntwo: c" || !strings.Contains(got.waited(), "one/main: it has not been started again") {
		t.Errorf("before the restart: %v %s %s", err, got.text(), got.waited())
	}
	if _, err := w.logs(s, providers.RunLogs{Stream: "stderr"}); err == nil {
		t.Error("one stream of a pod is read")
	}
}

// What has not begun is told, and why.
func TestNotBegun(t *testing.T) {
	w := newWorld(t)
	s := w.apply(`{apiVersion: v1, kind: Pod, metadata: {name: slow, annotations: {kubetest/waiting: ErrImagePull}}, spec: {containers: [{name: main, image: x}]}}`, "Pod/slow")
	w.becomes(s, "the pod waits", func(is providers.RunStatus) bool { return strings.Contains(is.Roles[0].Reason, "ErrImagePull") })
	got, err := w.logs(s, providers.RunLogs{})
	if err != nil || got.text() != "" || !strings.Contains(got.waited(), "slow: starting: image of container main cannot be pulled (ErrImagePull") {
		t.Errorf("%v, %s, waits for %s", err, got.text(), got.waited())
	}
}

// Following loses no line and repeats none though connections break, containers
// are started again, and pods are replaced; it ends with the Job.
func TestFollow(t *testing.T) {
	w := newWorld(t)
	s := w.apply(`
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  backoffLimit: 4
  template: {spec: {restartPolicy: OnFailure, containers: [{name: main, image: x}]}}
`, "batch/Job/train")
	first := w.run(s)[0]
	var want []string
	say := func(pod string, n int) {
		var texts []string
		for range n {
			text := fmt.Sprintf("line %d", len(want))
			texts, want = append(texts, text), append(want, pod+": "+text)
		}
		w.kubelet.Say(t, w.ns, pod, "main", texts...)
	}
	say(first, 3)
	got, ended := new(lines), make(chan error, 1)
	go func() {
		ended <- s.Logs(t.Context(), providers.RunLogs{Follow: true, Waiting: got.waiting}, got.line)
	}()
	same := func(when string) {
		t.Helper()
		w.until("all lines came "+when, func() bool { return len(strings.Split(got.text(), "\n")) >= len(want) })
		if got.text() != strings.Join(want, "\n") {
			t.Fatalf("%s, these came:\n%s\nand not\n%s", when, got.text(), strings.Join(want, "\n"))
		}
	}
	same("at first")
	say(first, 2)
	same("while it follows")
	for range 3 {
		w.kubelet.Cut()
		say(first, 2)
		same("after a cut")
	}
	say(first, 2)
	w.kubelet.Restart(t, w.ns, first, "main", 1, "Error")
	say(first, 2)
	same("after a restart")

	w.Kubectl(t, "", "delete", "pod", first, "-n", w.ns, "--wait=false")
	second := ""
	w.becomes(s, "another pod runs", func(is providers.RunStatus) bool {
		for _, r := range is.Roles {
			if r.Name != first && r.Phase == Running {
				second = r.Name
			}
		}
		return second != ""
	})
	say(second, 2)
	same("of the pod that came later")
	say(second, 1)
	w.kubelet.End(t, w.ns, second, "main", 0, "Completed")
	w.until("following ends", func() bool { return len(ended) > 0 })
	if err := <-ended; err != nil {
		t.Error(err)
	}
	same("at the end")
}

// An interrupt ends following, and pods of a rollout are followed.
func TestFollowRollout(t *testing.T) {
	w := newWorld(t)
	s := w.apply(web, "apps/Deployment/web")
	old := w.run(s)
	w.kubelet.Say(t, w.ns, old[0], "main", "old")
	ctx, cancel := context.WithCancel(t.Context())
	got, ended := new(lines), make(chan error, 1)
	go func() { ended <- s.Logs(ctx, providers.RunLogs{Follow: true}, got.line) }()
	w.until("the first line came", func() bool { return got.text() != "" })
	w.Kubectl(t, "", "set", "image", "deployment/web", "main=y", "-n", w.ns)
	young := ""
	w.becomes(s, "the rollout has ended", func(is providers.RunStatus) bool {
		for _, r := range is.Roles {
			if r.Name == old[0] || r.Name == old[1] {
				return false
			}
			young = r.Name
		}
		return is.Phase == Running && len(is.Roles) == 2
	})
	w.kubelet.Say(t, w.ns, young, "main", "young")
	w.until("the young one is heard", func() bool { return strings.Contains(got.text(), young+": young") })
	cancel()
	w.until("following ends", func() bool { return len(ended) > 0 })
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What an API server cannot tell for a while, whose a new pod is, is asked again.
func TestFollowThroughErrors(t *testing.T) {
	w := newWorld(t)
	s := w.apply(web, "apps/Deployment/web")
	old := w.run(s)
	w.kubelet.Say(t, w.ns, old[0], "main", "old")
	var ill atomic.Int64
	failed := make(chan struct{}, 100)
	proxied := w.through(func(rw http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/replicasets") || ill.Add(-1) < 0 {
			return false
		}
		failed <- struct{}{}
		http.Error(rw, "etcd has no leader", http.StatusInternalServerError)
		return true
	})
	s = New(proxied, s.Objects)
	ctx, cancel := context.WithCancel(t.Context())
	got, ended := new(lines), make(chan error, 1)
	go func() { ended <- s.Logs(ctx, providers.RunLogs{Follow: true, Waiting: got.waiting}, got.line) }()
	w.until("the first line came", func() bool { return got.text() != "" })
	ill.Store(2)
	w.Kubectl(t, "", "set", "image", "deployment/web", "main=y", "-n", w.ns)
	w.until("two requests failed, or following ended", func() bool { return len(failed) == 2 || len(ended) > 0 })
	if len(ended) > 0 {
		t.Fatal("it ended with", <-ended)
	}
	young := ""
	w.becomes(New(w.client, s.Objects), "another pod runs", func(is providers.RunStatus) bool {
		for _, r := range is.Roles {
			if r.Name != old[0] && r.Name != old[1] && r.Phase == Running {
				young = r.Name
			}
		}
		return young != ""
	})
	w.kubelet.Say(t, w.ns, young, "main", "young")
	w.until("the young one is heard", func() bool { return strings.Contains(got.text(), young+": young") })
	if !strings.Contains(got.waited(), "etcd has no leader") {
		t.Errorf("nobody was told why it took longer:\n%s", got.waited())
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Whatever may be given as a role is among the names.
func TestNames(t *testing.T) {
	w := newWorld(t)
	s := w.apply(web, "apps/Deployment/web")
	first := w.run(s)[0]
	names, err := s.Names(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"web", "Deployment/web", first, first + "/main"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not in %v", name, names)
		}
		w.kubelet.Say(t, w.ns, first, "main", name)
		got := new(lines)
		if err := s.Logs(t.Context(), providers.RunLogs{Role: name}, got.line); err != nil || !strings.Contains(got.text(), name) {
			t.Errorf("%s: %s, %v", name, got.text(), err)
		}
	}
}
