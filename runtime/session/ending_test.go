package session

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/api"
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

// A change that arrives as the coordinator ends is refused: an empty answer would
// look like a success.
func TestChangeAtTheEnd(t *testing.T) {
	w := newBench(t, 1).opened() // whose loop does not run any more
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	request := httptest.NewRequest(http.MethodPost, api.PathLive, strings.NewReader(`{"workers":2}`)).WithContext(ctx)
	for cap(w.events) > len(w.events) { // nobody takes events
		w.events <- nil
	}
	answer := httptest.NewRecorder()
	server{w.Session}.postLive(answer, request)
	if answer.Code != http.StatusServiceUnavailable || !strings.Contains(answer.Body.String(), "over") {
		t.Errorf("%d %s", answer.Code, answer.Body)
	}
}
