package coordinator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/weights"
)

// exported trains, and returns the path and the hash of the model's file.
func exported(t *testing.T, size int) (st spec.Status, from spec.InitFrom) {
	t.Helper()
	b := newBench(t, pointsSpec(), linear{size: size})
	st = b.run()
	from.Path = filepath.Join(t.TempDir(), "m.safetensors")
	out, err := os.Create(from.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := weights.Export(t.Context(), b.options.Folder, weights.Latest, out); err != nil {
		t.Fatal(err)
	}
	w, err := weights.Open(t.Context(), from.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if from.Hash, err = w.Hash(t.Context()); err != nil {
		t.Fatal(err)
	}
	return st, from
}

// A run without epochs measures the model that it begins from, on any number of
// servers.
func TestEvaluatesOnly(t *testing.T) {
	was, from := exported(t, 0)
	for servers := range 3 {
		s := pointsSpec()
		s.Epochs, s.InitFrom, s.ParameterServer.Replicas = 0, from, servers+1
		b := newBench(t, s, linear{})
		st := b.run()
		if st.Phase != spec.Succeeded || st.Step != 0 || st.Records != 0 || st.Evaluated != 0 {
			t.Fatalf("status %+v", st)
		}
		for _, name := range []string{"loss", "accuracy"} {
			if st.Metrics[name] != was.Metrics[name] {
				t.Errorf("%s is %v, was %v", name, st.Metrics[name], was.Metrics[name])
			}
		}
		if _, err := weights.Open(t.Context(), string(b.options.Folder)); err != nil {
			t.Errorf("it has no model: %v", err)
		}
	}
}

// The model is read once: a run that goes on has its checkpoint.
func TestBegunRunNeedsNoFile(t *testing.T) {
	_, from := exported(t, 3*1000)
	s := pointsSpec()
	s.InitFrom, s.Deterministic, s.ParameterServer.Replicas = from, true, 2
	b := newBench(t, s, linear{size: 3 * 1000})
	if st := b.run(); st.Phase != spec.Succeeded {
		t.Fatalf("status %+v", st)
	}
	want := b.partHashes()
	got, _ := halfAndHalfOf(t, s, false, 2, func(*bench, string) {
		if err := os.Remove(from.Path); err != nil {
			t.Error(err)
		}
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A model that is not the planned one stops the run, since it may come back; a model
// of another network fails it.
func TestModelsThatCannotBegin(t *testing.T) {
	_, from := exported(t, 0)
	other := from
	other.Hash = "sha256:0"
	gone := from
	gone.Path += "-gone"
	for _, tt := range []struct {
		from  spec.InitFrom
		size  int
		phase spec.Phase
		want  string
	}{
		{from, 2, spec.Failed, `variable "w/weight" has the shape [2 2]`},
		{other, 0, spec.Stopped, "holds another model than planned"},
		{gone, 0, spec.Stopped, "no such file"},
	} {
		s := pointsSpec()
		s.InitFrom = tt.from
		st := newBench(t, s, linear{size: tt.size}).run()
		if st.Phase != tt.phase || !strings.Contains(st.Message, tt.want) ||
			st.Phase == spec.Failed && st.Reason != spec.ReasonRejected || st.Phase == spec.Stopped && st.Cause != spec.CauseData {
			t.Errorf("status %+v, want %q", st, tt.want)
		}
	}
}
