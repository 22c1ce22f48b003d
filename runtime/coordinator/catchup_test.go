package coordinator

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
	"github.com/stokehq/stoke/runtime/workload"
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
			c.until("the newcomer fetches from the other member", func() bool { return v.waited() >= 2 })
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
			if testing.Short() && what != "the connection is lost" && what != "the source leaves" {
				t.Skip("make test and the suite race-all have it")
			}
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

// newcomer is a worker at a loopback address that is asked to follow members. answer gives its
// answer about one of them; nil: it does not answer.
func newcomer(t *testing.T, answer func(source string) *wire.Answer) (address string, asked <-chan string) {
	l := listen(t)
	sources := make(chan string, 100)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- credentials.Serve(ctx, l, func(c *wire.Conn, _ wire.Hello) {
			defer c.Close()
			var f wire.Follow
			if m, err := c.Receive(0); err != nil || m.Decode(&f) != nil {
				return
			}
			sources <- f.Source
			if a := answer(f.Source); a != nil {
				c.Send(wire.TypeAnswer, a, nil) //nolint:errcheck // the test sees that it did not come
			}
			c.Receive(0) //nolint:errcheck // until the coordinator closes the connection
		}, func(error) {})
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return l.Addr().String(), sources
}

// catching returns a group of so many members, of which none is reached, and a newcomer.
func catching(t *testing.T, members int, address string) (a *allReduce, group []*session.Member, m *session.Member, logs *locked) {
	logs = new(locked)
	a = newAllReduce(Options{
		Options:  session.Options{Spec: reduceSpec(members, 1), Log: slog.New(slog.NewTextHandler(logs, nil)), Credentials: credentials},
		Workload: &workload.Workload{Vars: []model.Var{{Name: "w", Len: 4}}},
	})
	for i := range members {
		group = append(group, session.NewMember(nil, wire.Hello{Role: wire.RoleWorker, Index: i, Address: fmt.Sprintf("member-%d", i)}))
	}
	a.formed = group
	t.Cleanup(a.catching.close)
	return a, group, session.NewMember(nil, wire.Hello{Role: wire.RoleWorker, Index: members, Address: address}), logs
}

// A newcomer whose member leaves the group follows another one, however often that happens. A
// newcomer that becomes a member follows none.
func TestNewcomerFollowsAnotherMember(t *testing.T) {
	address, asked := newcomer(t, func(string) *wire.Answer { return nil })
	a, group, m, logs := catching(t, 2*maxFollows, address)
	a.catchUp(t.Context(), m, restoreSource{})
	for source := range asked {
		at := slices.IndexFunc(group, func(m *session.Member) bool { return m.Hello.Address == source })
		if at < 0 {
			t.Fatalf("the newcomer follows %s, which has left", source)
		}
		if len(group) == 1 {
			break
		}
		group = slices.Delete(slices.Clone(group), at, at+1)
		a.formMu.Lock()
		a.formed = group
		a.formMu.Unlock()
		a.catching.regroup(group)
	}
	if a.catching.isOver(m) {
		t.Error("the newcomer has caught up with a member that does not answer")
	}
	a.catching.regroup(append(group, m))
	<-a.signal
	a.catching.running.Wait()
	if !a.catching.isOver(m) || len(asked) > 0 || strings.Contains(logs.String(), "cannot") {
		t.Errorf("a member catches up: %s", logs)
	}
}

// A newcomer is not asked to follow a member that it has failed to follow.
func TestNewcomerCannotFollow(t *testing.T) {
	for members, want := range map[int]int{1: 1, 2: 2, 5: maxFollows} {
		address, asked := newcomer(t, func(string) *wire.Answer { return &wire.Answer{Refused: "it cannot be followed"} })
		a, _, m, logs := catching(t, members, address)
		a.catchUp(t.Context(), m, restoreSource{})
		a.catching.running.Wait()
		if n := strings.Count(logs.String(), "a newcomer cannot follow a member"); n != want || len(asked) != want || !a.catching.isOver(m) {
			t.Errorf("%d members: %d warnings and %d requests, want %d: %s", members, n, len(asked), want, logs)
		}
	}
	l := listen(t)
	l.Close()
	a, _, m, logs := catching(t, 1, l.Addr().String())
	a.catchUp(t.Context(), m, restoreSource{})
	a.catching.running.Wait()
	if n := strings.Count(logs.String(), "the coordinator cannot reach a newcomer"); n != maxFollows || strings.Contains(logs.String(), "cannot follow") {
		t.Errorf("%d warnings: %s", n, logs)
	}
}

// Only the wanted workers catch up: those that are to leave do not.
func TestSurplusWorkersDoNotCatchUp(t *testing.T) {
	address, asked := newcomer(t, func(string) *wire.Answer { return new(wire.Answer) })
	a, group, m, _ := catching(t, 1, address)
	a.links = []*link{nil}
	a.enter(m)
	all := []*session.Member{m}
	for _, wanted := range [][]*session.Member{all, nil} {
		a.newcomers(t.Context(), restoreSource{}, wanted, false)
		a.catching.running.Wait()
		named := a.newcomers(t.Context(), restoreSource{}, wanted, false)
		if next := a.eligible(append(all, group...)); len(named) != len(wanted) || len(next) != 1+len(wanted) {
			t.Errorf("wanted are %d workers: %v have caught up, and a group has %d members", len(wanted), named, len(next))
		}
	}
	if len(asked) != 1 {
		t.Errorf("the worker was asked %d times to follow", len(asked))
	}
}
