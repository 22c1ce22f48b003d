package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/stokehq/stoke/providers/connect/ssh/sshtest"
)

func TestRun(t *testing.T) {
	s := serverWith(t, sshtest.Config{Profile: "Welcome!\nLast login: never"})
	c := dialled(t, Target{Hop: hop(s, byPassword)})
	out, err := c.Run(t.Context(), Command{Args: []string{"sh", "-c", `cat; echo "$1" >&2`, "sh", "it's $HOME\\!\n"}, Stdin: strings.NewReader("in\x00put")})
	if err != nil || string(out.Stdout) != "in\x00put" || string(out.Stderr) != "it's $HOME\\!\n\n" {
		t.Errorf("%q %q %v", out.Stdout, out.Stderr, err)
	}
	_, err = c.Run(t.Context(), Command{Args: []string{"sh", "-c", "echo one; echo two >&2; exit 7"}})
	var failed *CommandError
	if !errors.As(err, &failed) || failed.Status != 7 || failed.Output != "two" || failed.Command != `sh -c 'echo one; echo two >&2; exit 7'` {
		t.Errorf("%#v", err)
	}
	if _, err = c.Run(t.Context(), Command{Args: []string{"/no/such/program"}}); !errors.As(err, &failed) || failed.Status != 127 {
		t.Error(err)
	}
	line := bytes.Repeat([]byte("x"), 1<<20)
	out, err = c.Run(t.Context(), Command{Args: []string{"cat"}, Stdin: bytes.NewReader(line)})
	if err != nil || !bytes.Equal(out.Stdout, line) {
		t.Errorf("a line of 1 MB: %d bytes, %v", len(out.Stdout), err)
	}
	if _, err = c.Run(t.Context(), Command{Args: []string{"sh", "-c", "cat >&2; exit 1"}, Stdin: bytes.NewReader(line)}); len(err.Error()) > 2000 {
		t.Errorf("a message of %d bytes", len(err.Error()))
	}
	if _, err = c.Run(t.Context(), Command{Args: []string{"cat"}, Stdin: io.MultiReader(strings.NewReader("a"), failing{})}); err == nil || !strings.Contains(err.Error(), "no more") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(errors.New("enough")) })
	if _, err = c.Run(ctx, Command{Args: []string{"sleep", "60"}}); err == nil || err.Error() != "enough" {
		t.Error(err)
	}
}

// What runs comes on standard input: the command line, which sudo writes into the
// machine's log, has what a script is for.
func TestLabel(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	s := serverWith(t, sshtest.Config{Before: func(line string) { mu.Lock(); lines = append(lines, line); mu.Unlock() }})
	c := dialled(t, Target{Hop: hop(s, Credential{Password: password, Sudo: true})})
	script := []string{"sh", "-c", "# try it\ncat; echo secretive >&2; exit 7", "sh", "two words", strings.Repeat("long", 200)}
	for _, run := range []func(context.Context, Command) (Output, error){c.Run, c.Look} {
		_, err := run(t.Context(), Command{Args: script, Root: true})
		var failed *CommandError
		if !errors.As(err, &failed) || !strings.HasPrefix(failed.Command, `sudo script "try it" 'two words' long`) || len(failed.Command) > 300 || failed.Output != "secretive" {
			t.Errorf("%#v", err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(lines) != 2 || !strings.Contains(lines[0], "try it") || !strings.Contains(lines[1], "look") {
		t.Errorf("%d commands ran: %q", len(lines), lines)
	}
	for _, line := range lines {
		if strings.Contains(line, "secretive") || len(line) > 1300 {
			t.Errorf("a command line of %d bytes: %s", len(line), line)
		}
	}
}

// A command that does not arrive whole is not run.
func TestHalfACommand(t *testing.T) {
	line := words([]string{"touch", filepath.Join(t.TempDir(), "ran")})
	for n := range len(line) {
		cmd := exec.Command("sh", "-c", begin, "sh", "MARK", "label")
		cmd.Stdin = strings.NewReader(line[:n])
		if out, err := cmd.Output(); err == nil || string(out) != "MARK\n" {
			t.Fatalf("%q: %q, %v", line[:n], out, err)
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("no more") }

// A command that writes without end is ended.
func TestTooMuchOutput(t *testing.T) {
	c := dialled(t, Target{Hop: hop(serverWith(t, sshtest.Config{}), byPassword)})
	out, err := c.Run(t.Context(), Command{Args: []string{"sh", "-c", "while :; do echo yes; done"}, Most: 1000})
	tell(t, err, "more than 1000 bytes of output")
	if len(out.Stdout) > 1100 {
		t.Errorf("%d bytes", len(out.Stdout))
	}
	if out, err = c.Run(t.Context(), Command{Args: []string{"printf", "%01000d", "1"}, Most: 1000}); err != nil || len(out.Stdout) != 1000 {
		t.Errorf("exactly as much: %d bytes, %v", len(out.Stdout), err)
	}
}

// blocked is a reader that waits until it is closed.
type blocked struct{ closed chan struct{} }

func (b blocked) Read([]byte) (int, error) { <-b.closed; return 0, os.ErrClosed }
func (b blocked) Close() error             { close(b.closed); return nil }

// A command that ends is not waited for because its input goes on.
func TestInputThatWaits(t *testing.T) {
	c := dialled(t, Target{Hop: hop(serverWith(t, sshtest.Config{}), byPassword)})
	if out, err := c.Run(t.Context(), Command{Args: []string{"echo", "done"}, Stdin: blocked{make(chan struct{})}}); err != nil || string(out.Stdout) != "done\n" {
		t.Errorf("%q %v", out.Stdout, err)
	}
}

const canary = "canary-51c7"

func TestSudo(t *testing.T) {
	for _, c := range []struct {
		name, asks, given string
		sudo              sshtest.Sudo
		want              string
	}{
		{"asks for nothing, none given", "", "", 0, ""},
		{"asks for nothing, one given", "", canary, 0, ""},
		{"right", canary, canary, 0, ""},
		{"wrong", "other", canary, 0, "sudo does not take the password"},
		{"none given", "other", "", 0, "a password is required…set sudo_password"},
		{"unlisted", "", "", sshtest.SudoUnlisted, "ops is not in the sudoers file.…add a file"},
		{"unlisted, with password", canary, canary, sshtest.SudoUnlisted, "ops is not in the sudoers file."},
		{"wants a terminal", "", "", sshtest.SudoTTY, "!requiretty"},
		{"not installed", "", "", sshtest.SudoAbsent, "install sudo"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serverWith(t, sshtest.Config{SudoPassword: c.asks, Sudo: c.sudo, Profile: "Hello"})
			client := dialled(t, Target{Hop: hop(s, Credential{Password: password, Sudo: true, SudoPassword: c.given})})
			out, err := client.Run(t.Context(), Command{Args: []string{"sh", "-c", `cat; echo " $AS_ROOT"`}, Stdin: strings.NewReader("data"), Root: true})
			tell(t, err, c.want)
			if err == nil && string(out.Stdout) != "data yes\n" {
				t.Errorf("got %q", out.Stdout)
			}
			if strings.Contains(fmt.Sprintf("%v %s %s", err, out.Stdout, out.Stderr), canary) {
				t.Errorf("%v, %v", err, out)
			}
			// The user's own commands need no sudo.
			if out, err := client.Run(t.Context(), Command{Args: []string{"echo", "me"}}); err != nil || string(out.Stdout) != "me\n" {
				t.Errorf("%q %v", out.Stdout, err)
			}
		})
	}
}

// shell writes a login shell.
func shell(t *testing.T, script string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "shell")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestLoginShells(t *testing.T) {
	for _, c := range []struct {
		name   string
		config sshtest.Config
		want   string
	}{
		{"chatty", sshtest.Config{Shell: shell(t, `i=0; while [ $i -lt 3000 ]; do echo "a long line that nobody asked for $i"; i=$((i+1)); done; printf 'no line end' >&2; exec sh "$@"`)}, ""},
		{"without a path", sshtest.Config{Shell: shell(t, `PATH=${PATH%%:*}:/nonexistent; exec /bin/sh "$@"`)}, ""},
		{"nologin", sshtest.Config{Shell: shell(t, `echo "This account is currently not available."; exit 1`)}, "the login shell of ops runs no commands: it ended with status 1 before the command began; it said:\n  This account is currently not available."},
		{"leaves", sshtest.Config{Shell: shell(t, `exit 0`)}, "ended with status 0 before the command began; it said:\n  (nothing)"},
		{"password expired", sshtest.Config{Shell: shell(t, `echo "Password change required but no TTY available." >&2; exit 1`)}, "Password change required"},
		{"no commands", sshtest.Config{NoCommands: true}, "runs no commands for ops"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, root := range []bool{false, true} { // what stops before sudo is not sudo's fault
				client := dialled(t, Target{Hop: hop(serverWith(t, c.config), Credential{Password: password, Sudo: root})})
				out, err := client.Run(t.Context(), Command{Args: []string{"echo", "a'b"}, Root: root})
				tell(t, err, c.want)
				if err == nil && string(out.Stdout) != "a'b\n" {
					t.Errorf("%q", out.Stdout)
				}
			}
		})
	}
}

// Something that never begins, as a user for files alone has it, is given up.
func TestNeverBegins(t *testing.T) {
	s := serverWith(t, sshtest.Config{ForceCommand: "echo waiting; exec cat"})
	var err error
	for _, begin := range []time.Duration{200 * time.Millisecond, 2 * time.Second, 20 * time.Second} { // until the machine is quick enough to say something
		c, dialErr := Dial(t.Context(), Target{Hop: hop(s, byPassword)}, Timeouts{Begin: begin})
		if dialErr != nil {
			t.Fatal(dialErr)
		}
		defer c.Close()
		_, err = c.Run(t.Context(), Command{Args: []string{"true"}})
		if err != nil && strings.Contains(err.Error(), "has run nothing within "+begin.String()+"; it said:\n  waiting") && !IsPermanent(err) {
			return
		}
	}
	t.Error(err)
}

// TestForAnyShell has shells read what is meant for a POSIX shell.
func TestForAnyShell(t *testing.T) {
	for _, c := range forAnyShell("it's \\ ! \n é \x00")[len(decode)+1:] {
		if c == '!' || c == '\n' || c > '~' {
			t.Errorf("%q is not for every shell", c)
		}
	}
}

// deaf is a connection that is over, whose library has not noticed a session that
// was being opened.
type deaf struct{ ssh.Conn }

func (deaf) OpenChannel(string, []byte) (ssh.Channel, <-chan *ssh.Request, error) { select {} }
func (deaf) Wait() error                                                          { return io.ErrUnexpectedEOF }
func (deaf) Close() error                                                         { return nil }

func TestRunWhileTheConnectionEnds(t *testing.T) {
	c := &Client{Host: "m", conn: &ssh.Client{Conn: deaf{}}, limits: Timeouts{}.orDefaults(), gone: make(chan struct{})}
	close(c.gone)
	var lost *LostError
	if _, err := c.Run(t.Context(), Command{Args: []string{"true"}}); !errors.As(err, &lost) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v", err)
	}
}
