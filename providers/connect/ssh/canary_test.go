package ssh

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/stokehq/stoke/providers/connect/ssh/sshtest"
)

// TestCanaries puts something to be recognised by into every kind of secret and
// walks through what succeeds and what fails: no error, no output, no file and
// no process's arguments show it.
func TestCanaries(t *testing.T) {
	canary := "canary" + strings.ToLower(rand.Text()) // other tests have canaries in their arguments
	signer, private := sshtest.NewKey(t)
	locked := sshtest.PEM(t, private, canary+"-phrase")
	damaged := strings.Replace(sshtest.PEM(t, private, ""), "AAAA", "AAAB", 1)
	full := Credential{Password: canary + "-login", PrivateKey: locked, Passphrase: canary + "-phrase", Sudo: true, SudoPassword: canary + "-sudo"}
	edited := func(f func(*Credential)) Credential { c := full; f(&c); return c }
	secrets := []string{canary, strings.Split(locked, "\n")[2], strings.Split(damaged, "\n")[2]}

	// Whatever reads arguments sees these files.
	var lines []string
	var mu sync.Mutex
	watched := func(c sshtest.Config) *sshtest.Server {
		c.Before = func(line string) { mu.Lock(); lines = append(lines, line); mu.Unlock() }
		return sshtest.New(t, c)
	}
	base := sshtest.Config{Authorized: []ssh.PublicKey{signer.PublicKey()}, Password: canary + "-login", SudoPassword: canary + "-sudo"}
	with := func(f func(*sshtest.Config)) sshtest.Config { c := base; f(&c); return c }
	type way struct {
		name   string
		server sshtest.Config
		c      Credential
		args   []string
		fails  bool
	}
	echo := []string{"sh", "-c", "cat; ps -eo args; cat /proc/self/environ"}
	ways := []way{
		{"succeeds", base, full, echo, false},
		{"command fails", base, full, []string{"sh", "-c", "echo broken >&2; exit 3"}, true},
		{"the machine echoes what it is given", base, full, []string{"sh", "-c", `p=can; printf "${p}` + canary[3:] + `-%s " sudo login phrase >&2; exit 3`}, true},
		{"wrong passphrase", base, edited(func(c *Credential) { c.Passphrase = canary + "-wrong" }), echo, true},
		{"no passphrase", base, edited(func(c *Credential) { c.Passphrase = "" }), echo, true},
		{"damaged key", base, edited(func(c *Credential) { c.PrivateKey = damaged }), echo, true},
		{"key as a path", base, edited(func(c *Credential) { c.PrivateKey = canary + "/key" }), echo, true},
		{"wrong password", with(func(s *sshtest.Config) { s.Authorized = nil }), edited(func(c *Credential) { c.Password = canary + "-wrong" }), echo, true},
		{"wrong sudo password", base, edited(func(c *Credential) { c.SudoPassword = canary + "-wrong" }), echo, true},
		{"unlisted", with(func(s *sshtest.Config) { s.Sudo = sshtest.SudoUnlisted }), full, echo, true},
		{"shell that reads the password aloud", with(func(s *sshtest.Config) { s.Shell = shell(t, "echo "+canary+"-login "+canary+"-sudo; exit 1") }), full, echo, true},
		{"second factor", with(func(s *sshtest.Config) {
			s.Authorized = nil
			s.Interactive = []string{"Password:", "Code:"}
		}), full, echo, true},
		{"no forwarding", with(func(s *sshtest.Config) { s.NoCommands = true }), full, echo, true},
	}
	check := func(name string, what any) {
		t.Helper()
		text := fmt.Sprintf("%v %+v %q", what, what, what)
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s: %q is in %.2000s", name, secret, text)
			}
		}
	}
	p := &Pool{Timeouts: Timeouts{Begin: 20 * time.Second}} // one, so that the key is decrypted once
	defer p.Close()
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			s := watched(w.server)
			target := Target{Hop: hop(s, w.c)}
			out, err := p.Run(t.Context(), target, func() Command { return Command{Args: w.args, Root: true} }, false)
			if (err != nil) != w.fails {
				t.Errorf("got %v", err)
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				check(w.name, e)
			}
			check(w.name, string(out.Stdout))
			if !strings.Contains(w.name, "echoes") {
				check(w.name, string(out.Stderr))
			}
			name := filepath.Join(s.Home, "file")
			check(w.name+", a file", p.Put(t.Context(), target, File{Path: name, Content: []byte(canary + "-content"), Mode: 0o600, Root: true}))
			filepath.WalkDir(s.Home, func(path string, d os.DirEntry, _ error) error {
				if d == nil || d.IsDir() || path == name || filepath.Base(path) == "sudo" { // the double's own
					return nil
				}
				if content, err := os.ReadFile(path); err == nil {
					check(path, string(content))
				}
				return nil
			})
		})
	}
	mu.Lock()
	defer mu.Unlock()
	for _, line := range lines {
		check("a command line", line)
	}
	if len(lines) < 8 {
		t.Errorf("only %d commands ran", len(lines))
	}
}
