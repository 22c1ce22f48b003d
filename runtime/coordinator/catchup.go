package coordinator

import (
	"context"
	"errors"
	"fmt"
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

// catchUp is the state of one newcomer. The mu of catchUps guards it.
type catchUp struct {
	cancel context.CancelFunc
	over   bool            // it has caught up, or cannot
	source *session.Member // the member that it follows, before it has caught up; nil: there is none
	leave  context.CancelCauseFunc
}

// errLeft ends the following of a member that is not in the group any longer.
var errLeft = errors.New("the member has left the group")

// errUnreached is about a newcomer that the coordinator cannot connect to.
var errUnreached = errors.New("no connection to the newcomer")

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

// regroup ends the following of members that are not in a group which is formed, and all
// catching up of its members.
func (c *catchUps) regroup(group []*session.Member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for m, u := range c.all {
		switch {
		case slices.Contains(group, m):
			u.cancel()
			u.over = true
		case u.source != nil && !slices.Contains(group, u.source):
			u.leave(errLeft)
		}
	}
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

// newcomers lets those of the wanted workers that wait to be taken into the group catch up, and
// returns those that have, or cannot; with urgent, all of them. The others do not catch up.
func (a *allReduce) newcomers(ctx context.Context, c restoreSource, wanted []*session.Member, urgent bool) (names []string) {
	if len(a.links) == 0 {
		return nil
	}
	present, _ := a.members()
	group := a.group()
	for _, m := range present {
		if slices.Contains(group, m) {
			continue
		}
		if !slices.Contains(wanted, m) {
			a.catching.forget(m)
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
		a.followAny(ctx, m, u, c)
		select {
		case a.signal <- struct{}{}:
		default: // one is waiting already
		}
	})
}

// followAny lets a newcomer follow one member of the group after the other, until it has caught
// up, has failed maxFollows times, or has failed with each member. A member that leaves the
// group meanwhile does not count.
func (a *allReduce) followAny(ctx context.Context, m *session.Member, u *catchUp, c restoreSource) {
	var failed []*session.Member
	for fails := 0; fails < maxFollows; {
		source, err := a.followNext(ctx, m, u, failed, c)
		if source == nil || err == nil || ctx.Err() != nil {
			break
		}
		switch {
		case errors.Is(err, errLeft):
			a.log.Info("a newcomer is to follow another member", "worker", m.Index, "member", source.Hello.Address, "reason", err)
			continue
		case errors.Is(err, errUnreached):
			a.log.Warn("the coordinator cannot reach a newcomer", "worker", m.Index, "address", m.Hello.Address, "error", err)
		default:
			a.log.Warn("a newcomer cannot follow a member", "worker", m.Index, "member", source.Hello.Address, "error", err)
			failed = append(failed, source)
		}
		fails++
	}
	a.catching.mu.Lock()
	u.over = true
	a.catching.mu.Unlock()
}

// followNext lets a newcomer follow a member of the group, except those that it has failed to
// follow. It waits until the newcomer has caught up, and returns the member; nil: there is no
// other member. The error is errLeft where the member has left the group meanwhile.
func (a *allReduce) followNext(
	ctx context.Context, m *session.Member, u *catchUp, failed []*session.Member, c restoreSource,
) (*session.Member, error) {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	a.catching.mu.Lock()
	group := a.group()
	for i := range group {
		if next := group[(m.Index+i)%len(group)]; !slices.Contains(failed, next) {
			u.source, u.leave = next, leave
			break
		}
	}
	source := u.source
	a.catching.mu.Unlock()
	if source == nil {
		return nil, nil
	}
	err := a.follow(ctx, m, source.Hello.Address, c)
	a.catching.mu.Lock()
	defer a.catching.mu.Unlock()
	u.source = nil
	if cause := context.Cause(ctx); errors.Is(cause, errLeft) {
		return source, cause
	}
	return source, err
}

// follow asks a newcomer to follow a member, and waits until the newcomer has caught up. The
// newcomer goes on to follow that member until the next group begins.
func (a *allReduce) follow(ctx context.Context, m *session.Member, source string, c restoreSource) error {
	conn, err := a.credentials.Dial(ctx, m.Hello.Address, wire.Hello{Role: wire.RoleCoordinator, PID: os.Getpid()})
	if err != nil {
		return fmt.Errorf("%w: %w", errUnreached, err)
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
