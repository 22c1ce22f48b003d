package ssh

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/connect/ssh/sshtest"
)

func TestPut(t *testing.T) {
	s := serverWith(t, sshtest.Config{})
	c := dialled(t, Target{Hop: hop(s, byPassword)})
	folder := filepath.Join(s.Home, "a * folder")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(folder, "-it's a file")
	left := filepath.Join(folder, ".-it's a file.stoke-12345678")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"first\n", "", "second\x00'$(id)", strings.Repeat("long", 1<<18)} {
		for _, f := range []File{
			{Path: name, Content: []byte(content), Mode: 0o640},
			{Path: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }, Size: int64(len(content)), Mode: 0o755 | fs.ModeSetgid},
		} {
			if err := c.Put(t.Context(), f); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(name)
			info, _ := os.Stat(name)
			if err != nil || string(got) != content || info.Mode() != f.Mode {
				t.Errorf("%q %v %v", got, info.Mode(), err)
			}
		}
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 1 {
		t.Errorf("left in the folder: %v", entries)
	}
}

// TestPutFails leaves the old file, and nothing beside it.
func TestPutFails(t *testing.T) {
	s := serverWith(t, sshtest.Config{})
	c := dialled(t, Target{Hop: hop(s, byPassword)})
	name := filepath.Join(s.Home, "files", "x")
	if err := os.Mkdir(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	stream := func(content string) func() (io.ReadCloser, error) {
		return func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }
	}
	for want, f := range map[string]File{
		"only a part of the file arrived": {Path: name, Open: stream("short"), Size: 6, Mode: 0o600},
		"invalid user":                    {Path: name, Owner: "no-such-user", Mode: 0o600},
		"is a folder":                     {Path: s.Home, Mode: 0o600},
		"No such file":                    {Path: s.Home + "/no/such/x", Mode: 0o600},
		"not absolute":                    {Path: "x"},
		"plain":                           {Path: "/tmp/../x"},
		"gone":                            {Path: name, Open: func() (io.ReadCloser, error) { return nil, errors.New("gone") }},
		"no more":                         {Path: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(failing{}), nil }, Size: 3},
	} {
		err := c.Put(t.Context(), f)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), f.Path) {
			t.Errorf("%s: %v", want, err)
		}
	}
	got, err := os.ReadFile(name)
	if entries, _ := os.ReadDir(filepath.Dir(name)); err != nil || string(got) != "old" || len(entries) != 1 {
		t.Errorf("%q %v; in the folder: %v", got, err, entries)
	}
}

// cutOff writes a file over a connection that breaks. There is the old file or
// the new one, nobody waits for ever, and no error counts as permanent. It
// reports whether the file was written.
func cutOff(t *testing.T, s *sshtest.Server, where string) bool {
	t.Helper()
	name := filepath.Join(s.Home, "file")
	old, fresh := strings.Repeat("old", 500), strings.Repeat("new!", 500)
	if err := os.WriteFile(name, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	var out Output
	err := func() error {
		c, err := Dial(t.Context(), Target{Hop: hop(s, Credential{Password: password, Sudo: true, SudoPassword: canary})}, Timeouts{})
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.Put(t.Context(), File{Path: name, Content: []byte(fresh), Mode: 0o600, Root: true}); err != nil {
			return err
		}
		out, err = c.Run(t.Context(), Command{Args: []string{"cat", name}, Root: true})
		return err
	}()
	if IsPermanent(err) || strings.Contains(fmt.Sprint(err), canary) {
		t.Errorf("%s: %v counts as permanent, or tells a secret", where, err)
	}
	s.Drop()
	got, readErr := os.ReadFile(name)
	if readErr != nil || string(got) != old && string(got) != fresh {
		t.Fatalf("%s the file has %d bytes, %v", where, len(got), readErr)
	}
	if err == nil && (string(got) != fresh || string(out.Stdout) != fresh) {
		t.Fatalf("%s: no error, and the old file or a part of the output", where)
	}
	return err == nil
}

// TestCut breaks the connection after so many bytes in either direction. The
// large suite does it after every single one.
func TestCut(t *testing.T) {
	cutEverywhere(t, 131)
}

func cutEverywhere(t *testing.T, step int64) {
	for _, direction := range []string{"to the machine", "from the machine"} {
		t.Run(direction, func(t *testing.T) {
			t.Parallel()
			// A short key exchange: each of its bytes is another connection.
			s := serverWith(t, sshtest.Config{SudoPassword: canary, KeyExchanges: []string{"curve25519-sha256"}})
			done := 0
			for cut := int64(1); done < 3; cut += step {
				s.CutRead.Store(cut)
				if direction == "from the machine" {
					s.CutRead.Store(0)
					s.CutWrite.Store(cut)
				}
				if cutOff(t, s, fmt.Sprintf("after %d bytes %s", cut, direction)) {
					done++
				}
			}
		})
	}
}
