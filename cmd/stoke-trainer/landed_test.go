package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// TestRunsOfEarlierVersionsGoOn resumes runs that earlier versions of
// stoke-trainer stopped: the first one (testdata/landed), and the last one whose
// manifests have a checksum of their values (testdata/landed-2, commit 2bfdd80).
// Their data is made again.
func TestRunsOfEarlierVersionsGoOn(t *testing.T) {
	for name, step := range map[string]int64{"landed": 87, "landed-2": 49} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			goOn(t, name, step)
		})
	}
}

// goOn resumes a recorded run that stopped at a step.
func goOn(t *testing.T, name string, step int64) {
	t.Helper()
	f := run.Folder(filepath.Join(t.TempDir(), "run"))
	if err := os.CopyFS(string(f), os.DirFS(filepath.Join("testdata", name))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.Token(), []byte("0123456789abcdef0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := f.Status()
	if err != nil || before.Phase != spec.Stopped {
		t.Fatalf("status %+v, %v", before, err)
	}
	s, err := f.ReadSpec()
	if err != nil {
		t.Fatal(err)
	}
	if s.Hash() != before.Hash || s.Dataset.Hash != digits.Hash || s.Checkpoint.EverySeconds == 0 {
		t.Errorf("spec %+v: hash %s, the run's is %s; data %s, made %s", s, s.Hash(), before.Hash, s.Dataset.Hash, digits.Hash)
	}
	s.Dataset.Path = digits.Path
	if err := f.WriteSpec(s); err != nil {
		t.Fatal(err)
	}
	r := relaunch(t, f)
	r.start()
	st := r.wait()
	if st.Phase != spec.Succeeded || st.Step != 600 || st.Hash != before.Hash || st.Ran <= before.Metrics["training_seconds"] {
		r.dump()
		t.Fatalf("status %+v", st)
	}
	book := ledger.NewBook(1500)
	all := updates(t, f)
	for _, r := range all {
		if err := book.Commit(spec.Contribution{Epoch: r.Epoch, Start: r.Start, End: r.End}); err != nil {
			t.Fatal(err)
		}
	}
	if book.Records() != st.Records || len(all) != 600 {
		t.Errorf("%d updates of %d records, the status has %d", len(all), book.Records(), st.Records)
	}
	s.Epochs = int(st.Records / 1500) // it ends by its steps
	checkRecordsFrom(t, f, s, 1500, 2)
	noted, _ := events(t, f.Metrics())
	for _, e := range noted {
		if e.Type == spec.EventRestore && spec.TermOf(e.Term, e.Generation) > 1 && e.Step != step {
			t.Errorf("went back to step %d, not %d", e.Step, step)
		}
	}
}
