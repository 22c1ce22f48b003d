package connect

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Without a provider block, a login is what OpenSSH's would be.
func TestDefaultSSH(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("SSH_AUTH_SOCK", "")
	t.Setenv("STOKE_SSH_USER", "ops")
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Join(home, ".ssh"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, ".ssh", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := func() []string {
		t.Helper()
		s, diags := DefaultSSH(t.Context())
		if diags.HasError() {
			t.Fatal(diags)
		}
		target, err := s.Target(SSH{Hop: Hop{Address: "head", HostKey: "x"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if target.Credential.User != "ops" {
			t.Errorf("it logs in as %q", target.Credential.User)
		}
		return target.Credential.IdentityFiles
	}
	if got := files(); len(got) != 0 {
		t.Errorf("in an empty home there are %v", got)
	}
	write("id_ed25519", "a key")
	if got := files(); !slices.ContainsFunc(got, func(name string) bool { return strings.HasSuffix(name, "/id_ed25519") }) {
		t.Errorf("beside no configuration: %v", got)
	}
	write("special", "a key")
	write("config", "Host head\n  IdentityFile ~/.ssh/special\n")
	if got := files(); len(got) != 1 || !strings.HasSuffix(got[0], "/special") {
		t.Errorf("with a configuration: %v", got)
	}
	write("config", strings.Repeat("x", maxConfig+1))
	if _, diags := DefaultSSH(t.Context()); !diags.HasError() {
		t.Error("a file that is no configuration is taken for one")
	}
}
