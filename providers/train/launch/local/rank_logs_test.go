package local

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// The ranks of a program have logs in a folder of their agent, with older parts.
func TestRankLogs(t *testing.T) {
	l, id, f := over(t, spec.Failed)
	for name, text := range map[string]string{
		"worker-0/rank-0.log.1": "old", "worker-0/rank-0.log": "new", "worker-1/rank-1.log": "other", "worker-0.log": "agent", "worker-0/notes.txt": "none",
	} {
		path := filepath.Join(f.Logs(), name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		say(t, path, text, "")
	}
	for _, tt := range []struct {
		want launch.LogOptions
		got  string
	}{
		{launch.LogOptions{}, "[worker-0 agent rank-0 old rank-0 new rank-1 other]"},
		{launch.LogOptions{Role: "rank-0"}, "[rank-0 old rank-0 new]"},
		{launch.LogOptions{Role: "worker-0"}, "[worker-0 agent rank-0 old rank-0 new]"},
		{launch.LogOptions{Role: "worker-1", Stream: launch.Stderr}, "[]"},
		{launch.LogOptions{Role: "rank-2"}, "[]"},
	} {
		var got []string
		err := l.Logs(t.Context(), id, tt.want, func(line launch.Line) error {
			got = append(got, line.Role, line.Text)
			return nil
		})
		if err != nil || fmt.Sprint(got) != tt.got {
			t.Errorf("%+v: %v, %v, want %s", tt.want, got, err, tt.got)
		}
	}
}

// A log that is rotated while it is followed loses no line, and gives none twice.
func TestRotatedRankLogIsFollowed(t *testing.T) {
	l, id, f := over(t, spec.Running)
	self, err := run.Self()
	if err == nil {
		err = run.WriteJSON(f.Supervisor(), run.Supervisor{Process: self})
	}
	path := filepath.Join(f.Logs(), "worker-0", "rank-0.log")
	if err == nil {
		err = os.Mkdir(filepath.Dir(path), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	say(t, path, "1", "")
	lines, ended := make(chan string, 100), make(chan error, 1)
	go func() {
		ended <- l.Logs(t.Context(), id, launch.LogOptions{Follow: true}, func(line launch.Line) error { lines <- line.Text; return nil })
	}()
	got := []string{<-lines}
	say(t, path, "2", "")
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	say(t, path, "3", "")
	got = append(got, <-lines, <-lines)
	if err := os.Remove(f.Supervisor()); err != nil {
		t.Fatal(err)
	}
	set(t, f, spec.Succeeded)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	close(lines)
	for line := range lines {
		got = append(got, line)
	}
	if !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("followed %q", got)
	}
}
