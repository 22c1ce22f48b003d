package coordinator

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/spec"
)

// valve holds back what members send to their followers, until it is opened.
type valve struct {
	mu     sync.Mutex
	opened chan struct{}
	held   []*valveConn // connections that wait
	seen   int          // connections that have waited
}

type valveListener struct {
	net.Listener
	*valve
}

type valveConn struct {
	net.Conn
	*valve
	queue [][]byte // what was sent since the first piece; the valve's mu guards it
	over  bool     // it was cut
}

func newValve() *valve { return &valve{opened: make(chan struct{})} }

func (v *valve) wrap(l net.Listener) net.Listener { return &valveListener{l, v} }

func (l *valveListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &valveConn{Conn: c, valve: l.valve}, nil
}

// longestPing is how many bytes a frame has at most that shows that a peer is there.
const longestPing = 24

// Write sends. Where the valve is closed, all from the first piece of a follower on waits,
// but for the pings.
func (c *valveConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.opened:
	default:
		first := c.queue == nil && !c.over && bytes.Contains(p[:min(len(p), 200)], []byte(`"at":{`))
		if first {
			c.held = append(c.held, c)
			c.seen++
		}
		if first || c.queue != nil && len(p) > longestPing {
			c.queue = append(c.queue, bytes.Clone(p))
			return len(p), nil
		}
	}
	return c.Conn.Write(p)
}

// open lets all that waits go on.
func (v *valve) open() {
	v.mu.Lock()
	defer v.mu.Unlock()
	close(v.opened)
	for _, c := range v.held {
		for _, p := range c.queue {
			c.Conn.Write(p) //nolint:errcheck // the reader of the connection hears of it
		}
		c.queue = nil
	}
}

// waited is how many connections have waited.
func (v *valve) waited() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seen
}

// cut closes the connections that wait.
func (v *valve) cut() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, c := range v.held {
		c.queue, c.over = nil, true
		c.Close()
	}
	v.held = nil
}

// The members make updates while a newcomer fetches their parameters. The newcomer takes
// part from a later update on without another fetch, and whatever happens meanwhile, the run
// ends with the bits of an undisturbed one.
func TestNewcomerCatchesUp(t *testing.T) {
	undisturbed := newBench(t, reduceSpec(1, 60), linear{size: 5000})
	if st := undisturbed.run(); st.Phase != spec.Succeeded {
		t.Fatalf("status %+v", st)
	}
	want := hashed(undisturbed.parameters(), 0)
	scale := func(c *crew, n int) {
		client := api.New("http://"+c.options.API.Addr().String(), token, nil)
		defer client.Close()
		if err := client.Change(c.ctx, spec.LiveChange{Workers: &n}); err != nil {
			t.Fatal(err)
		}
	}
	for what, disturb := range map[string]func(c *crew, v *valve){
		"nothing happens": func(*crew, *valve) {},
		"the newcomer is lost": func(c *crew, v *valve) {
			c.stop(2)
			v.cut()
			c.start(2)
			c.until("another newcomer fetches", func() bool { return v.waited() >= 2 })
		},
		"the connection is lost": func(c *crew, v *valve) {
			v.cut()
			c.until("the newcomer fetches from another member", func() bool { return v.waited() >= 2 })
		},
		"the source leaves": func(c *crew, v *valve) {
			c.stop(0)
			c.until("another group is formed", func() bool { return len(c.restored()) >= 2 })
			v.cut()
			c.start(0)
		},
		"the workers are fewer for a while": func(c *crew, v *valve) {
			scale(c, 2)
			from := c.seen("update")
			c.until("the run goes on with two workers", func() bool { return c.seen("update") >= from+3 })
			v.cut()
			scale(c, 3)
			c.start(2)
		},
	} {
		t.Run(what, func(t *testing.T) {
			v := newValve()
			b := newBench(t, reduceSpec(3, 60), linear{size: 5000, fails: slowly})
			b.wrapMember = v.wrap
			c := &crew{bench: b, ends: make(map[int]context.CancelFunc)}
			done := b.begin()
			c.start(0)
			c.start(1)
			b.until("the run gets on", func() bool { return b.seen("update") >= 10 })
			c.start(2)
			b.until("the newcomer fetches", func() bool { return v.waited() > 0 })
			from, groups := b.seen("update"), len(b.restored())
			b.until("the members make updates while the newcomer fetches", func() bool { return b.seen("update") >= from+10 })
			if formed := b.restored(); len(formed) != groups || strings.Contains(fmt.Sprint(formed), "worker-2") {
				t.Errorf("groups %v were formed while the newcomer fetched", formed)
			}
			disturb(c, v)
			v.open()
			b.until("the newcomer is a member", func() bool { return strings.Contains(fmt.Sprint(b.restored()), "worker-2") })
			if st := <-done; st.Phase != spec.Succeeded || st.Records != 600*60 || st.Step != 12*60 {
				t.Fatalf("status %+v", st)
			}
			c.gone.Wait()
			for _, text := range b.restored()[1:] {
				if !strings.HasPrefix(text, "attached to ") {
					t.Errorf("the run went back: %s", text)
				}
			}
			if got := hashed(b.parameters(), 0); got != want {
				t.Errorf("the parameters are %s, undisturbed %s", got, want)
			}
			if fetched := strings.Count(b.logs.String(), "msg=restored"); what == "nothing happens" && fetched != 2 {
				t.Errorf("%d members fetched parameters while the group waited, want the first two", fetched)
			}
		})
	}
}
