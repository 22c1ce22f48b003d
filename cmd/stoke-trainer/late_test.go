package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stokehq/stoke/plan/state/store/storetest"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// asTrainer, in the environment of the test's own program, makes it the trainer,
// with an engine that stalls.
const asTrainer = "STOKE_TRAINER_TEST_ROLE"

// trainerVersion names the version of the released trainer for such a process.
const trainerVersion = "STOKE_TRAINER_TEST_VERSION"

// stalls is the step of a process at which the engine stalls, and how long it
// then does, whatever becomes of its lease: several times as long as the lease
// lasts in the test.
const (
	stalls    = 20
	stallTime = 6 * time.Second
	leaseTime = "1s"
)

// stalling is an engine with one step that takes very long.
type stalling struct{ engine.Engine }

func (e stalling) Build(m *model.Model, o engine.Options) (engine.Replica, error) {
	r, err := e.Engine.Build(m, o)
	return &stallingReplica{Replica: r}, err
}

type stallingReplica struct {
	engine.Replica
	steps atomic.Int64
}

func (r *stallingReplica) Step(ctx context.Context, s engine.Staged, p engine.Pass) (engine.Result, error) {
	if r.steps.Add(1) == stalls {
		time.Sleep(stallTime)
		ctx = context.WithoutCancel(ctx) // and then comes to an end all the same
	}
	return r.Replica.Step(ctx, s, p)
}

// TestExpiredLease has a worker that lives but gets nowhere with a lease: others
// get its records, and what it has of them in the end does not count.
func TestExpiredLease(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := long()
	s.Epochs, s.Checkpoint.EverySteps = 4, 0
	f := run.Folder(filepath.Join(t.TempDir(), "run"))
	if err := f.Create(s); err != nil {
		t.Fatal(err)
	}
	server, coordinator := address(t), address(t)
	byHand(t, f, "ps", "--index", "0", "--listen", server, "--accounts", accounts(f))
	coordinating := byHand(t, f, "coordinator", "--listen", coordinator, "--state", string(f), "--servers", server, "--lease-timeout", leaseTime)
	work := func(program, index string) {
		byHandOf(t, f, program, "worker", "--index", index, "--coordinator", coordinator, "--servers", server, "--accounts", accounts(f), "--threads", "1")
	}
	log := filepath.Join(f.Logs(), "coordinator-by-hand.log")
	work(self, "0")
	eventually(t, "a lease expires", func() bool {
		return bytes.Contains(must(os.ReadFile(log)), []byte("worker makes no progress"))
	})
	work(trainer, "1")
	if err := coordinating.Wait(); err != nil {
		t.Fatalf("the coordinator: %v", err)
	}
	var st spec.Status
	if err := run.ReadJSON(f.StatusFile(), &st); err != nil || st.Phase != spec.Succeeded || st.Records != records(s) {
		t.Errorf("status %+v, %v", st, err)
	}
	checkLedger(t, f, s, 1500)
}

// TestServerKilledInAFinalSave kills a server while it writes its part of the
// finished model: the run goes on from its newest checkpoint, and what it then
// finishes has every record once.
func TestServerKilledInAFinalSave(t *testing.T) {
	if raceBuild {
		t.Skip("a program of the race detector has no buckets")
	}
	t.Parallel()
	var cut sync.Once
	begun, killed := make(chan struct{}), make(chan struct{})
	s3 := &storetest.S3{Bucket: "models", AccessKey: "key", SecretKey: "secret"}
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/final") {
			first := false
			cut.Do(func() { first = true })
			if first { // never answered
				close(begun)
				<-killed
				panic(http.ErrAbortHandler)
			}
		}
		s3.ServeHTTP(w, r)
	}))
	t.Cleanup(slow.Close)
	s := long()
	s.Epochs, s.Checkpoint.EverySteps = 4, 40
	f := run.Folder(filepath.Join(t.TempDir(), "run"))
	if err := f.Create(s); err != nil {
		t.Fatal(err)
	}
	place := "s3://models/one?region=eu-west-1&use_path_style=true&endpoint=" + slow.URL
	server, coordinator := address(t), address(t)
	serve := func() (kill func()) {
		cmd := byHand(t, f, "ps", "--index", "0", "--listen", server, "--accounts", accounts(f), "--checkpoints", place)
		return func() {
			cmd.Process.Kill()
			cmd.Wait()
		}
	}
	kill := serve()
	coordinating := byHand(t, f, "coordinator", "--listen", coordinator, "--state", string(f), "--servers", server, "--checkpoints", place)
	for _, index := range []string{"0", "1"} {
		byHand(t, f, "worker", "--index", index, "--coordinator", coordinator, "--servers", server, "--accounts", accounts(f), "--threads", "1")
	}
	select {
	case <-begun:
	case <-time.After(10 * time.Minute):
		t.Fatal("no final model is saved")
	}
	kill()
	close(killed)
	serve()
	if err := coordinating.Wait(); err != nil {
		t.Fatalf("the coordinator: %v", err)
	}
	var st spec.Status
	if err := run.ReadJSON(f.StatusFile(), &st); err != nil || st.Phase != spec.Succeeded || st.Records != records(s) || st.Resumed == 0 {
		t.Errorf("status %+v, %v", st, err)
	}
	checkLedger(t, f, s, 1500)
}
