package ps

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/wire"
)

// paced is a listener whose connections take a permit for each piece that they send to a
// follower.
type paced struct {
	net.Listener
	permits chan struct{}
}

type pacedConn struct {
	net.Conn
	permits chan struct{}
}

func (l *paced) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &pacedConn{c, l.permits}, err
}

func (c *pacedConn) Write(p []byte) (int, error) {
	if bytes.Contains(p[:min(len(p), 200)], []byte(`"at":{`)) {
		<-c.permits
	}
	return c.Conn.Write(p)
}

// led is a member that is alone in its group, and the worker that is to follow it.
type led struct {
	t         *testing.T
	from, to  *Server
	request   wire.Follow
	permits   chan struct{}
	lastPush  int64
	toAddress string
}

// lead makes a member of n values.
func lead(t *testing.T, n int) *led {
	t.Helper()
	vars := []model.Var{{Name: "w", Len: n}}
	initial := make([]float32, n)
	for i := range initial {
		initial[i] = float32(i%17) / 3
	}
	from, to := newServer(io.Discard), newServer(io.Discard)
	to.patience = time.Hour // a member that waits for a permit says nothing
	group := &wire.Group{Members: []string{"127.0.0.1:1"}}
	if a := restore(t, from, wire.Restore{Term: 3, Version: 10, To: n, Recipe: recipe, Vars: vars, Group: group, Exact: true}, initial); a != (wire.Answer{}) {
		t.Fatal(a)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	pace := &paced{l, make(chan struct{}, 1<<12)}
	go func() { done <- from.Serve(ctx, pace) }()
	d := &led{t: t, from: from, to: to, permits: pace.permits, toAddress: serve(t, to)}
	d.request = wire.Follow{Term: 3, Source: l.Addr().String(), Values: n, Slots: recipe.Slots(), Vars: vars}
	t.Cleanup(func() {
		cancel()
		for range cap(d.permits) {
			select {
			case d.permits <- struct{}{}:
			default:
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return d
}

// update lets the member make an update.
func (d *led) update() {
	d.t.Helper()
	d.lastPush++
	version := d.from.version
	sums := make([]float32, d.request.Values)
	for i := range sums {
		sums[i] = float32((int64(i)+7*d.lastPush)%13) - 6
	}
	if a := (Member{d.from}).Contribute(push(d.lastPush, true, version), [][]float32{sums}, nil); a != (wire.Answer{}) {
		d.t.Fatalf("contribute: %+v", a)
	}
	a := d.from.prepare(d.t.Context(), wire.Prepare{Term: 3, Version: version, IDs: []int64{d.lastPush}, Weight: 1, Alone: &recipe})
	if !a.Finite {
		d.t.Fatalf("prepare: %+v", a)
	}
}

// follow lets the worker follow the member, and returns its answer.
func (d *led) follow() <-chan wire.Answer {
	d.t.Helper()
	conn, err := credentials.Dial(d.t.Context(), d.toAddress, wire.Hello{Role: wire.RoleCoordinator})
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { conn.Close() })
	if err := conn.Send(wire.TypeFollow, d.request, nil); err != nil {
		d.t.Fatal(err)
	}
	answers := make(chan wire.Answer, 1)
	go func() {
		var a wire.Answer
		m, err := conn.Receive(0)
		if err == nil {
			err = m.Decode(&a)
		}
		if err != nil {
			a.Error = err.Error()
		}
		answers <- a
	}()
	return answers
}

// received waits until the follower has received so many stretches of all vectors.
func (d *led) received(n int) {
	d.until(fmt.Sprintf("%d stretches are here", n), func(w *following) bool {
		return w != nil && len(w.versions)-count(w.versions, -1) >= n && w.got >= 2*min(n*stretchOf(d.request.Values), d.request.Values)
	})
}

func count(all []int64, v int64) (n int) {
	for _, a := range all {
		if a == v {
			n++
		}
	}
	return n
}

// until waits for a state of the follower.
func (d *led) until(what string, ok func(w *following) bool) {
	d.t.Helper()
	for {
		d.to.mu.Lock()
		w := d.to.following
		done, changed := ok(w), d.to.changed
		if w != nil {
			changed = w.changed
		}
		d.to.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-d.t.Context().Done():
			d.t.Fatalf("%s: not", what)
		}
	}
}

// A follower has the bits of its member, whose updates were made before, between and after
// the stretches of the vector that it has received. It begins a term with them, also where the
// last updates are still on their way.
func TestFollowerHasTheSameBits(t *testing.T) {
	const n = 3*piece + 100
	d := lead(t, n)
	d.update()
	answer := d.follow()
	for stretch := range 4 {
		d.permits <- struct{}{} // parameters
		d.permits <- struct{}{} // slots
		d.received(stretch + 1)
		d.update()
		d.update()
		for range stretch { // stretches that were copied before these updates lack them
			d.update()
		}
	}
	if a := <-answer; a != (wire.Answer{}) {
		t.Fatalf("the follower's answer is %+v", a)
	}
	d.update()
	version := d.from.version
	group := &wire.Group{Members: []string{"127.0.0.1:1", "127.0.0.1:2"}}
	held := d.to.answerHold(wire.Hold{Term: 4}).Held
	if held.Term != 3 || !held.Follows || held.Version > version || held.To != n {
		t.Fatalf("the follower holds %+v", held)
	}
	if a := d.from.attach(wire.Attach{Term: 4, Held: 3, Version: version, Group: group}); a != (wire.Answer{}) {
		t.Fatalf("attach the member: %+v", a)
	}
	d.permits <- struct{}{} // the message about the term
	d.until("the follower knows of the term", func(w *following) bool { return w.at.term == 4 })
	group = &wire.Group{Members: group.Members, Mine: 1}
	if a := d.to.attach(wire.Attach{Term: 4, Held: 3, Version: version, Group: group}); a != (wire.Answer{}) {
		t.Fatalf("attach: %+v", a)
	}
	if d.to.version != version || !slices.Equal(d.to.values.v, d.from.values.v) || !slices.Equal(d.to.slots[0].v, d.from.slots[0].v) {
		t.Errorf("the follower has other parameters at version %d than its member at %d", d.to.version, version)
	}
	if got, want := d.to.decided, d.from.decided; got == nil || len(got.taken) != 1 || got.taken[0] != want.taken[0] || got.apply.Scale != want.apply.Scale {
		t.Errorf("the follower's newest decision is %+v, its member's %+v", got, want)
	}
	if got, all := d.to.past, d.from.past; len(got) < 8 || !slices.Equal(got, all[len(all)-len(got):]) {
		t.Errorf("the follower remembers %+v, its member %+v", got, all)
	}
}

// The sums that a follower lacks take a bounded memory: a follower that cannot keep up with
// the updates is told so.
func TestFollowerCannotKeepUp(t *testing.T) {
	const n = 3*piece + 100
	d := lead(t, n)
	answer := d.follow()
	d.permits <- struct{}{}
	d.permits <- struct{}{}
	d.received(1)
	d.update() // which makes the buffer of the sums that other members receive
	before := d.from.Vectors()
	most := lagValues / n
	for range most + 10 {
		d.update()
	}
	if more := d.from.Vectors() - before; more > most+2 {
		t.Errorf("a follower costs %d vectors of memory, of at most %d", more, most+2)
	}
	for range 10 {
		d.permits <- struct{}{}
	}
	if a := <-answer; !strings.Contains(a.Refused, "lacks too many updates") {
		t.Errorf("the follower's answer is %+v", a)
	}
	d.until("the follower has forgotten its part", func(w *following) bool { return w == nil })
	if held := d.to.answerHold(wire.Hold{Term: 4}).Held; held.Term != 0 {
		t.Errorf("the follower holds %+v", held)
	}
}

// A checkpoint that is being written does not keep the updates waiting for a follower: the
// sums that the follower lacks are memory beyond what the updates use.
func TestFollowerDoesNotStallCheckpoints(t *testing.T) {
	const n = 3*piece + 100
	for _, queued := range []int{0, 1, 2, 5} {
		d := lead(t, n)
		d.update()
		answer := d.follow()
		d.permits <- struct{}{}
		d.permits <- struct{}{}
		d.received(1)
		for range queued {
			d.update()
		}
		d.from.mu.Lock()
		unsent := countUnsent(d.from)
		d.from.mu.Unlock()
		if unsent < queued-1 || unsent > queued { // the member may have sent one before the next stretch
			t.Errorf("%d of %d updates are unsent", unsent, queued)
		}
		if a := d.from.keep(wire.CutRequest{Term: 3, Version: d.from.version}); a != (wire.Answer{}) {
			t.Fatal(a)
		}
		for range 3 {
			d.update()
		}
		if d.from.stalls > 0 {
			t.Errorf("with %d updates on their way to a follower, the updates have waited %d times for a checkpoint", queued, d.from.stalls)
		}
		for range 100 {
			d.permits <- struct{}{}
		}
		if a := <-answer; a != (wire.Answer{}) {
			t.Errorf("the follower's answer is %+v", a)
		}
	}
}

// A member refuses a follower that expects another vector.
func TestFollowerOfAnotherVector(t *testing.T) {
	for why, change := range map[string]func(f *wire.Follow){
		"it has 200 values, not 100": func(f *wire.Follow) { f.Values, f.Vars = 100, nil },
		"it has 1 slots, not 2":      func(f *wire.Follow) { f.Slots = 2 },
	} {
		d := lead(t, 200)
		change(&d.request)
		if a := <-d.follow(); !strings.Contains(a.Refused, why) {
			t.Errorf("the follower's answer is %+v, not: %s", a, why)
		}
	}
}
