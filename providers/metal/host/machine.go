package host

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/stokehq/stoke/providers/connect/ssh"
)

// Machine is a machine to observe and to change.
type Machine interface {
	// Name is what messages call the machine: its address.
	Name() string
	// Run runs a command to its end. A failed command is a *ssh.CommandError, a
	// connection that broke during a command that may run Once a *ssh.LostError.
	Run(ctx context.Context, cmd Command) (ssh.Output, error)
	// Put writes a file in one step, as root: the old content is there until the
	// new one is whole. It may be done again.
	Put(ctx context.Context, f ssh.File) error
}

// Command is a program to run, as root.
type Command struct {
	Args  []string // nothing in them may be secret, nor come from strings put together: arguments are quoted
	Stdin []byte   // the way for secrets
	// Open is Stdin for content that is too large for memory: it is read while the
	// command runs, opened again when the command is repeated, and closed.
	Open func() (io.ReadCloser, error)
	// Once: running it twice does harm. Any other command is run again where the
	// connection broke.
	Once bool
	// Unprivileged runs it as the user who logged in.
	Unprivileged bool
	// Look marks a command that changes nothing and leaves nothing running: all
	// such commands share one call of sudo.
	Look bool
}

// Run runs a command that may be repeated and returns its standard output.
func Run(ctx context.Context, m Machine, args ...string) ([]byte, error) {
	out, err := m.Run(ctx, Command{Args: args})
	return out.Stdout, err
}

// Script runs a shell script that may be repeated. The script is a constant; what
// varies is in args, which it sees as "$1", "$2" and so on. If it has several
// lines, the first one is a comment with its purpose: people read that in errors
// and in the machine's log of sudo.
func Script(ctx context.Context, m Machine, script string, args ...string) ([]byte, error) {
	return Run(ctx, m, append([]string{"sh", "-c", script, "sh"}, args...)...)
}

// Do runs Script without its output. Errors contain what.
func Do(ctx context.Context, m Machine, what, script string, args ...string) error {
	if _, err := Script(ctx, m, script, args...); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// LookScript is Script for a script that changes nothing; see Command.Look.
func LookScript(ctx context.Context, m Machine, script string, args ...string) ([]byte, error) {
	out, err := m.Run(ctx, Command{Args: append([]string{"sh", "-c", script, "sh"}, args...), Look: true})
	return out.Stdout, err
}

// Status runs a command whose failure is an answer: the exit status, 0 for
// success. err is set when it could not be run at all.
func Status(ctx context.Context, m Machine, args ...string) (out []byte, status int, err error) {
	out, err = Run(ctx, m, args...)
	status, err = exited(err)
	return out, status, err
}

// LookStatus is Status for a command that changes nothing; see Command.Look.
func LookStatus(ctx context.Context, m Machine, args ...string) (out []byte, status int, err error) {
	is, err := m.Run(ctx, Command{Args: args, Look: true})
	status, err = exited(err)
	return is.Stdout, status, err
}

func exited(err error) (int, error) {
	var failed *ssh.CommandError
	if errors.As(err, &failed) && failed.Status > 0 {
		return failed.Status, nil
	}
	return 0, err
}

const readScript = `# read a file
if [ -e "$1" ] || [ -L "$1" ]; then printf y; exec cat -- "$1"; else printf n; fi`

// ReadFile reads a file; exists is false without a file.
func ReadFile(ctx context.Context, m Machine, path string) (content []byte, exists bool, err error) {
	out, err := LookScript(ctx, m, readScript, path)
	if err != nil || len(out) == 0 || out[0] == 'n' {
		return nil, false, err
	}
	return out[1:], true, nil
}

// Remove removes a file; a missing file is not an error.
func Remove(ctx context.Context, m Machine, path string) error {
	_, err := Run(ctx, m, "rm", "-f", "--", path)
	return err
}
