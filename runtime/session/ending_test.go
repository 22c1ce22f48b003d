package session

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// A status that is still being written when the run ends does not come after its end.
func TestEndIsTheLastStatus(t *testing.T) {
	b := newBench(t, 1)
	folder := b.options.Folder
	var failed error
	b.options.Ended = func(s spec.Status) { failed = run.WriteJSON(folder.StatusFile(), s) }
	w := b.opened()
	w.status.Store(&spec.Status{Phase: spec.Running, Message: strings.Repeat("x", 8<<20)}) // long to write
	var saving sync.WaitGroup
	saving.Go(func() { statusFile{w.Session}.save(func(error) {}) })
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		drafts, _ := filepath.Glob(filepath.Join(string(folder), ".status.json*"))
		if _, err := os.Stat(folder.StatusFile()); err == nil || len(drafts) > 0 || time.Now().After(deadline) {
			break
		}
	}
	w.end(Failure{spec.ReasonDiverged, "it ends"})
	saving.Wait()
	var s spec.Status
	if err := errors.Join(failed, run.ReadJSON(folder.StatusFile(), &s)); err != nil || s.Phase != spec.Failed || s.Ended.IsZero() {
		t.Errorf("the status is %s, ended %v: %v", s.Phase, s.Ended, err)
	}
}
