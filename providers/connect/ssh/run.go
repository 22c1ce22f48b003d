package ssh

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Command is what to run on a machine.
type Command struct {
	Args []string // the program and its arguments; nothing in them may be secret
	// Stdin is what the command reads; nil: nothing. When the command ends before
	// it has read everything, Stdin is closed if it is an io.Closer, so that a
	// read that waits ends.
	Stdin io.Reader
	Root  bool // run as root: by sudo where the credential says so
	// Most bounds standard output, in bytes; 0: 16 MiB. A command that says
	// more is ended and fails.
	Most int
	// Look marks a command that changes nothing and leaves nothing running, so
	// that it may share a shell with others; see Client.Look.
	Look bool

	onBegin func()            // called when it has begun
	hear    [2]func(p []byte) // receive the two streams, which are not kept
}

// Output is what a command wrote.
type Output struct{ Stdout, Stderr []byte }

const (
	maxOutput = 16 << 20
	maxStderr = 1 << 20 // the end is kept
	tailLines = 20
)

var (
	errNotBegun      = errors.New("nothing ran")
	errTooMuch       = errors.New("too much output")
	errWrongPassword = errors.New("sudo does not take the password in sudo_password")
)

// Run runs a command to its end. A command that failed is a *CommandError; a
// connection that broke in the middle is a *LostError. A failure of every
// command, such as a sudo or a login shell that refuses, is Permanent.
func (c *Client) Run(ctx context.Context, cmd Command) (Output, error) {
	if ctx.Err() != nil { // a cancelled command is not begun
		return Output{}, context.Cause(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(c.limits.Begin, func() { cancel(errNotBegun) })
	defer late.Stop()
	over := make(chan struct{})
	defer close(over)
	defer context.AfterFunc(ctx, func() { // a machine that does not even end a session
		select {
		case <-over:
		case <-time.After(c.limits.Grace):
			c.conn.Close()
		}
	})()

	channel, requests, err := c.open()
	if err != nil {
		return Output{}, c.notOpened(ctx, err)
	}
	defer channel.Close()
	r := newRunning(c, cmd, cancel, late)
	defer context.AfterFunc(ctx, func() {
		channel.SendRequest("signal", false, ssh.Marshal(struct{ Signal string }{"TERM"}))
		channel.Close()
	})()
	return r.run(ctx, channel, requests)
}

// open begins a session, until the connection is over. The library's OpenChannel
// may wait beyond that, for ever: a channel that is opened while it closes the
// connection is never closed.
func (c *Client) open() (ssh.Channel, <-chan *ssh.Request, error) {
	type session struct {
		channel  ssh.Channel
		requests <-chan *ssh.Request
		err      error
	}
	opened := make(chan session, 1)
	go func() {
		channel, requests, err := c.conn.OpenChannel("session", nil)
		opened <- session{channel, requests, err}
	}()
	select {
	case s := <-opened:
		return s.channel, s.requests, s.err
	case <-c.gone:
		return nil, nil, cmp.Or(c.conn.Wait(), io.EOF)
	}
}

func (c *Client) notOpened(ctx context.Context, err error) error {
	var refused *ssh.OpenChannelError
	switch {
	case ctx.Err() != nil && context.Cause(ctx) != errNotBegun:
		return context.Cause(ctx)
	case errors.As(err, &refused):
		return &busyError{host: c.Host, said: printable(refused.Message)}
	}
	return &LostError{Host: c.Host, Err: err}
}

// running is a command under way.
type running struct {
	client   *Client
	cmd      Command
	line     string
	mark     string
	begun    chan struct{} // closed when standard output reached the mark
	asked    chan struct{} // one for each time that sudo asks
	out, err stream
	exit     exit
}

// exit is how a session ended.
type exit struct {
	known  bool
	status int
	signal string
}

func newRunning(c *Client, cmd Command, cancel context.CancelCauseFunc, late *time.Timer) *running {
	r := &running{client: c, cmd: cmd, mark: rand.Text(), begun: make(chan struct{}), asked: make(chan struct{}, 8)}
	prompt := rand.Text() + "\n"
	most := cmd.Most
	if most <= 0 {
		most = maxOutput
	}
	start := []byte(r.mark + "\n")
	r.out = stream{mark: start, most: most + len(r.mark), onOver: func() { cancel(errTooMuch) }, onMark: func() {
		late.Stop()
		close(r.begun)
		if cmd.onBegin != nil {
			cmd.onBegin()
		}
	}}
	r.err = stream{mark: start, prompt: []byte(prompt), most: maxStderr, keepEnd: true, onPrompt: func() {
		select {
		case r.asked <- struct{}{}:
		default: // it asks without end
		}
	}}
	r.out.hear, r.err.hear = cmd.hear[0], cmd.hear[1]
	line := QuoteAll("exec", "sh", "-c", begin, "sh", r.mark, printable(truncateLabel(label(cmd.Args))))
	switch {
	case !r.sudo():
	case c.credential.SudoPassword != "":
		line = "exec " + QuoteAll("sudo", "-S", "-p", prompt, "--") + strings.TrimPrefix(line, "exec")
	default:
		line = "exec sudo -n --" + strings.TrimPrefix(line, "exec")
	}
	r.line = forAnyShell(line)
	return r
}

func (r *running) sudo() bool { return r.cmd.Root && r.client.credential.Sudo }

func (r *running) run(ctx context.Context, channel ssh.Channel, requests <-chan *ssh.Request) (Output, error) {
	var streams sync.WaitGroup
	streams.Go(func() { io.Copy(&r.out, channel) })
	streams.Go(func() { io.Copy(&r.err, channel.Stderr()) })
	ended := make(chan struct{})
	go func() { // whom the last lines wait for
		defer close(ended)
		r.listen(requests)
	}()
	accepted, err := channel.SendRequest("exec", true, ssh.Marshal(struct{ Command string }{r.line}))
	fed := make(chan error, 1)
	if err == nil && accepted {
		go func() { fed <- r.feed(channel, ended) }()
	} else {
		fed <- nil
		channel.Close()
	}
	<-ended
	if closer, ok := r.cmd.Stdin.(io.Closer); ok {
		closer.Close()
	}
	streams.Wait()
	feedErr := <-fed
	whole := r.out.complete([]byte(r.mark))
	output := Output{Stdout: r.out.bytes(), Stderr: r.err.bytes()}
	switch {
	case r.exit.known && r.exit.status == 0 && whole && feedErr == nil:
		return output, nil
	case err == nil && !accepted:
		return output, Permanent{fmt.Errorf("%s runs no commands for %s: its sshd_config or authorized_keys allows something else", r.client.Host, r.client.credential.User)}
	}
	return output, r.failed(ctx, feedErr, whole)
}

// listen waits for the session's end.
func (r *running) listen(requests <-chan *ssh.Request) {
	for request := range requests {
		switch request.Type {
		case "exit-status":
			if len(request.Payload) >= 4 {
				r.exit = exit{known: true, status: int(binary.BigEndian.Uint32(request.Payload))}
			}
		case "exit-signal":
			var signal struct {
				Signal     string
				CoreDumped bool
				Error      string
				Lang       string
			}
			if ssh.Unmarshal(request.Payload, &signal) == nil {
				r.exit = exit{known: true, status: -1, signal: printable(signal.Signal)}
			}
		}
		if request.WantReply {
			request.Reply(false, nil)
		}
	}
}

// feed answers sudo once, then hands over the command and its standard input.
func (r *running) feed(channel ssh.Channel, ended <-chan struct{}) error {
	defer channel.CloseWrite()
	answered := false
	for {
		select {
		case <-ended:
			return nil
		case <-r.asked:
			if answered {
				return errWrongPassword
			}
			answered = true
			if _, err := io.WriteString(channel, r.client.credential.SudoPassword+"\n"); err != nil {
				return nil // the command's end says why
			}
		case <-r.begun:
			if _, err := io.WriteString(channel, words(r.cmd.Args)); err != nil || r.cmd.Stdin == nil {
				return nil
			}
			from := &source{Reader: r.cmd.Stdin, ended: ended}
			io.Copy(channel, from) // a command may end without reading everything
			return from.err
		}
	}
}

// source remembers how reading failed, to tell it from writing that did.
type source struct {
	io.Reader
	ended <-chan struct{}
	err   error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	select {
	case <-s.ended: // the connection has ended; later read errors do not matter
		return 0, io.EOF
	default:
	}
	if err != nil && err != io.EOF {
		s.err = fmt.Errorf("read standard input of the command: %w", err)
	}
	return n, err
}

// failed returns the error of a command that did not succeed.
func (r *running) failed(ctx context.Context, feedErr error, whole bool) error {
	host := r.client.Host
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errTooMuch):
		return Permanent{fmt.Errorf("%s: %s: more than %d bytes of output", host, r.describeCommand(), r.out.most-len(r.mark))}
	case errors.Is(feedErr, errWrongPassword):
		return Permanent{wrongPassword{fmt.Errorf("%s: %w", host, errWrongPassword)}}
	case errors.Is(cause, errNotBegun) && r.client.isClosed():
		return &LostError{Host: host, Begun: true, Err: errNotBegun}
	case errors.Is(cause, errNotBegun):
		return r.notBegun(fmt.Sprintf("has run nothing within %s", r.client.limits.Begin))
	case cause != nil:
		return cause
	case !r.exit.known:
		return &LostError{Host: host, Begun: true, Err: errors.New("it ended without an exit status")}
	case !r.out.hasBegun():
		return Permanent{r.notBegun(fmt.Sprintf("ended with status %d before the command began", r.exit.status))}
	case feedErr != nil: // whatever the command made of half its input
		return feedErr
	case r.exit.status != 0:
		return r.commandFailed()
	case !whole:
		return &LostError{Host: host, Begun: true, Err: errors.New("a part of the output is missing")}
	}
	return &LostError{Host: host, Begun: true, Err: errors.New("it ended")}
}

func (r *running) commandFailed() error {
	said := r.err.bytes()
	if len(bytes.TrimSpace(said)) == 0 {
		said = r.out.bytes()
	}
	return &CommandError{
		Host: r.client.Host, Command: r.describeCommand(), Status: r.exit.status, Signal: r.exit.signal,
		Output: r.client.credential.redacted(lastLines(said, tailLines)),
	}
}

// notBegun returns the reason why the mark of the beginning did not arrive.
func (r *running) notBegun(how string) error {
	said := strings.TrimSpace(string(r.err.raw()) + "\n" + string(r.out.raw()))
	text := r.client.credential.redacted(lastLines([]byte(said), 5))
	user := r.client.credential.User
	if said == "" {
		text = "(nothing)"
	}
	advice := sudoAdvice(text, user)
	if !r.sudo() || said != "" && advice == "" && !strings.Contains(said, "sudo") {
		// An error before sudo does not name it.
		return fmt.Errorf("%s: the login shell of %s runs no commands: it %s; it said:\n%s", r.client.Host, user, how, indent(text))
	}
	return fmt.Errorf("%s: %s cannot become root by sudo: it %s; it said:\n%s%s", r.client.Host, user, how, indent(text), advice)
}

// sudoAdvice returns the remedy for an error of sudo. The texts are sudo's.
func sudoAdvice(said, user string) string {
	for _, known := range []struct{ text, advice string }{
		{"password is required", "set sudo_password, or let " + user + " use sudo without one (NOPASSWD)"},
		{"not in the sudoers", "add a file for " + user + " to /etc/sudoers.d"},
		{"not allowed to", "add a file for " + user + " to /etc/sudoers.d"},
		{"must have a tty", "set \"Defaults:" + user + " !requiretty\" in the sudoers file"},
		{"no tty present", "set sudo_password, or let " + user + " use sudo without one (NOPASSWD)"},
		{"not found", "install sudo, or log in as root and set sudo = false"},
	} {
		if strings.Contains(said, known.text) {
			return "\n" + known.advice
		}
	}
	return ""
}

// describeCommand is the command as a person would type it, or what a script is for.
func (r *running) describeCommand() string {
	line := label(r.cmd.Args)
	if r.sudo() {
		line = "sudo " + line
	}
	return line
}

// lastLines returns the end of an output as text.
func lastLines(b []byte, n int) string {
	const longest = 400
	lines := bytes.Split(bytes.TrimRight(b, "\n"), []byte("\n"))
	lines = lines[max(0, len(lines)-n):]
	text := make([]string, len(lines))
	for i, line := range lines {
		text[i] = printable(string(line[:min(len(line), longest)]))
		if len(line) > longest {
			text[i] += " …"
		}
	}
	return strings.Join(text, "\n")
}
