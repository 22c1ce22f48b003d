package session

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// Times and limits of saying goodbye.
const (
	hearTime     = 10 * time.Second // that workers have to hear it
	farewellTime = 5 * time.Second  // that servers have then
)

// ErrLeft ends the coordinator and leaves the run to the next one.
var ErrLeft = errors.New("the coordinator leaves")

// leftAlone returns the status of a run whose coordinator leaves: members and
// servers look for the next one.
func (s *Session) leftAlone() spec.Status {
	s.attended.Pause()
	s.reason, s.message = nil, "its coordinator has left; the next one continues it"
	s.publish(spec.Pending)
	st := *s.status.Load()
	if err := (statusFile{s}).write(&st); err != nil {
		s.Log.Error("cannot write the status", "error", err)
	}
	return st
}

// parting is the end of a session. Members and servers are sent how.
type parting struct {
	*Session
	how wire.Leave
}

// farewell sends the end to the members, and to the servers after the members
// have disconnected: a worker that loses its servers first looks for another
// coordinator. It returns the addresses of servers that did not answer.
func (p parting) farewell(ctx context.Context) (untold []string) {
	ctx = context.WithoutCancel(ctx)
	p.tellMembers(ctx)
	ctx, cancel := context.WithTimeout(ctx, farewellTime)
	defer cancel()
	var telling sync.WaitGroup
	errs := make([]error, len(p.Servers))
	for i, address := range p.Servers {
		telling.Go(func() { errs[i] = tellServer(ctx, p.Credentials, address, p.how) })
	}
	telling.Wait()
	for i, err := range errs {
		if err != nil {
			p.Log.Warn("cannot tell a server that the run is over", "server", p.Servers[i], "error", err)
			untold = append(untold, p.Servers[i])
		}
	}
	return untold
}

// tellMembers sends the end to the members, and waits until they have
// disconnected: unread data can destroy the last message of a closed connection.
// It waits also for members that have just lost their connection.
func (p parting) tellMembers(ctx context.Context) {
	for _, m := range p.members {
		p.Dismiss(m, p.how)
	}
	ctx, cancel := context.WithTimeout(ctx, p.HearTime)
	defer cancel()
	for {
		back := p.awaitedTime()
		if len(p.members) == 0 && back == 0 {
			return
		}
		var late <-chan time.Time
		if len(p.members) == 0 {
			late = time.After(back)
		}
		select {
		case e := <-p.events:
			p.late(e)
		case <-late:
		case <-ctx.Done():
			return
		}
	}
}

// awaitedTime returns how long a member that has lost its connection may still come
// back: half of the time since then, because it tries every two seconds. 0: none
// is away.
func (p parting) awaitedTime() time.Duration {
	longest := time.Duration(0)
	for _, since := range p.away {
		longest = max(longest, p.HearTime/2-time.Since(since))
	}
	return longest
}

// tellServer sends the end to one server. It does not retry.
func tellServer(ctx context.Context, credentials wire.Credentials, address string, how wire.Leave) error {
	conn, err := credentials.Dial(ctx, address, wire.Hello{Role: wire.RoleCoordinator, PID: os.Getpid()})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Send(wire.TypeLeave, how, nil); err != nil {
		return err
	}
	return answered(conn)
}

// answered reads a server's answer.
func answered(conn *wire.Conn) error {
	m, err := conn.Receive(farewellTime)
	if err != nil {
		return err
	}
	var a wire.Answer
	if err := m.Decode(&a); err != nil {
		return err
	}
	if a.Error != "" || a.Refused != "" {
		return errors.New(a.Error + a.Refused)
	}
	return nil
}
