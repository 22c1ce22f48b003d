package kubernetes

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/run"
)

// TestSettledCollection: a collection that failed in part takes the place of no
// other, and says so.
func TestSettledCollection(t *testing.T) {
	broken := errors.New("the connection broke")
	for _, tt := range []struct {
		name   string
		before string // "" is nothing
		failed error
		want   string
		says   []string
	}{
		{"first", "", nil, "new", nil},
		{"first, half", "", broken, "new", []string{"the connection broke"}},
		{"again", "old", nil, "new", nil},
		{"again, half", "old", broken, "old", []string{"the connection broke", "what was collected before is still in "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			at := t.TempDir()
			half, folder := filepath.Join(at, ".collect-1"), filepath.Join(at, "run-1")
			write := func(folder, text string) {
				t.Helper()
				if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "is"), []byte(text), 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			write(half, "new")
			if tt.before != "" {
				write(folder, tt.before)
			}
			err := settle(half, folder, tt.failed)
			if (err != nil) != (tt.failed != nil) || tt.failed != nil && !errors.Is(err, tt.failed) {
				t.Fatalf("failed with %v: %v", tt.failed, err)
			}
			for _, says := range tt.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%v does not say %q", err, says)
				}
			}
			if got, err := os.ReadFile(filepath.Join(folder, "is")); err != nil || string(got) != tt.want {
				t.Errorf("the folder has the %s one, want the %s one: %v", got, tt.want, err)
			}
			if _, err := os.Lstat(half + ".old"); err == nil {
				t.Error("what was replaced is still there")
			}
		})
	}
}

// TestCollectedLogsStayInTheirFolder: a link in the folder of logs is not
// followed out of it.
func TestCollectedLogsStayInTheirFolder(t *testing.T) {
	at := run.Folder(t.TempDir())
	secret := filepath.Join(t.TempDir(), "secret")
	if err := errors.Join(os.Mkdir(at.Logs(), 0o700), os.WriteFile(secret, []byte("secret\n"), 0o600), os.Symlink(secret, filepath.Join(at.Logs(), "worker-0.log"))); err != nil {
		t.Fatal(err)
	}
	_, err := collectedLogs(at, launch.LogOptions{}, func(l launch.Line) error {
		t.Errorf("it gives %q", l.Text)
		return io.EOF
	})
	if err == nil {
		t.Error("a link was followed")
	}
}
