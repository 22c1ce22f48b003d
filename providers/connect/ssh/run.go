package ssh

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Command is what to run on a machine.
type Command struct {
	Args  []string  // the program and its arguments; nothing in them may be secret
	Stdin io.Reader // nil: empty
	Root  bool      // run as root: by sudo where the credential says so
	// Most bounds standard output, in bytes; 0: 16 MiB. A command that says
	// more fails.
	Most int
}

// Output is what a command wrote.
type Output struct{ Stdout, Stderr []byte }

const (
	mostOutput = 16 << 20
	mostStderr = 1 << 20 // of which the end is kept
	tailLines  = 20
)

// begin is what every command starts as: it says that login scripts and sudo
// are done with the streams, and becomes the command.
const begin = `printf '%s\n' "$1"; printf '%s\n' "$1" >&2; shift; exec "$@"`

// Run runs a command to its end. A command that failed is a *CommandError; a
// connection that broke in the middle is a *LostError.
func (c *Client) Run(ctx context.Context, cmd Command) (Output, error) {
	session, err := c.conn.NewSession()
	if err != nil {
		return Output{}, &LostError{Host: c.Host, Err: err}
	}
	defer session.Close()
	start, prompt := rand.Text(), rand.Text()
	line := QuoteAll(append([]string{"sh", "-c", begin, "sh", start}, cmd.Args...)...)
	sudo := cmd.Root && c.target.Credential.Sudo
	switch {
	case sudo && c.target.Credential.SudoPassword != "":
		line = QuoteAll("sudo", "-S", "-p", prompt+"\n", "--") + " " + line
	case sudo:
		line = "sudo -n -- " + line
	}
	r := &running{client: c, cmd: cmd, start: []byte(start + "\n"), prompt: []byte(prompt + "\n"), begun: make(chan struct{}), asked: make(chan struct{}, 8)}
	return r.run(ctx, session, line)
}

// running is a command under way.
type running struct {
	client        *Client
	cmd           Command
	start, prompt []byte
	begun         chan struct{} // closed when standard output reached the mark
	asked         chan struct{} // one for each time that sudo asks
	out, err      stream
}

func (r *running) run(ctx context.Context, session *ssh.Session, line string) (Output, error) {
	most := r.cmd.Most
	if most <= 0 {
		most = mostOutput
	}
	r.out = stream{mark: r.start, most: most, onMark: func() { close(r.begun) }}
	r.err = stream{mark: r.start, prompt: r.prompt, most: mostStderr, onPrompt: func() { r.asked <- struct{}{} }, keepEnd: true}
	session.Stdout, session.Stderr = &r.out, &r.err
	stdin, err := session.StdinPipe()
	if err != nil {
		return Output{}, err
	}
	if err := session.Start(line); err != nil {
		return Output{}, &LostError{Host: r.client.Host, Err: err}
	}
	over := make(chan struct{})
	fed := make(chan error, 1)
	go func() { fed <- r.feed(stdin, over) }()
	stop := context.AfterFunc(ctx, func() {
		session.Signal(ssh.SIGTERM) // which old servers do not know; closing is all that is left then
		session.Close()
	})
	err = session.Wait()
	close(over)
	stop()
	feedErr := <-fed
	output := Output{Stdout: r.out.bytes(), Stderr: r.err.bytes()}
	if ctx.Err() != nil {
		return output, context.Cause(ctx)
	}
	if err == nil && feedErr != nil {
		err = feedErr
	}
	return output, r.ended(err, feedErr)
}

// feed answers sudo once, then hands over standard input.
func (r *running) feed(stdin io.WriteCloser, over <-chan struct{}) error {
	defer stdin.Close()
	answered := false
	for {
		select {
		case <-over:
			return nil
		case <-r.asked:
			if answered {
				return errWrongPassword
			}
			answered = true
			if _, err := io.WriteString(stdin, r.client.target.Credential.SudoPassword+"\n"); err != nil {
				return nil // the command's end says why
			}
		case <-r.begun:
			if r.cmd.Stdin == nil {
				return nil
			}
			from := &source{Reader: r.cmd.Stdin}
			io.Copy(stdin, from) // a command may end without reading everything
			return from.err
		}
	}
}

var errWrongPassword = errors.New("sudo does not take the password")

// source remembers how reading failed, to tell it from writing that did.
type source struct {
	io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && err != io.EOF {
		s.err = fmt.Errorf("read standard input of the command: %w", err)
	}
	return n, err
}

// ended turns how the session ended into an error.
func (r *running) ended(err, feedErr error) error {
	var exit *ssh.ExitError
	var missing *ssh.ExitMissingError
	host := r.client.Host
	if r.out.over {
		return fmt.Errorf("%s: %s: more than %d bytes of output", host, QuoteAll(r.cmd.Args...), r.out.most)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(feedErr, errWrongPassword):
		return Permanent{fmt.Errorf("%s: %w", host, errWrongPassword)}
	case errors.As(err, &exit):
		if !r.out.marked && r.cmd.Root && r.client.target.Credential.Sudo {
			return Permanent{fmt.Errorf("%s: %s cannot become root by sudo: %s", host, r.client.target.Credential.User, lastLines(r.err.raw(), 5))}
		}
		said := r.err.bytes()
		if len(bytes.TrimSpace(said)) == 0 {
			said = r.out.bytes()
		}
		e := &CommandError{Host: host, Command: r.shown(), Status: exit.ExitStatus(), Signal: exit.Signal(), Output: lastLines(said, tailLines)}
		if e.Signal != "" {
			e.Status = -1
		}
		return e
	case errors.As(err, &missing):
		return &LostError{Host: host, Err: errors.New("it ended without an exit status")}
	}
	return &LostError{Host: host, Err: err}
}

// shown is the command as a person would type it.
func (r *running) shown() string {
	line := QuoteAll(r.cmd.Args...)
	if r.cmd.Root && r.client.target.Credential.Sudo {
		line = "sudo " + line
	}
	return line
}

// lastLines is the end of what was written, as text.
func lastLines(b []byte, n int) string {
	lines := strings.Split(strings.TrimRight(strings.ToValidUTF8(string(b), "�"), "\n"), "\n")
	lines = lines[max(0, len(lines)-n):]
	for i, line := range lines {
		if len(line) > 400 {
			lines[i] = line[:400] + " …"
		}
	}
	return strings.Join(lines, "\n")
}
