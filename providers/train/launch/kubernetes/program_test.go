package kubernetes

import (
	"errors"
	"testing"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// Pods do not run programs yet: no cluster is asked.
func TestProgramsAreRefused(t *testing.T) {
	l, s := New(nil, launch.Placement{}, ""), spec.DefaultProgram()
	if _, err := l.Start(t.Context(), "op", s, launch.Code{}); !errors.Is(err, errProgram) {
		t.Errorf("start: %v", err)
	}
	if err := l.Resume(t.Context(), "run-0123456789abcdef", s, launch.Code{}); !errors.Is(err, errProgram) {
		t.Errorf("resume: %v", err)
	}
}
