package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/connect/ssh/sshtest"
)

func command(args ...string) func() Command { return func() Command { return Command{Args: args} } }

// echoes runs so many commands at once.
func echoes(t *testing.T, p *Pool, target Target, n int) {
	t.Helper()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			out, err := p.Run(t.Context(), target, command("echo", fmt.Sprint(i)), false)
			if err != nil || string(out.Stdout) != fmt.Sprintln(i) {
				t.Errorf("%q, %v", out.Stdout, err)
			}
		})
	}
	all.Wait()
}

func TestPoolShares(t *testing.T) {
	s := serverWith(t, sshtest.Config{})
	p := &Pool{}
	defer p.Close()
	echoes(t, p, Target{Hop: hop(s, byPassword)}, 30)
	if n := s.Logins(); n != 1 {
		t.Errorf("%d logins", n)
	}
}

// Machines behind a bastion share the connection to it, and find the next one
// when it breaks.
func TestPoolSharesBastions(t *testing.T) {
	bastion := serverWith(t, sshtest.Config{MaxSessions: 1})
	p := &Pool{Patience: 20 * time.Second, Pause: time.Millisecond}
	defer p.Close()
	targets := make([]Target, 6)
	for i := range targets {
		targets[i] = Target{Hop: hop(serverWith(t, sshtest.Config{}), byPassword), Hops: []Hop{hop(bastion, byPassword)}}
	}
	for range 2 {
		var all sync.WaitGroup
		for _, target := range targets {
			all.Go(func() { echoes(t, p, target, 2) })
		}
		all.Wait()
		for _, target := range targets {
			if c, err := p.Dial(t.Context(), target); err != nil {
				t.Error(err)
			} else if c.Close(); c.conn == nil {
				t.Error("no connection")
			}
		}
		bastion.Drop()
		waitUntil(t, "the bastion's connections are gone", func() bool { return bastion.Connections() == 0 })
	}
	if n := bastion.Logins(); n != 2+2*len(targets) {
		t.Errorf("%d logins on the bastion", n)
	}
}

func waitUntil(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 20000 {
		if done() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("waited in vain until %s", what)
}

// TestPoolReconnects breaks every connection while a command runs: one that may
// run twice gets through, any other says that it was lost.
func TestPoolReconnects(t *testing.T) {
	var drop atomic.Bool
	var s *sshtest.Server
	s = serverWith(t, sshtest.Config{Before: func(string) {
		if drop.CompareAndSwap(true, false) {
			s.Drop()
		}
	}})
	p := &Pool{Patience: 20 * time.Second, Pause: time.Millisecond}
	defer p.Close()
	target := Target{Hop: hop(s, byPassword)}
	drop.Store(true)
	out, err := p.Run(t.Context(), target, command("echo", "done"), true)
	if err != nil || string(out.Stdout) != "done\n" {
		t.Errorf("%q, %v", out.Stdout, err)
	}
	drop.Store(true)
	_, err = p.Run(t.Context(), target, command("echo", "done"), false)
	var lost *LostError
	if !errors.As(err, &lost) || !lost.Begun {
		t.Error(err)
	}
	echoes(t, p, target, 3)
}

// A command that breaks the connection each time is not repeated for ever.
func TestPoolBreaksEachTime(t *testing.T) {
	var s *sshtest.Server
	var ran atomic.Int64
	s = serverWith(t, sshtest.Config{Before: func(string) { ran.Add(1); s.Drop() }})
	p := &Pool{Patience: time.Hour, Pause: time.Millisecond}
	defer p.Close()
	var lost *LostError
	if _, err := p.Run(t.Context(), Target{Hop: hop(s, byPassword)}, command("true"), true); !errors.As(err, &lost) || ran.Load() != maxLost {
		t.Errorf("%v after %d runs", err, ran.Load())
	}
}

// A connection that broke while nobody used it harms no command, not even one
// that must not run twice.
func TestPoolIdleConnectionBreaks(t *testing.T) {
	s := serverWith(t, sshtest.Config{})
	p := &Pool{}
	defer p.Close()
	target := Target{Hop: hop(s, byPassword)}
	for range 20 {
		echoes(t, p, target, 1)
		s.Drop()
	}
}

func TestPoolForgets(t *testing.T) {
	s := serverWith(t, sshtest.Config{})
	p := &Pool{}
	target := Target{Hop: hop(s, byPassword)}
	p.Forget(target)
	for range 3 {
		echoes(t, p, target, 1)
		p.Forget(target)
	}
	if s.Logins() != 3 {
		t.Errorf("%d logins", s.Logins())
	}
	p.Close()
	p.Forget(target)
	if _, err := p.Run(t.Context(), target, command("true"), true); !errors.Is(err, errClosed) {
		t.Error(err)
	}
}

// A server that allows fewer sessions at a time gets fewer.
func TestMaxSessions(t *testing.T) {
	for _, most := range []int{1, 3} {
		s := serverWith(t, sshtest.Config{MaxSessions: most})
		p := &Pool{}
		echoes(t, p, Target{Hop: hop(s, byPassword)}, 20)
		if s.Logins() != 1 {
			t.Errorf("at most %d sessions: %d logins", most, s.Logins())
		}
		p.Close()
	}
}

func TestPoolGivesUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	p := &Pool{Patience: 30 * time.Millisecond, Pause: 5 * time.Millisecond}
	defer p.Close()
	_, err = p.Run(t.Context(), Target{Hop: Hop{Address: "127.0.0.1", Port: port, Credential: Credential{User: "x", Password: "x"}}}, command(), true)
	if err == nil || IsPermanent(err) || !strings.Contains(err.Error(), "(tried for 30ms)") {
		t.Error(err)
	}
	patient := &Pool{Patience: time.Hour}
	defer patient.Close()
	s := serverWith(t, sshtest.Config{})
	for name, target := range map[string]Target{
		"wrong password": {Hop: hop(s, Credential{Password: "wrong"})},
		"no such name":   {Hop: Hop{Address: "no-such-host.invalid", Credential: byPassword}},
		"bastion that forwards nothing": {Hop: hop(s, byPassword), Hops: []Hop{
			hop(serverWith(t, sshtest.Config{NoForwarding: true}), byPassword),
		}},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if _, err = patient.Run(ctx, target, command(), true); !IsPermanent(err) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}

// TestPoolIsPatientOnce: several resources of a machine that is off do not each wait
// for it, and one that answers again is waited for again.
func TestPoolIsPatientOnce(t *testing.T) {
	s := serverWith(t, sshtest.Config{})
	target := Target{Hop: hop(s, byPassword)}
	p := &Pool{Patience: 10 * time.Millisecond, Pause: 5 * time.Millisecond}
	defer p.Close()
	e, err := p.entry(target)
	if err != nil {
		t.Fatal(err)
	}
	off := errors.New("no answer")
	if err := p.newTries(e).wait(t.Context(), off); err != nil {
		t.Errorf("the first try is the last: %v", err)
	}
	spent := p.newTries(e)
	for err = nil; err == nil; {
		err = spent.wait(t.Context(), off)
	}
	if !strings.Contains(err.Error(), "(tried for 10ms)") {
		t.Error(err)
	}
	p.Patience = time.Hour
	if err := p.newTries(e).wait(t.Context(), off); err != off {
		t.Errorf("the next who asks for it gets %v", err)
	}
	if _, err := p.Run(t.Context(), target, command(), true); err != nil {
		t.Fatal(err)
	}
	if err := p.newTries(e).wait(t.Context(), off); err != nil {
		t.Errorf("it has answered since, and there is one try only: %v", err)
	}
}

// TestPoolCloses ends what is being dialled, and what runs.
func TestPoolCloses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := serverWith(t, sshtest.Config{})
	p := &Pool{Patience: time.Hour}
	var all sync.WaitGroup
	silent := Hop{Address: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, Credential: Credential{User: "x", Password: "x"}}
	for _, target := range []Target{{Hop: silent}, {Hop: hop(s, byPassword), Hops: []Hop{silent}}, {Hop: hop(s, byPassword)}} {
		all.Go(func() {
			if _, err := p.Run(t.Context(), target, command("sleep", "600"), true); err == nil {
				t.Error("no error")
			}
		})
	}
	if conn, err := l.Accept(); err != nil {
		t.Error(err)
	} else {
		defer conn.Close()
	}
	waitUntil(t, "one is logged in", func() bool { return s.Logins() > 0 })
	p.Close()
	all.Wait()
}

func dialledWithin(t *testing.T, h Hop, limits Timeouts) *Client {
	t.Helper()
	c, err := Dial(t.Context(), Target{Hop: h}, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestKeepalive finds out that a machine has gone without saying so, while a
// command runs.
func TestKeepalive(t *testing.T) {
	s := serverWith(t, sshtest.Config{})
	var c *Client
	for _, alive := range []time.Duration{200 * time.Millisecond, 2 * time.Second, 20 * time.Second} { // until this machine is quick enough to answer
		c = dialledWithin(t, hop(s, byPassword), Timeouts{Alive: alive})
		_, err := c.Run(t.Context(), Command{Args: []string{"sleep", fmt.Sprint((5 * alive).Seconds())}})
		if err == nil {
			break
		}
		if alive == 20*time.Second {
			t.Fatalf("a machine that answers: %v", err)
		}
	}
	time.AfterFunc(50*time.Millisecond, func() { s.Still.Store(true) })
	_, err := c.Run(t.Context(), Command{Args: []string{"sleep", "600"}})
	var lost *LostError
	if !errors.As(err, &lost) {
		t.Error(err)
	}
	s.Still.Store(false)
}

// TestSilent dials a machine that accepts and then says nothing.
func TestSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	h := Hop{Address: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, Credential: Credential{User: "x", Password: "x"}}
	_, err = Dial(t.Context(), Target{Hop: h}, Timeouts{Dial: 50 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "no answer for 50ms") || IsPermanent(err) {
		t.Error(err)
	}
	_, err = Dial(t.Context(), Target{Hop: h, Hops: []Hop{hop(serverWith(t, sshtest.Config{}), byPassword)}}, Timeouts{Dial: 300 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "no answer for 300ms") || IsPermanent(err) {
		t.Error(err)
	}
}

// A slow line is slow, and no error.
func TestDrip(t *testing.T) {
	s := serverWith(t, sshtest.Config{})
	s.Drip.Store(int64(20 * time.Microsecond))
	c := dialled(t, Target{Hop: hop(s, byPassword)})
	if out, err := c.Run(t.Context(), Command{Args: []string{"echo", "slow"}}); err != nil || string(out.Stdout) != "slow\n" {
		t.Errorf("%q %v", out.Stdout, err)
	}
}
