package kubetest

import (
	"context"
	"syscall"
	"testing"
	"time"
)

// StopAPI ends the API server as a restart of its machine's services does, and
// returns when it has ended: connections are refused until StartAPI. Nobody else
// gets its port.
func (c *Cluster) StopAPI(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.server.stop(ctx, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
}

// KillAPI is StopAPI without a goodbye: open connections are cut.
func (c *Cluster) KillAPI(t testing.TB) {
	t.Helper()
	if !c.server.running() {
		t.Fatal("kill the API server: it is not running")
	}
	c.server.kill()
}

// StartAPI starts the API server after StopAPI or KillAPI, at the same endpoint,
// and returns when it is ready.
func (c *Cluster) StartAPI(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.serve(ctx); err != nil {
		t.Fatal(err)
	}
}

// Outage stops the API server and starts it again after a while. It returns when
// the server has stopped; wait returns when it is ready again, and must be called.
func (c *Cluster) Outage(t testing.TB, lasts time.Duration) (wait func()) {
	t.Helper()
	c.StopAPI(t)
	ctx, cancel := context.WithTimeout(t.Context(), lasts+patience)
	done := make(chan error, 1)
	go func() {
		select {
		case <-time.After(lasts):
			done <- c.serve(ctx)
		case <-ctx.Done():
			done <- ctx.Err()
		}
	}()
	return func() {
		t.Helper()
		defer cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

// PauseAPI makes the API server hang: connections are accepted, and nothing is
// answered until resume is called or the test ends.
func (c *Cluster) PauseAPI(t testing.TB) (resume func()) {
	t.Helper()
	if err := c.server.signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	c.Eventually(t, "the API server stands still", func(context.Context) (bool, error) { return c.server.still(), nil })
	resume = func() { _ = c.server.signal(syscall.SIGCONT) } // again, or after the end, it does nothing
	t.Cleanup(resume)
	return resume
}
