package ssh

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// serve is a shell that runs one command after the other, each a line: a mark, what
// the command reads (in base64, or - for nothing), and its words. $1 is begin. A
// command is a process of its own, and leaves nothing behind.
const serve = `# look
b=$1
while IFS=' ' read -r m i l; do
{ printf '%s\n' "$l"; [ "$i" = - ] || printf %s "$i" | base64 -d; } | sh -c "$b" sh "$m"
s=$?
printf '\nend %s %d\n' "$m" "$s"
printf '\nend %s\n' "$m" >&2
done`

// maxLookInput bounds what a command may read that runs in the shell for looks.
const maxLookInput = 256 << 10

// looks is the shell as root of a connection: sudo is called once for all looks
// at the machine, as it may be slow. Looks come one after the other.
type looks struct {
	turn  chan struct{} // one token
	shell *lookShell    // nil for none
	in    atomic.Bool   // sudo has let one begin
}

// lookShell is a shell that runs.
type lookShell struct {
	to    *io.PipeWriter
	begun chan struct{} // closed when sudo has let it in
	ended chan struct{} // closed when it is over
	err   error         // why
	out   answers
	said  answers
	stop  context.CancelCauseFunc
}

// answers collects what the shell writes until the end of a command has come.
type answers struct {
	mu   sync.Mutex
	buf  []byte
	most int
	over bool          // the beginning is gone
	grew chan struct{} // has a token when there is more
}

func (a *answers) receive(p []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.buf = append(a.buf, p...); len(a.buf) > 2*a.most { // its end says how the command ended
		a.buf, a.over = append([]byte(nil), a.buf[len(a.buf)-a.most:]...), true
	}
	select {
	case a.grew <- struct{}{}:
	default:
	}
}

// take is what came before the end, and what the end says; ok is false while it has
// not come. The next command begins with nothing.
func (a *answers) take(end string) (text []byte, says string, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	tail := a.buf[max(0, len(a.buf)-len(end)-32):] // nothing comes after it
	i := bytes.LastIndex(tail, []byte(end))
	if i < 0 || !bytes.HasSuffix(tail, []byte("\n")) {
		return nil, "", false
	}
	text = a.buf[:len(a.buf)-len(tail)+i]
	says = strings.TrimSpace(string(tail[i+len(end):]))
	a.buf, a.over = nil, false
	return text, says, true
}

func (a *answers) tooMuch() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.over || len(a.buf) > a.most
}

func newLookShell() *lookShell {
	return &lookShell{
		begun: make(chan struct{}), ended: make(chan struct{}),
		out: answers{most: maxOutput, grew: make(chan struct{}, 1)}, said: answers{most: maxStderr, grew: make(chan struct{}, 1)},
	}
}

// openLooks starts the shell if necessary.
func (c *Client) openLooks() *lookShell {
	if s := c.looks.shell; s != nil {
		select {
		case <-s.ended:
		default:
			return s
		}
	}
	s := newLookShell()
	ctx, stop := context.WithCancelCause(context.Background())
	from, to := io.Pipe()
	s.to, s.stop = to, stop
	begun := sync.OnceFunc(func() {
		c.looks.in.Store(true)
		close(s.begun)
	})
	c.running.Go(func() { // ends with the connection at the latest
		defer stop(nil)
		_, s.err = c.Run(ctx, Command{Args: []string{"sh", "-c", serve, "sh", begin}, Stdin: from, Root: true, onBegin: begun, hear: [2]func([]byte){s.out.receive, s.said.receive}})
		from.CloseWithError(io.ErrClosedPipe)
		close(s.ended)
	})
	c.looks.shell = s
	return s
}

// dropLooks ends the shell after its present command, such as to make room for
// another session.
func (c *Client) dropLooks(ctx context.Context) {
	select {
	case c.looks.turn <- struct{}{}:
	case <-ctx.Done():
		return
	}
	defer func() { <-c.looks.turn }()
	c.looks.drop()
}

func (l *looks) drop() {
	if l.shell == nil {
		return
	}
	l.shell.stop(errors.New("it is no longer needed"))
	<-l.shell.ended
	l.shell = nil
}

// Look runs a command as root that changes nothing and leaves nothing running:
// all of them share one shell, and sudo is called once.
func (c *Client) Look(ctx context.Context, cmd Command) (Output, error) {
	var input []byte
	if cmd.Stdin != nil {
		var err error
		if input, err = io.ReadAll(io.LimitReader(cmd.Stdin, maxLookInput+1)); err != nil {
			return Output{}, fmt.Errorf("read standard input of the command: %w", err)
		}
	}
	if !cmd.Root || !c.credential.Sudo || len(input) > maxLookInput {
		if input != nil {
			cmd.Stdin = io.MultiReader(bytes.NewReader(input), cmd.Stdin)
		}
		return c.Run(ctx, cmd)
	}
	select {
	case c.looks.turn <- struct{}{}:
	case <-ctx.Done():
		return Output{}, context.Cause(ctx)
	}
	defer func() { <-c.looks.turn }()
	s := c.openLooks()
	select {
	case <-s.begun:
	case <-s.ended:
		return Output{}, s.endError(c)
	case <-ctx.Done():
		c.looks.drop()
		return Output{}, context.Cause(ctx)
	}
	mark := rand.Text()
	line := mark + " " + cmp.Or(base64.StdEncoding.EncodeToString(input), "-") + " " + words(cmd.Args)
	if _, err := io.WriteString(s.to, line); err != nil {
		<-s.ended
		return Output{}, s.endError(c)
	}
	out, status, err := s.read(ctx, c, "\nend "+mark)
	if err != nil {
		c.looks.drop() // there is no reader for its present command
		return Output{}, err
	}
	return c.lookResult(cmd, mark, out, status)
}

// read waits for the end of a command on both streams.
func (s *lookShell) read(ctx context.Context, c *Client, end string) (out Output, status string, err error) {
	outDone, saidDone := false, false
	for {
		if !outDone {
			out.Stdout, status, outDone = s.out.take(end + " ")
		}
		if !saidDone {
			out.Stderr, _, saidDone = s.said.take(end)
		}
		switch {
		case outDone && saidDone:
			return out, status, nil
		case s.out.tooMuch():
			return out, "", Permanent{fmt.Errorf("%s: more than %d bytes of output", c.Host, maxOutput)}
		}
		select {
		case <-s.out.grew:
		case <-s.said.grew:
		case <-s.ended:
			return out, "", s.endError(c)
		case <-ctx.Done():
			return out, "", context.Cause(ctx)
		}
	}
}

// endError returns the reason why the shell ended: sudo did not let it begin, or
// the connection broke, maybe between two commands. A look may be begun again.
func (s *lookShell) endError(c *Client) error {
	var ended *CommandError
	var lost *LostError
	switch {
	case errors.As(s.err, &lost):
		return &LostError{Host: c.Host, Err: lost.Err}
	case s.err == nil || errors.As(s.err, &ended):
		return &LostError{Host: c.Host, Err: cmp.Or(s.err, io.ErrUnexpectedEOF)}
	}
	return s.err
}

// lookResult is what Run says of a command that has ended so.
func (c *Client) lookResult(cmd Command, mark string, out Output, status string) (Output, error) {
	r := &running{client: c, cmd: cmd, mark: mark}
	r.out = stream{mark: []byte(mark + "\n"), most: maxOutput}
	r.err = stream{marked: true, buf: bytes.TrimPrefix(out.Stderr, []byte(mark+"\n"))}
	r.out.Write(out.Stdout)
	whole := r.out.complete([]byte(mark))
	n, err := strconv.Atoi(status)
	r.exit = exit{known: err == nil, status: n}
	out = Output{Stdout: r.out.bytes(), Stderr: r.err.bytes()}
	switch {
	case err != nil:
		return out, &LostError{Host: c.Host, Begun: true, Err: fmt.Errorf("it ended without an exit status: %w", err)}
	case n != 0:
		return out, r.commandFailed()
	case !whole:
		return out, &LostError{Host: c.Host, Begun: true, Err: errors.New("a part of the output is missing")}
	}
	return out, nil
}
