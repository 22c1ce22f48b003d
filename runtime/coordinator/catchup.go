package coordinator

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/wire"
)

// maxFollows is how many members a newcomer tries to follow, one after the other. If it
// cannot follow any, the group waits while the newcomer fetches the parameters.
const maxFollows = 3

// catchUps is the newcomers to a group. Each follows a member while the group makes
// updates. Once it has caught up, the next group is formed with it.
type catchUps struct {
	mu      sync.Mutex
	all     map[*session.Member]*catchUp
	running sync.WaitGroup
}

// catchUp is the state of one newcomer.
type catchUp struct {
	cancel context.CancelFunc
	over   bool // it has caught up, or cannot
}

// isOver reports whether a newcomer has caught up, or cannot.
func (c *catchUps) isOver(m *session.Member) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.all[m]
	return u != nil && u.over
}

// end ends the catching up of a newcomer.
func (c *catchUps) end(m *session.Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if u := c.all[m]; u != nil {
		u.cancel()
		u.over = true
	}
}

// forget ends the catching up of a worker that has left.
func (c *catchUps) forget(m *session.Member) {
	c.end(m)
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, m)
}

// close ends the catching up of all newcomers.
func (c *catchUps) close() {
	c.mu.Lock()
	for _, u := range c.all {
		u.cancel()
	}
	c.mu.Unlock()
	c.running.Wait()
}

// newcomers lets the workers that wait to be taken into the group catch up, and returns
// those that have, or cannot; with urgent, all of them.
func (a *allReduce) newcomers(ctx context.Context, c restoreSource, urgent bool) (names []string) {
	if len(a.links) == 0 {
		return nil
	}
	present, _ := a.members()
	group := a.group()
	for _, m := range present {
		if slices.Contains(group, m) || m.Leaving() {
			continue
		}
		a.catchUp(ctx, m, c)
		if urgent {
			a.catching.end(m)
		}
		if a.catching.isOver(m) {
			names = append(names, m.Seat().String())
		}
	}
	return names
}

// catchUp lets a newcomer follow members of the group, unless it does already.
func (a *allReduce) catchUp(ctx context.Context, m *session.Member, c restoreSource) {
	a.catching.mu.Lock()
	defer a.catching.mu.Unlock()
	if a.catching.all[m] != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	u := &catchUp{cancel: cancel}
	a.catching.all[m] = u
	a.catching.running.Go(func() {
		defer cancel()
		for try := range maxFollows {
			group := a.group()
			source := group[(m.Index+try)%len(group)].Hello.Address
			err := a.follow(ctx, m, source, c)
			if err == nil || ctx.Err() != nil {
				break
			}
			a.log.Warn("a newcomer cannot follow a member", "worker", m.Index, "member", source, "error", err)
		}
		a.catching.mu.Lock()
		u.over = true
		a.catching.mu.Unlock()
		select {
		case a.signal <- struct{}{}:
		default: // one is waiting already
		}
	})
}

// follow asks a newcomer to follow a member, and waits until the newcomer has caught up. The
// newcomer goes on to follow that member until the next group begins.
func (a *allReduce) follow(ctx context.Context, m *session.Member, source string, c restoreSource) error {
	conn, err := a.credentials.Dial(ctx, m.Hello.Address, wire.Hello{Role: wire.RoleCoordinator, PID: os.Getpid()})
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	vars := a.workload.Vars
	f := wire.Follow{Term: c.term, Source: source, Values: model.Length(vars), Slots: c.recipe.Slots(), Vars: vars}
	if err := conn.Send(wire.TypeFollow, f, nil); err != nil {
		return err
	}
	msg, err := conn.Receive(restoreTime)
	if err != nil {
		return err
	}
	var answer wire.Answer
	if err := msg.Decode(&answer); err != nil {
		return err
	}
	if answer != (wire.Answer{}) {
		return errors.New(answer.Error + answer.Refused)
	}
	return nil
}

// eligible returns the workers that the next group is formed of: the members of the present
// one, and the newcomers that have caught up. All present workers are, where the first group
// is formed, where no member is left, or where the members lack the newest parameters.
func (a *allReduce) eligible(present []*session.Member) []*session.Member {
	group := a.group()
	held := func(m *session.Member) bool { return slices.Contains(group, m) }
	if !a.lacks.IsZero() || !slices.ContainsFunc(present, held) {
		return present
	}
	return slices.DeleteFunc(slices.Clone(present), func(m *session.Member) bool { return !held(m) && !a.catching.isOver(m) })
}

// attaches reports whether a member holds the newest parameters, or gets the few updates
// that it lacks from the member that it follows.
func attaches(h, newest *wire.Holding, n int) bool {
	return h.Term == newest.Term && h.From == 0 && h.To == n && (h.Version == newest.Version || h.Follows && h.Version < newest.Version)
}
