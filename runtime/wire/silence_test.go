package wire

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// cable is a connection that can be unplugged: what is written then arrives
// nowhere, and nobody is told.
type cable struct {
	net.Conn
	unplugged atomic.Bool
}

func (c *cable) Write(p []byte) (int, error) {
	if c.unplugged.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// plug connects two sides within a bubble of synctest.
func plug(t *testing.T) (client, server *Conn, wire *cable) {
	t.Helper()
	a, b := net.Pipe()
	wire = &cable{Conn: a}
	done := make(chan error, 1)
	go func() {
		var err error
		server, _, err = ours.accept(t.Context(), b)
		done <- err
	}()
	client, err := ours.greet(t.Context(), wire, Hello{})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return client, server, wire
}

// Pings keep a connection whose two sides have nothing to say, for hours.
func TestIdleConnectionsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server, _ := plug(t)
		go client.Receive(0) // takes the server's pings
		go func() {
			time.Sleep(3 * time.Hour)
			client.Send(TypeApplied, Applied{Version: 7}, nil)
		}()
		m, err := server.Receive(0)
		if err != nil || m.Type != TypeApplied {
			t.Fatalf("after three quiet hours: %v, %v", m, err)
		}
	})
}

// A peer that vanishes without closing is noticed within Silence, by whoever
// waits for it and by whoever sends to it.
func TestUnpluggedPeerIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server, wire := plug(t)
		go client.Receive(0)
		go func() {
			time.Sleep(time.Minute)
			wire.unplugged.Store(true)
		}()
		began := time.Now()
		_, err := server.Receive(0)
		timeout := net.Error(nil)
		if !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Fatalf("a peer that vanished: %v", err)
		}
		if took := time.Since(began) - time.Minute; took < Silence-pulse || took > Silence+pulse {
			t.Errorf("noticed after %v", took)
		}
	})
}

// A frame that stops in the middle of its body is a peer that vanished; one
// that comes slowly is not.
func TestSlowBodiesArrive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		c := newConn(b)
		c.begin()
		defer c.Close()
		go io.Copy(io.Discard, a)
		body := []float32{1, 2, 3, 4, 5, 6, 7, 8}
		whole := recorded(t, TypePush, Push{}, body)
		go func() {
			for i := range whole {
				if _, err := a.Write(whole[i : i+1]); err != nil {
					return
				}
				time.Sleep(Silence / 2)
			}
			a.Write(whole[:len(whole)-4]) // and then nothing
		}()
		into := make([]float32, len(body))
		m, err := c.Receive(0)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Body(m, into); err != nil || into[7] != 8 {
			t.Fatalf("a body of a byte every %v: %v, %v", Silence/2, into, err)
		}
		if m, err = c.Receive(0); err != nil {
			t.Fatal(err)
		}
		if err := c.Body(m, into); err == nil {
			t.Error("half a body was taken")
		}
	})
}

// A peer is never silent for longer than a pulse, whenever its last frame was sent: a reader's
// patience is for the processes that get no core meanwhile.
func TestPeersAreSilentForAPulseAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		c := newConn(b)
		c.begin()
		defer c.Close()
		go func() { // frames at all distances from the pings
			for i := range 40 {
				time.Sleep(pulse + time.Duration(i)*pulse/40)
				c.Send(TypeApplied, Applied{}, nil)
			}
			c.Close()
		}()
		longest, last := time.Duration(0), time.Now()
		for p := make([]byte, 1<<10); ; last = time.Now() {
			_, err := a.Read(p)
			longest = max(longest, time.Since(last))
			if err != nil {
				break
			}
		}
		if longest != pulse {
			t.Errorf("the peer sent nothing for %v", longest)
		}
	})
}

// A process that gets its cores late waits longer for the others, within bounds.
func TestLateProcessesWaitLonger(t *testing.T) {
	for _, c := range []struct{ late, longer time.Duration }{
		{0, 0}, {onTime / 2, 0}, {time.Second, perLateness * time.Second}, {time.Hour, moreLooks * Silence},
	} {
		synctest.Test(t, func(t *testing.T) {
			a, b := net.Pipe()
			conn := newConn(b) // without pings, which find that nothing is late here
			defer a.Close()
			defer conn.Close()
			conn.noteLateness(c.late)
			began := time.Now()
			if _, err := (arriving{conn}).Read(make([]byte, 1)); err == nil || time.Since(began) != Silence+c.longer {
				t.Errorf("late by %v: silence ends after %v: %v", c.late, time.Since(began), err)
			}
			for range 40 {
				conn.noteLateness(0)
			}
			if late := time.Duration(conn.late.Load()); late > onTime {
				t.Errorf("it is %v late after a while without", late)
			}
		})
	}
}

// stopped is a connection whose process stands still once, when it was about to notice a
// silence.
type stopped struct {
	net.Conn
	once bool
}

func (s *stopped) Read(p []byte) (int, error) {
	n, err := s.Conn.Read(p)
	if err != nil && !s.once {
		s.once = true
		time.Sleep(time.Minute)
	}
	return n, err
}

// What has come while the reader stood still counts.
func TestStoppedReaderLooksOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		reader := newConn(&stopped{Conn: b})
		defer a.Close()
		defer reader.Close()
		go func() {
			time.Sleep(Silence + time.Second)
			a.Write([]byte{7})
		}()
		p := make([]byte, 1)
		if _, err := (arriving{reader}).Read(p); err != nil || p[0] != 7 {
			t.Errorf("the reader stood still while %v came: %v", p, err)
		}
	})
}

// Receive with a limit returns when nothing but pings came by then.
func TestPingsAreNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server, _ := plug(t)
		go client.Receive(0)
		began := time.Now()
		_, err := server.Receive(time.Minute)
		timeout := net.Error(nil)
		if !errors.As(err, &timeout) || !timeout.Timeout() || time.Since(began) != time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

// recorded is a frame as it travels.
func recorded(t testing.TB, kind Type, head any, body []float32) []byte {
	t.Helper()
	a, b := net.Pipe()
	text := make(chan []byte)
	go func() {
		all, err := io.ReadAll(b)
		if err != nil {
			t.Error(err)
		}
		text <- all
	}()
	if err := newConn(a).Send(kind, head, body); err != nil {
		t.Fatal(err)
	}
	a.Close()
	return <-text
}
