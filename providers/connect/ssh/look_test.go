package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/connect/ssh/sshtest"
)

// looker is a pool, a target, and how often sudo ran.
func looker(t *testing.T, c sshtest.Config) (*Pool, Target, func() int, *sshtest.Server) {
	t.Helper()
	var sudos atomic.Int64
	c.Before = func(line string) {
		if strings.Contains(line, "exec sudo") || strings.Contains(line, `exec \0047sudo`) || strings.Contains(line, "sudo") {
			sudos.Add(1)
		}
	}
	key, private := sshtest.NewKey(t)
	c.Authorized = append(c.Authorized, key.PublicKey())
	s := sshtest.New(t, c)
	address, port := s.Address()
	pool := &Pool{}
	t.Cleanup(pool.Close)
	credential := Credential{User: sshtest.User, PrivateKey: sshtest.PEM(t, private, ""), Sudo: true, SudoPassword: c.SudoPassword}
	return pool, Target{Hop: Hop{Address: address, Port: port, HostKey: s.HostKey(), Credential: credential}}, func() int { return int(sudos.Load()) }, s
}

func look(ctx context.Context, p *Pool, to Target, stdin string, args ...string) (Output, error) {
	return p.Run(ctx, to, func() Command {
		c := Command{Args: args, Root: true, Look: true}
		if stdin != "" {
			c.Stdin = strings.NewReader(stdin)
		}
		return c
	}, true)
}

// TestLook: whatever looks say, by themselves and at the same time, sudo runs once
// for all of them, and once more for a password.
func TestLook(t *testing.T) {
	for _, password := range []string{"", "secret"} {
		pool, to, sudos, _ := looker(t, sshtest.Config{SudoPassword: password})
		whole := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
		big := filepath.Join(t.TempDir(), "big")
		if err := os.WriteFile(big, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			stdin, script string
			out, said     string
			status        int
		}{
			{"", "echo a b; echo c >&2", "a b\n", "c\n", 0},
			{"", `printf 'x\0\377\n\nend '`, "x\x00\xff\n\nend ", "", 0},
			{"", ":", "", "", 0},
			{"", "printf '%s|' \"$@\"", "it's|a  b|\\0101\n!|", "", 0},
			{"", "echo no >&2; exit 3", "", "no\n", 3},
			{"", "kill -9 $$", "", "Killed\n", 137},
			{"in\x00put\n", "cat", "in\x00put\n", "", 0},
			{"not read", "exit 0", "", "", 0},
			{"", "cat; echo $AS_ROOT", "yes\n", "", 0},
			{"", "cat " + big, string(whole), "", 0},
			{"", "cat " + big + " >&2", "", string(whole), 0},
			{"", "umask 077; cd /; set -f; exit 0", "", "", 0},
			{"", "umask; pwd", "", "", 0},
		} {
			out, err := look(t.Context(), pool, to, c.stdin, "sh", "-c", c.script, "sh", "it's", "a  b", "\\0101\n!")
			if c.script == "umask; pwd" {
				if strings.HasPrefix(string(out.Stdout), "0077\n/\n") {
					t.Errorf("one look is left in the next: %s", out.Stdout)
				}
				continue
			}
			var failed *CommandError
			if (err != nil) != (c.status != 0) || c.status != 0 && (!errors.As(err, &failed) || failed.Status != c.status) {
				t.Errorf("%s: %v, want status %d", c.script, err, c.status)
			}
			if string(out.Stdout) != c.out || string(out.Stderr) != c.said {
				t.Errorf("%s: %.80q %.80q", c.script, out.Stdout, out.Stderr)
			}
		}
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				if out, err := look(t.Context(), pool, to, "", "echo", fmt.Sprint(i)); err != nil || string(out.Stdout) != fmt.Sprintln(i) {
					t.Errorf("%d: %q %v", i, out.Stdout, err)
				}
			})
		}
		all.Wait()
		if n := sudos(); n > 2 || password == "" && n != 1 {
			t.Errorf("%d sudos, password %q", n, password)
		}
	}
}

// TestLookEnds: a look that is given up, a connection that breaks, a sudo that
// refuses, and a machine that lets in one session at a time.
func TestLookEnds(t *testing.T) {
	pool, to, sudos, s := looker(t, sshtest.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for sudos() == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	if _, err := look(ctx, pool, to, "", "sleep", "60"); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
	if out, err := look(t.Context(), pool, to, "", "echo", "again"); err != nil || string(out.Stdout) != "again\n" {
		t.Errorf("after one that was given up: %q %v", out.Stdout, err)
	}
	s.Drop()
	if out, err := look(t.Context(), pool, to, "", "echo", "anew"); err != nil || string(out.Stdout) != "anew\n" || sudos() != 3 {
		t.Errorf("after the connection broke: %q %v, %d sudos", out.Stdout, err, sudos())
	}
	if _, err := look(t.Context(), pool, to, "", "sh", "-c", "kill -9 $PPID; sleep 1"); err == nil {
		t.Error("the shell was killed, and nobody says so")
	}
	if out, err := look(t.Context(), pool, to, "", "echo", "anew"); err != nil || string(out.Stdout) != "anew\n" {
		t.Errorf("after the shell was killed: %q %v", out.Stdout, err)
	}

	pool, to, _, _ = looker(t, sshtest.Config{Sudo: sshtest.SudoUnlisted})
	if _, err := look(t.Context(), pool, to, "", "true"); !IsPermanent(err) || !strings.Contains(err.Error(), "cannot become root by sudo") {
		t.Errorf("refused: %v", err)
	}
	pool, to, _, _ = looker(t, sshtest.Config{MaxSessions: 1})
	for range 3 {
		if _, err := look(t.Context(), pool, to, "", "true"); err != nil {
			t.Errorf("a look where there is one session at a time: %v", err)
		}
		if _, err := pool.Run(t.Context(), to, func() Command { return Command{Args: []string{"true"}} }, true); err != nil {
			t.Errorf("a command where there is one session at a time: %v", err)
		}
	}
}

// TestSlowSudo: who waits for sudo is told why, while it waits, and once.
func TestSlowSudo(t *testing.T) {
	if slowSudo > 5*time.Second {
		t.Errorf("whoever waits is told why after %s", slowSudo)
	}
	let := filepath.Join(t.TempDir(), "let")
	pool, to, _, _ := looker(t, sshtest.Config{SudoWaits: let})
	var told atomic.Int64
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	hosts, _ := os.ReadFile("/etc/hosts")
	pool.Slow = func(ctx context.Context, host, why string) {
		told.Add(1)
		missing := !strings.Contains(string(hosts), name)
		if host == "" || missing != strings.Contains(why, "127.0.1.1 "+name) {
			t.Errorf("%s is slow: %s", host, why)
		}
		if err := os.WriteFile(let, nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		if out, err := look(t.Context(), pool, to, "", "echo", "there"); err != nil || string(out.Stdout) != "there\n" {
			t.Errorf("%q %v", out.Stdout, err)
		}
		if err := os.Remove(let); err != nil {
			t.Fatal(err)
		}
		pool.Forget(to) // another connection
		if told.Load() != 1 {
			if err := os.WriteFile(let, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if told.Load() != 2 {
		t.Errorf("it was told %d times for two connections", told.Load())
	}
}
