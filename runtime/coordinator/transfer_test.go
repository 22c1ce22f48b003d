package coordinator

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/certificate"
	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/spec"
)

// halfAndHalf stops a run in its middle and has other servers, as many as said,
// go on with it: what they have they got from the checkpoint. It gives the
// finished model's parts, and how often the run went back.
func halfAndHalf(t *testing.T, stream bool, servers int, between func(b *bench, newest string)) (hashes []string, st spec.Status) {
	t.Helper()
	s := pointsSpec()
	s.Deterministic, s.Optimizer.Momentum, s.LearningRate = true, 0.5, 0.5
	return halfAndHalfOf(t, s, stream, servers, between)
}

// halfAndHalfOf is halfAndHalf of a specification.
func halfAndHalfOf(t *testing.T, s spec.Spec, stream bool, servers int, between func(b *bench, newest string)) (hashes []string, st spec.Status) {
	t.Helper()
	s.Checkpoint.EverySteps, s.ParameterServer.Replicas = 6, 2
	gate := make(chan struct{})
	b := newBench(t, s, linear{gate: gate, size: 3 * 1000})
	b.stream = stream
	b = b.again() // with servers that know it
	stop := make(chan struct{})
	b.options.Stop = stop
	go func() {
		defer close(gate)
		for checkpoints, updates := range []int{6, 12, 15} {
			for b.seen("checkpoint") < checkpoints { // one that is due meanwhile is left out
				time.Sleep(time.Millisecond)
			}
			for b.seen("update") < updates {
				select {
				case gate <- struct{}{}:
				case <-time.After(time.Millisecond):
				}
			}
		}
		close(stop)
	}()
	if st := b.run(); st.Phase != spec.Stopped || st.Saved < 15 {
		t.Fatalf("status %+v", st)
	}
	found, err := b.options.Checkpoints.Names(t.Context(), spec.StepPrefix)
	if err != nil || len(found) < 2 {
		t.Fatalf("checkpoints %q (%v)", found, err)
	}
	between(b, found[len(found)-1])
	b.options.Stop, b.options.Spec.ParameterServer.Replicas = nil, servers
	b = b.again()
	st = b.run()
	if st.Phase != spec.Succeeded || st.Step != 36 || st.Records != 1800 {
		t.Fatalf("status %+v", st)
	}
	return b.partHashes(), st
}

// partHashes returns the hashes of the finished model's parts.
func (b *bench) partHashes() (hashes []string) {
	b.t.Helper()
	final := filepath.Base(b.final())
	m, err := b.options.Checkpoints.Manifest(b.t.Context(), final)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, part := range m.Parts {
		hashes = append(hashes, part.SHA256)
	}
	if ok, err := b.options.Checkpoints.Complete(b.t.Context(), final, m); !ok || err != nil {
		b.t.Errorf("the finished model is not complete: %v", err)
	}
	return hashes
}

// Servers that cannot reach the checkpoints send their part and get it back
// through the coordinator: the run is the same to the last bit.
func TestCheckpointsThroughTheCoordinator(t *testing.T) {
	none := func(*bench, string) {}
	for _, servers := range []int{2, 3, 1} {
		want, _ := halfAndHalf(t, false, servers, none)
		got, _ := halfAndHalf(t, true, servers, none)
		if diff := cmp.Diff(want, got); diff != "" || len(got) != servers {
			t.Errorf("%d servers: %s", servers, diff)
		}
	}
}

// A damaged part is seen on its way, and an older checkpoint is taken.
func TestDamagedPartsDoNotReachAServer(t *testing.T) {
	want, _ := halfAndHalf(t, true, 2, func(*bench, string) {})
	for _, stream := range []bool{false, true} {
		got, _ := halfAndHalf(t, stream, 2, func(b *bench, newest string) {
			parts, err := filepath.Glob(filepath.Join(b.options.Checkpoints.String(), newest, "server-1-*"))
			if err != nil || len(parts) != 1 {
				t.Fatal(parts, err)
			}
			data, err := os.ReadFile(parts[0])
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)-1] ^= 1 // the last byte of the last slot
			if err := os.WriteFile(parts[0], data, 0o600); err != nil {
				t.Fatal(err)
			}
		})
		if diff := cmp.Diff(want, got); diff != "" { // deterministic: the way does not matter
			t.Errorf("servers without a place %v: %s", stream, diff)
		}
	}
}

// A place that cannot be reached is no reason to begin anew.
func TestUnreachableCheckpointsStopTheRun(t *testing.T) {
	s := pointsSpec()
	s.Checkpoint.EverySteps = 6
	b := newBench(t, s, linear{})
	if st := b.run(); st.Phase != spec.Succeeded {
		t.Fatalf("status %+v", st)
	}
	b = b.again()
	b.options.Checkpoints = checkpoint.Folder("/a\x00b")
	if st := b.run(); st.Phase != spec.Stopped || st.Cause != spec.CauseDisk || st.Step != 0 {
		t.Errorf("status %+v", st)
	}
}

// With a certificate, all that a run says goes over TLS.
func TestRunWithACertificate(t *testing.T) {
	s := pointsSpec()
	s.Worker.Replicas, s.ParameterServer.Replicas, s.Checkpoint.EverySteps = 2, 2, 10
	b := newBench(t, s, linear{})
	made, err := certificate.Make("run")
	if err != nil {
		t.Fatal(err)
	}
	b.options.Credentials.Key, b.options.Credentials.Certificate = made, &made.Pin
	b = b.again()
	if st := b.run(); st.Phase != spec.Succeeded || st.Records != 1800 {
		t.Fatalf("status %+v", st)
	}
}
