package worker_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/ps"
	"github.com/stokehq/stoke/runtime/wire"
	"github.com/stokehq/stoke/runtime/worker"
)

// uneven is a listener whose connections pause at times after they have written.
type uneven struct{ net.Listener }

func (l uneven) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return pausing{c}, err
}

type pausing struct{ net.Conn }

func (c pausing) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	switch r := rand.N(20); {
	case r == 0:
		time.Sleep(3 * time.Millisecond)
	case r < 5:
		time.Sleep(rand.N(200 * time.Microsecond))
	}
	return n, err
}

// reducing is a member of a group. The only contributor to an update is one of two members, and
// the others may be behind; or every member contributes.
type reducing struct {
	rank    int
	every   int // members that contribute to each update; 0: one
	holder  ps.Member
	reducer *worker.Reducer
	link    *wire.Conn // of its coordinator
}

var known = wire.Credentials{Token: "shares", Version: "test"}

const sharesTerm = 3

// of returns each value of the contribution to the update of a version.
func of(version int64) float32 { return float32(1 + version%7) }

// contributes reports whether the member contributes to the update of a version.
func (m *reducing) contributes(version int64) bool {
	return m.every > 0 || m.rank == int(version/5)%2
}

// contributions returns the numbers of the contributions to the update of a version.
func (m *reducing) contributions(version int64) (ids []int64) {
	for i := range int64(max(1, m.every)) {
		ids = append(ids, version*int64(max(1, m.every))+i+1)
	}
	return ids
}

// start starts a member, which ends with ctx.
func (m *reducing) start(ctx context.Context, running *errgroup.Group) (address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	log := slog.New(slog.DiscardHandler)
	m.holder = ps.Member{Server: ps.New(m.rank, known, nil, nil, log)}
	address = l.Addr().String()
	m.reducer = worker.NewReducer(worker.Options{Index: m.rank, Credentials: known, Holder: m.holder, Address: address, Log: log})
	running.Go(func() error { return m.holder.Serve(ctx, uneven{l}) })
	running.Go(func() error {
		if err := m.reducer.Run(ctx); ctx.Err() == nil {
			return err
		}
		return nil
	})
	m.link, err = known.Dial(ctx, address, wire.Hello{Role: wire.RoleCoordinator})
	return address, err
}

// contribute checks each version of the parameters that it sees, and contributes to the
// updates that are this member's.
func (m *reducing) contribute(ctx context.Context, n int, updates int64) error {
	sums, want := make([]float32, n), float32(0)
	for version := int64(0); version <= updates; version++ {
		for {
			_, at, changed := m.holder.Group()
			if at.Term == sharesTerm && at.Version >= version {
				break
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return fmt.Errorf("member %d has not made update %d of %d: %w", m.rank, version, updates, context.Cause(ctx))
			}
		}
		if values, release, _, _ := m.holder.Hold(sharesTerm, version); release != nil { // else it is made on already
			for i, v := range values {
				if v != want {
					release()
					return fmt.Errorf("member %d: value %d of version %d is %v, want %v", m.rank, i, version, v, want)
				}
			}
			release()
		}
		want -= of(version)
		if version == updates || !m.contributes(version) {
			continue
		}
		for i := range sums {
			sums[i] = of(version)
		}
		ids := m.contributions(version)
		p := wire.Push{ID: ids[m.rank%len(ids)], Version: version, Exact: true, Weight: 1, Leaves: 1}
		p.Term = sharesTerm
		if err := m.reducer.Contribute(p, sums); err != nil {
			return err
		}
	}
	return nil
}

// reduce makes updates with some members. The coordinator asks every member for all updates at
// once: only the shares keep the members together.
func reduce(t *testing.T, members, every, n int, updates int64) []*reducing {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Minute, errors.New("a share is lost"))
	defer cancel()
	serving, stop := context.WithCancel(ctx)
	var running errgroup.Group
	defer running.Wait() //nolint:errcheck // the members' errors are those of the updates
	defer stop()
	all, group := make([]*reducing, members), wire.Group{}
	for rank := range all {
		all[rank] = &reducing{rank: rank, every: every}
		address, err := all[rank].start(serving, &running)
		if err != nil {
			t.Fatal(err)
		}
		defer all[rank].link.Close()
		group.Members = append(group.Members, address)
	}
	recipe := optimizer.Recipe{LearningRate: 1}
	var asked errgroup.Group
	for _, m := range all {
		own := group
		own.Mine = m.rank
		asked.Go(func() error {
			r := wire.Restore{Term: sharesTerm, To: n, Recipe: recipe, Exact: true, Group: &own,
				Vars: []model.Var{{Name: "values", Shape: []int{n}, Len: n}}}
			if err := m.link.Send(wire.TypeRestore, r, make([]float32, n)); err != nil {
				return err
			}
			_, err := m.link.Receive(0)
			return err
		})
	}
	if err := asked.Wait(); err != nil {
		t.Fatal(err)
	}
	working, ctx := errgroup.WithContext(ctx)
	for _, m := range all {
		working.Go(func() error { return m.contribute(ctx, n, updates) })
		working.Go(func() error { // requests wait in the connection
			for version := range updates {
				ids := m.contributions(version)
				p := wire.Prepare{Term: sharesTerm, Version: version, IDs: ids, Weight: float64(len(ids)), Alone: &recipe}
				if err := m.link.Send(wire.TypePrepare, p, nil); err != nil {
					return err
				}
			}
			return nil
		})
		working.Go(func() error {
			defer context.AfterFunc(ctx, func() { m.link.Close() })()
			for version := range updates {
				msg, err := m.link.Receive(0)
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err != nil {
					return fmt.Errorf("member %d, update %d: %w", m.rank, version, err)
				}
				var a wire.Answer
				if err := msg.Decode(&a); err != nil || a.Error != "" || a.Refused != "" || !a.Finite {
					return fmt.Errorf("member %d, update %d: %+v, %v", m.rank, version, a, err)
				}
			}
			return nil
		})
	}
	if err := working.Wait(); err != nil {
		t.Error(err)
	}
	return all
}

// No member misses a share of the sums, though the others run ahead of it as far as they can:
// members that contribute nothing do not hold them up.
func TestSharesReachAMemberThatIsBehind(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for cores := 1; cores <= 4; cores++ {
		runtime.GOMAXPROCS(cores)
		for _, members := range []int{2, 3, 4} {
			t.Run(fmt.Sprintf("%d members, %d cores", members, cores), func(t *testing.T) { reduce(t, members, 0, 10*members+1, 150) })
		}
	}
}

// Of two members, the one that contributes first adds up a long contribution of the other one as
// it arrives. The members of a larger group do not.
func TestContributionsAreMergedOfTwoMembers(t *testing.T) {
	const n, updates = 300_001, 40
	for members := 2; members <= 3; members++ {
		merges := int64(0)
		for try := 0; try == 0 || members == 2 && merges == 0 && try < 5; try++ { // on a busy machine a contribution may come before its request
			for _, m := range reduce(t, members, members, n, updates) {
				merges += m.holder.Merges()
			}
		}
		if (merges > 0) != (members == 2) {
			t.Errorf("%d members have added up %d contributions as they arrived", members, merges)
		}
	}
}
