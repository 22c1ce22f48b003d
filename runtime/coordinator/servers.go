package coordinator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/stokehq/stoke/runtime/wire"
)

// answerTime is the longest that one request to a server may take.
const answerTime = time.Minute

// servers are the connections to the parameter servers.
type servers struct {
	addresses   []string // in the order of their spans
	credentials wire.Credentials
	log         *slog.Logger
	signal      chan struct{} // a link has ended
	links       []*link
	why         string // they are lost; "": they are not
	term        int64  // in which they were restored
	readers     sync.WaitGroup
	broken      *breach          // of the present links
	answer      time.Duration    // the longest that one request may take
	hung        func(server int) // is called with one that does not answer
	patience    time.Duration    // with one that says nothing; 0: that of package wire
	pause       time.Duration    // after a connection could not be made, doubled each time
	missing     func() error     // returns an error where one of them has left; nil: none leaves
}

// link is one connection. Its reader tells at once when it ends.
type link struct {
	conn    *wire.Conn
	answers chan wire.Answer
	gone    chan struct{}
	err     error // why it ended; to be read once gone is closed
}

// breach is the end of the first of several connections.
type breach struct {
	once sync.Once
	gone chan struct{}
}

// watch tells when a connection has ended.
func (s *servers) watch() <-chan struct{} { return s.signal }

// lossReason drops the connections when one of them has ended, and says why they
// were dropped.
func (s *servers) lossReason() string {
	for i, l := range s.links {
		select {
		case <-l.gone:
			s.drop(fmt.Errorf("connection to server %d lost: %w", i, l.err))
			return s.why
		default:
		}
	}
	if len(s.links) > 0 && s.missing != nil {
		if err := s.missing(); err != nil {
			s.drop(err)
		}
	}
	return s.why
}

// drop gives up all connections.
func (s *servers) drop(why error) {
	s.why = why.Error()
	for i, l := range s.links {
		select {
		case <-l.gone:
			if timedOut(l.err) {
				s.hung(i) // a process that hangs keeps its connections
			}
		default:
		}
	}
	s.close()
}

func (s *servers) close() {
	for _, l := range s.links {
		l.conn.Close()
	}
	s.links = nil
	s.readers.Wait()
}

// connect dials every server until it answers or ctx is done, unless all are
// connected.
func (s *servers) connect(ctx context.Context) error {
	if len(s.links) > 0 && s.lossReason() == "" {
		return nil
	}
	s.close()
	s.broken = &breach{gone: make(chan struct{})}
	for i, address := range s.addresses {
		hello := wire.Hello{Role: wire.RoleCoordinator, PID: os.Getpid()}
		for pause := s.pause; ; pause = min(2*pause, max(s.pause, time.Second)) {
			conn, err := s.dial(ctx, address, hello)
			if err == nil {
				s.add(conn)
				break
			}
			if timedOut(err) && ctx.Err() == nil {
				s.hung(i) // its port is open, but nobody answers
			}
			switch {
			case errors.Is(err, wire.ErrRefused) && s.patience > 0: // another process has the address now
				s.hung(i)
			case errors.Is(err, wire.ErrRefused):
				return fmt.Errorf("connect to server %d: %w", i, err)
			}
			if ctx.Err() == nil {
				s.log.Warn("cannot connect", "holder", i, "error", err)
			}
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	s.why = ""
	return nil
}

// dial connects to one holder.
func (s *servers) dial(ctx context.Context, address string, hello wire.Hello) (*wire.Conn, error) {
	if s.patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.patience)
		defer cancel()
	}
	return s.credentials.Dial(ctx, address, hello)
}

// timedOut reports whether the other side did not answer, or fell silent.
func timedOut(err error) bool {
	timeout := net.Error(nil)
	return errors.As(err, &timeout) && timeout.Timeout()
}

func (s *servers) add(conn *wire.Conn) {
	if s.patience > 0 {
		conn.SetPatience(s.patience)
	}
	l := &link{conn: conn, answers: make(chan wire.Answer, 1), gone: make(chan struct{})}
	s.links = append(s.links, l)
	broken := s.broken
	s.readers.Go(func() {
		l.err = l.read()
		conn.Close()
		close(l.gone)
		broken.once.Do(func() { close(broken.gone) })
		select {
		case s.signal <- struct{}{}:
		default: // one is waiting already
		}
	})
}

func (l *link) read() error {
	for {
		m, err := l.conn.Receive(0)
		if err != nil {
			return err
		}
		var a wire.Answer
		if m.Type != wire.TypeAnswer || m.Values > 0 {
			return fmt.Errorf("answered with %s", m.Type)
		}
		if err := m.Decode(&a); err != nil {
			return err
		}
		select {
		case l.answers <- a:
		default:
			return errors.New("answered without having been asked")
		}
	}
}

// ask sends one request to every server and collects the answers.
func (s *servers) ask(ctx context.Context, t wire.Type, head any) ([]wire.Answer, error) {
	return s.askEach(ctx, t, func(int) any { return head })
}

// askEach sends a request to every server and collects the answers. After an
// error it drops the connections: an answer that is still on its way would be
// taken for one to the next request.
func (s *servers) askEach(ctx context.Context, t wire.Type, head func(server int) any) ([]wire.Answer, error) {
	return s.askWithin(ctx, t, s.answer, head)
}

// askWithin is askEach with a limit for the time of each answer.
func (s *servers) askWithin(
	ctx context.Context, t wire.Type, limit time.Duration, head func(server int) any,
) (answers []wire.Answer, err error) {
	defer func() {
		if err != nil {
			s.drop(err)
		}
	}()
	for i, l := range s.links {
		if err := l.conn.Send(t, head(i), nil); err != nil {
			return nil, fmt.Errorf("%w: server %d: %w", errLost, i, err)
		}
	}
	answers = make([]wire.Answer, len(s.links))
	for i := range s.links {
		if answers[i], err = s.await(ctx, i, t, limit); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

func (s *servers) await(ctx context.Context, i int, t wire.Type, limit time.Duration) (wire.Answer, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	l := s.links[i]
	select {
	case a := <-l.answers:
		if a.Error != "" {
			return a, fmt.Errorf("%s on server %d: %s", t, i, a.Error)
		}
		if err := refusal(a, s.term); err != nil {
			return a, fmt.Errorf("%s on server %d: %w", t, i, err)
		}
		return a, nil
	case <-l.gone:
		return wire.Answer{}, fmt.Errorf("%w: server %d: connection lost", errLost, i)
	case <-s.broken.gone: // other holders may wait for the lost one
		return wire.Answer{}, fmt.Errorf("%w: a connection was lost during %s", errLost, t)
	case <-timer.C:
		return wire.Answer{}, fmt.Errorf("%w: server %d: no answer to %s in %v", errLost, i, t, limit)
	case <-ctx.Done():
		return wire.Answer{}, context.Cause(ctx)
	}
}
