package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// How a run ended comes first, unless the disk is why.
func TestUnwritten(t *testing.T) {
	full := errors.New("no space left on device")
	for _, c := range []struct {
		in   spec.Status
		disk bool
	}{
		{spec.Status{Phase: spec.Running, Message: "starting"}, true},
		{spec.Status{Phase: spec.Stopped, Cause: spec.CauseRestarts, Message: "coordinator 0 ended"}, true},
		{spec.Status{Phase: spec.Stopped, Cause: spec.CauseDisk, Message: "the ledger"}, false},
		{spec.Status{Phase: spec.Stopped, Cause: spec.CauseRequest, Message: "stopped by request"}, false},
		{spec.Status{Phase: spec.Succeeded}, false},
		{spec.Status{Phase: spec.Failed, Message: "it diverged"}, false},
	} {
		got := unwritten(c.in, full)
		if !c.disk && (got.Phase != c.in.Phase || got.Cause != c.in.Cause || got.Message != c.in.Message) {
			t.Errorf("%+v becomes %+v", c.in, got)
		}
		if c.disk && (got.Phase != spec.Stopped || got.Cause != spec.CauseDisk || !strings.Contains(got.Message, full.Error()) ||
			strings.Contains(got.Message, "coordinator 0") != (c.in.Cause == spec.CauseRestarts)) {
			t.Errorf("%+v becomes %+v", c.in, got)
		}
	}
}

// The final status fits into the room that was kept, whatever it holds, and the
// room is gone afterwards.
func TestRoom(t *testing.T) {
	f := run.Folder(t.TempDir())
	r, err := keepRoom(f)
	if err != nil {
		t.Fatal(err)
	}
	s := spec.Status{Run: "r", Phase: spec.Stopped, Cause: spec.CauseDisk, Message: "why", Log: strings.Repeat("line\n", 10_000)}
	if err := r.write(f, s); err != nil {
		t.Fatal(err)
	}
	var got spec.Status
	if err := run.ReadJSON(f.StatusFile(), &got); err != nil || got.Message != "why" || !strings.HasSuffix(s.Log, got.Log) || got.Log == "" {
		t.Errorf("%+v, %v", got, err)
	}
	if r, err = keepRoom(f); err != nil {
		t.Fatal(err)
	}
	if got, err = r.conclude(f, s); err != nil || got.Log != s.Log {
		t.Errorf("with room it is %d bytes of log, %v", len(got.Log), err)
	}
	if left, _ := filepath.Glob(filepath.Join(string(f), "*")); len(left) != 1 || left[0] != f.StatusFile() {
		t.Errorf("left are %v", left)
	}
	if err := writable(f); err != nil {
		t.Error(err)
	}
	if err := writable(run.Folder(filepath.Join(string(f), "none"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there is writable: %v", err)
	}
}
