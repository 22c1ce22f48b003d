package main

import (
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
)

// Each role answers probes, without a token, from its start to its end. A process
// that hangs does not.
func TestProbesAreAnswered(t *testing.T) {
	t.Parallel()
	s := small()
	c := newCell(t, s)
	alive := []string{"--listen-alive", "127.0.0.1:0"}
	server := c.start(append([]string{"ps"}, alive...)...)
	c.servers = []string{server.listening("workers")}
	c.workers = "127.0.0.1:1" // nobody is there
	roles := []*solo{server, c.worker("0", alive...), c.start(append([]string{"coordinator", "--state", c.dir, "--servers", c.workers}, alive...)...)}
	client := &http.Client{Timeout: 500 * time.Millisecond}
	probe := func(p *solo) bool {
		answer, err := client.Get("http://" + p.listening("probes") + "/")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusNoContent
	}
	for _, p := range roles {
		eventually(t, "the probe is answered", func() bool { return probe(p) })
		p.signal(syscall.SIGSTOP)
		eventually(t, "the process has stopped", func() bool { return !probe(p) })
		if probe(p) {
			t.Errorf("%v answers although it has stopped", p.cmd.Args[1:])
		}
		p.signal(syscall.SIGCONT)
		eventually(t, "the probe is answered again", func() bool { return probe(p) })
	}
	other := c.start("ps", "--listen-alive", "127.0.0.1:99999")
	other.ends(spec.EndUsage)
}

// A loop that stands fails the probe; a process without one does not.
func TestProbeOfALoop(t *testing.T) {
	now := time.Now()
	for name, tt := range map[string]struct {
		turned *time.Time
		want   int
	}{"none": {nil, 204}, "turns": {&now, 204}, "slow": {new(now.Add(-4 * time.Minute)), 204}, "stands": {new(now.Add(-6 * time.Minute)), 503}} {
		var l life
		l.turned.Store(tt.turned)
		w := httptest.NewRecorder()
		l.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		if w.Code != tt.want {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}
