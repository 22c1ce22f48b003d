package connect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestJumpKeys: a revoked key of a jump host is none, and the key of an authority
// signs keys and is none itself.
func TestJumpKeys(t *testing.T) {
	key, gone, authority := hostKey(t), hostKey(t), hostKey(t)
	file := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(file, []byte("jump.example "+key+"\njump.example "+gone+"\n@cert-authority *.example "+authority+"\n@revoked * "+gone+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := lookUp([]string{file}, "jump.example:22")
	if want := key + "\n@cert-authority " + authority; err != nil || got != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
	if got, err := lookUp([]string{file}, "other.org:22"); err != nil || got != "" {
		t.Errorf("another host: %v %q", err, got)
	}
	if got, _ := lookUp([]string{file}, "second.example:22"); strings.Count(got, "\n") != 0 || !strings.HasPrefix(got, "@cert-authority ") {
		t.Errorf("an authority alone: %q", got)
	}
}
