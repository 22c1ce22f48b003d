package pods

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	rbac "k8s.io/api/rbac/v1"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// exec runs a shell's command and gives what it wrote.
func (w *world) exec(s *Set, role, in, script string) (out, errs string, code int, err error) {
	var o, e bytes.Buffer
	code, err = s.Exec(w.Context(), role, []string{"sh", "-c", script}, providers.RunStreams{In: strings.NewReader(in), Out: &o, Err: &e})
	return o.String(), e.String(), code, err
}

// Commands run in the container that is meant, with their streams and exit code.
func TestExec(t *testing.T) {
	w := newWorld(t)
	s := w.apply(pod("one", pair)+pod("two", "{containers: [{name: main, image: x}]}"), "Pod/one", "Pod/two")
	w.run(s)
	script := `echo "$POD $CONTAINER"; cat; echo said >&2; exit 7`
	for _, c := range []struct{ role, want string }{{"one", "one main\n"}, {"one/side", "one side\n"}, {"two", "two main\n"}, {"Pod/two", "two main\n"}} {
		out, errs, code, err := w.exec(s, c.role, "typed\n", script)
		if err != nil || code != 7 || out != c.want+"typed\n" || errs != "said\n" {
			t.Errorf("in %s: %q, %q, exit code %d, %v", c.role, out, errs, code, err)
		}
	}
	large := strings.Repeat("0123456789abcdef", 1<<16)
	if out, _, code, err := w.exec(s, "two", large, "cat"); err != nil || code != 0 || out != large {
		t.Errorf("a megabyte came back as %d bytes, exit code %d, %v", len(out), code, err)
	}
	if _, _, code, err := w.exec(s, "two", "", "exit 0"); err != nil || code != 0 {
		t.Errorf("a command that does nothing: %d, %v", code, err)
	}
	chosen := ""
	if _, err := s.Exec(t.Context(), "", []string{"true"}, providers.RunStreams{Out: io.Discard, Err: io.Discard, Chosen: func(role string) { chosen = role }}); err != nil || chosen == "" {
		t.Errorf("nobody hears where it runs: %q, %v", chosen, err)
	}
	if _, err := s.Exec(t.Context(), "two", []string{"no-such-program"}, providers.RunStreams{Out: io.Discard, Err: io.Discard}); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("a program that is not there: %v", err)
	}
	var told *providers.RunError
	if _, _, _, err := w.exec(s, "three", "", "true"); !errors.As(err, &told) || told.Summary != "No such role" {
		t.Errorf("in a pod that is not there: %v", err)
	}
	w.kubelet.Wait(t, w.ns, "two", "main", "CrashLoopBackOff", "")
	w.becomes(s, "the pod crashes", func(is providers.RunStatus) bool { return is.Phase == Crashing })
	if _, _, _, err := w.exec(s, "two", "", "true"); !errors.As(err, &told) || !strings.Contains(told.Detail, "Pod two is crashing") {
		t.Errorf("in a pod that does not run: %v", err)
	}
}

// A command has a terminal of the size that it is told, and its changes.
func TestExecTerminal(t *testing.T) {
	w := newWorld(t)
	s := w.apply(pod("one", "{containers: [{name: main, image: x}]}"), "Pod/one")
	w.run(s)
	sizes := make(chan providers.RunSize, 1)
	sizes <- providers.RunSize{Columns: 101, Rows: 33}
	in, typing := io.Pipe()
	out := new(safeBuffer)
	type end struct {
		code int
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		code, err := s.Exec(t.Context(), "one", []string{"sh", "-c", "tty; stty size; until [ \"$(stty size)\" = '20 90' ]; do sleep 0.05; done; read line; stty size; exit 3"}, providers.RunStreams{In: in, Out: out, Terminal: true, Sizes: sizes})
		ended <- end{code, err}
	}()
	w.until("the first size is there", func() bool { return strings.Contains(out.String(), "33 101") })
	sizes <- providers.RunSize{Columns: 90, Rows: 20}
	sizes <- providers.RunSize{Columns: 90, Rows: 20} // the one before is under way by now
	sizes <- providers.RunSize{Columns: 90, Rows: 20}
	if _, err := io.WriteString(typing, "\n"); err != nil {
		t.Fatal(err)
	}
	w.until("the command ends", func() bool { return len(ended) > 0 })
	if e := <-ended; e.err != nil || e.code != 3 {
		t.Errorf("it ended with %+v", e)
	}
	if text := out.String(); !strings.Contains(text, "/dev/pts/") || !strings.Contains(text, "20 90") {
		t.Errorf("it wrote %q", text)
	}
}

// safeBuffer is a buffer that one writes while others read.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// Whoever may not is told so; a command ends when nobody waits for it any more.
func TestExecRefused(t *testing.T) {
	w := newWorld(t)
	s := w.apply(pod("one", "{containers: [{name: main, image: x}]}"), "Pod/one")
	w.run(s)
	reader := w.KubeconfigFor(t, kubetest.Login{User: "reader", Grants: []kubetest.Grant{{Namespace: w.ns, Rules: []rbac.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}}}}}})
	other := *s
	other.Client = w.dial(reader)
	var told *providers.RunError
	if _, _, _, err := w.exec(&other, "one", "", "true"); !errors.As(err, &told) || told.Summary != "Not allowed in this cluster" || !strings.Contains(told.Detail, "pods/exec") {
		t.Errorf("a reader runs a command: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	out := new(safeBuffer)
	ended := make(chan error, 1)
	go func() {
		_, err := s.Exec(ctx, "one", []string{"sh", "-c", "echo begun; sleep 600"}, providers.RunStreams{Out: out, Err: out})
		ended <- err
	}()
	w.until("it has begun", func() bool { return out.String() != "" })
	cancel()
	w.until("it ends", func() bool { return len(ended) > 0 })
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ends with %v", err)
	}
}

// echoes answers every line with a name, on a port of loopback.
func echoes(t *testing.T, name string) (port int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				text, _ := io.ReadAll(c)
				fmt.Fprintf(c, "%s got %s", name, text)
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

// ask sends a text and reads the answer.
func ask(port uint16, text string) (string, error) {
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return "", err
	}
	defer c.Close()
	// One that is taken while the pod's connection ends hangs: it is asked again.
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(c, text); err != nil {
		return "", err
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(c)
	return string(answer), err
}

// Ports lead into a pod, by number and by name, several at a time; a port where
// nothing listens is told and harms no other; another pod takes over.
func TestForward(t *testing.T) {
	w := newWorld(t)
	a, b := echoes(t, "a"), echoes(t, "b")
	s := w.apply(strings.Replace(web, "containerPort: 8080", fmt.Sprintf("containerPort: %d", b), 1), "apps/Deployment/web")
	w.run(s)
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := nobody.Addr().(*net.TCPAddr).Port
	nobody.Close()

	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan []providers.RunPort, 10), make(chan error, 1)
	trouble := new(safeBuffer)
	at := make(chan string, 10)
	go func() {
		ended <- s.Forward(ctx, "web", []providers.RunPort{{Remote: fmt.Sprint(a)}, {Remote: "http"}, {Remote: fmt.Sprint(dead)}}, providers.RunForward{
			Ready:   func(role string, ports []providers.RunPort) { at <- role; ready <- ports },
			Trouble: func(text string) { fmt.Fprintln(trouble, text) },
		})
	}()
	w.until("the ports are ready", func() bool { return len(ready) > 0 || len(ended) > 0 })
	if len(ended) > 0 {
		t.Fatal(<-ended)
	}
	first, ports := <-at, <-ready
	good := func(when string) {
		t.Helper()
		for i, want := range []string{"a got x", "b got x"} {
			got := ""
			w.until("an answer "+when, func() bool { got, _ = ask(ports[i].Local, "x"); return got != "" })
			if got != want {
				t.Errorf("%s port %d answers %q", when, i, got)
			}
		}
	}
	good("at first")
	if got, _ := ask(ports[2].Local, "x"); got != "" {
		t.Errorf("where nothing listens, %q answers", got)
	}
	w.until("it is told that nothing listens", func() bool { return strings.Contains(trouble.String(), "refused") })
	good("after trouble")
	w.Kubectl(t, "", "delete", "pod", first, "-n", w.ns, "--wait=false")
	w.becomes(s, "another pod took its place", func(is providers.RunStatus) bool {
		return is.Phase == Running && len(is.Roles) == 2 && is.Roles[0].Name != first && is.Roles[1].Name != first
	})
	_, _ = ask(ports[2].Local, "x") // the connection is lost, as it is when a kubelet goes
	w.until("another pod is told", func() bool { return len(ready) > 0 })
	if again := <-ready; again[0] != ports[0] || again[1] != ports[1] {
		t.Errorf("the ports were %v and are %v", ports, again)
	}
	good("of the other pod")
	cancel()
	w.until("it ends", func() bool { return len(ended) > 0 })
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What cannot be forwarded is told at once.
func TestForwardRefused(t *testing.T) {
	w := newWorld(t)
	s := w.apply(pod("one", "{containers: [{name: main, image: x, ports: [{name: http, containerPort: 80}]}]}"), "Pod/one")
	w.run(s)
	taken := echoes(t, "me")
	for _, c := range []struct {
		role, remote string
		local        int
		summary      string
	}{
		{"one", "80", taken, "Local port cannot be used"},
		{"one", "https", 0, "No such port"},
		{"two", "80", 0, "No such role"},
	} {
		err := s.Forward(t.Context(), c.role, []providers.RunPort{{Local: uint16(c.local), Remote: c.remote}}, providers.RunForward{})
		var told *providers.RunError
		if !errors.As(err, &told) || told.Summary != c.summary {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
