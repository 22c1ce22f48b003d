package slot

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Holders names who has a slot, leaves the slots as they are, and makes no folder.
func TestHolders(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "slots")
	if held, err := Holders(folder); err != nil || len(held) != 0 {
		t.Errorf("without the folder: %v, %v", held, err)
	}
	if _, err := os.Stat(folder); err == nil {
		t.Error("the folder was made")
	}
	s, err := Take(t.Context(), gpus(2), Options{Run: "mine", Folder: folder, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	held, err := Holders(folder)
	if err != nil || len(held) != 1 || !strings.Contains(held["GPU-0000"], `run "mine", process`) {
		t.Errorf("%v, %v", held, err)
	}
	again, err := Take(t.Context(), gpus(2), Options{Run: "other", Folder: folder, Log: slog.New(slog.DiscardHandler)})
	if err != nil || again.Device.Index != 1 {
		t.Fatalf("after a look at the holders: %+v, %v", again, err)
	}
	s.Release()
	if held, err := Holders(folder); err != nil || len(held) != 1 || !strings.Contains(held["GPU-0001"], "other") {
		t.Errorf("after a release: %v, %v", held, err)
	}
	again.Release()
}
