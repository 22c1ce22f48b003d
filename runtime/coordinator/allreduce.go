package coordinator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/wire"
)

// allReduce keeps the parameters in the workers: each member of the group holds all
// of them. The members give each other the sums of an update, and each makes it by
// itself. The members that a loss leaves have everything: the run continues with the
// newest update of any of them.
type allReduce struct {
	parameterServers
	wanted int // members that the first group waits for, for a moment

	mu      sync.Mutex
	present map[int]*session.Member // by index
	changed chan struct{}           // is closed when present changes

	formed   []*session.Member // the group, in the order of its shares; formMu guards it
	formMu   sync.Mutex
	catching catchUps  // the newcomers
	lacks    time.Time // the present workers lack the newest parameters since then; zero: they do not
	keeper   string    // address of the member that keeps a checkpoint's parameters
}

// slowest is how many values a second members send each other at least.
const slowest = 250_000

// formTime is how long the first group waits for the rest of the workers.
const formTime = time.Second

func newAllReduce(o Options) *allReduce {
	a := &allReduce{wanted: o.Spec.Worker.Replicas, present: make(map[int]*session.Member), changed: make(chan struct{})}
	a.catching.all = make(map[*session.Member]*catchUp)
	a.parameterServers = *newParameterServers(o, func(position int) {
		if group := a.group(); position < len(group) {
			o.Log.Warn("member is silent", "worker", group[position].Index)
			group[position].Disconnect() // it leaves the session, which decides what becomes of it
		}
	})
	a.patience, a.servers.missing = wire.MemberPatience, a.missing
	if o.Workload != nil { // a vector may travel for a while
		a.answer += time.Duration(model.Length(o.Workload.Vars)/slowest) * time.Second
	}
	return a
}

// group returns the members of the present group.
func (a *allReduce) group() []*session.Member {
	a.formMu.Lock()
	defer a.formMu.Unlock()
	return a.formed
}

// enter takes note of a worker that has joined.
func (a *allReduce) enter(m *session.Member) {
	if m.Hello.Address == "" {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.present[m.Index] = m
	a.ring()
}

// ring wakes the callers that wait for another membership. Called with mu held.
func (a *allReduce) ring() {
	close(a.changed)
	a.changed = make(chan struct{})
}

// leave takes note of a worker that has left, and reports whether the group needs
// it.
func (a *allReduce) leave(m *session.Member) bool {
	a.mu.Lock()
	if a.present[m.Index] == m {
		delete(a.present, m.Index)
		a.ring()
	}
	a.mu.Unlock()
	a.catching.forget(m)
	return a.serves(m)
}

// close ends the connections to the members, and to the newcomers.
func (a *allReduce) close() {
	a.catching.close()
	a.parameterServers.close()
}

// serves reports whether a worker is in the group.
func (a *allReduce) serves(m *session.Member) bool { return slices.Contains(a.group(), m) }

// members returns the workers that are present, by index, and a channel that is
// closed when others are.
func (a *allReduce) members() ([]*session.Member, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []*session.Member
	for _, index := range slices.Sorted(maps.Keys(a.present)) {
		all = append(all, a.present[index])
	}
	return all, a.changed
}

// missing returns an error where a member of the group has left.
func (a *allReduce) missing() error {
	present, _ := a.members()
	for _, m := range a.group() {
		if !slices.Contains(present, m) {
			return fmt.Errorf("%s has left the group", m.Seat())
		}
	}
	return nil
}

// connect waits for a worker, and connects to all present ones.
func (a *allReduce) connect(ctx context.Context) error {
	first := len(a.group()) == 0
	began := time.Now()
	for {
		present, changed := a.members()
		present = a.eligible(present)
		late := time.Duration(math.MaxInt64)
		if len(present) > 0 {
			late = 0
			if first && len(present) < a.wanted {
				late = formTime - time.Since(began)
			}
		}
		if late > 0 {
			timer := time.NewTimer(late)
			select {
			case <-changed:
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return context.Cause(ctx)
			}
			timer.Stop()
			continue
		}
		if len(a.links) > 0 && a.parameterServers.lossReason() == "" && slices.Equal(present, a.group()) {
			return nil
		}
		err := a.form(ctx, present, changed)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			return nil
		}
	}
}

// form connects to the members of a group, until the workers change.
func (a *allReduce) form(ctx context.Context, members []*session.Member, changed <-chan struct{}) error {
	a.servers.close()
	a.addresses = nil
	for _, m := range members {
		a.addresses = append(a.addresses, m.Hello.Address)
	}
	a.formMu.Lock()
	a.formed = members
	a.formMu.Unlock()
	a.catching.regroup(members)
	dialling, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-changed:
			cancel(errors.New("the workers have changed"))
		case <-done:
		}
	}()
	return a.servers.connect(dialling)
}

// attachable decides whether a member holds parameters that the run can go on from:
// the newest ones. The ledger, which ends at step end, must have all their updates,
// except those that the member remembers.
func (a *allReduce) attachable(held []wire.Holding, terms []int64, end int64) (at attachment, ok bool) {
	n := model.Length(a.workload.Vars)
	var newest *wire.Holding
	for i, h := range held {
		if !slices.Contains(terms, h.Term) || h.From != 0 || h.To != n {
			continue
		}
		if newest == nil || newer(&h, newest) {
			newest, at.source = &held[i], i
		}
	}
	if newest == nil {
		return at, false
	}
	at.version = newest.Version
	for _, h := range held {
		if !attaches(&h, newest, n) {
			h.Term = 0 // it fetches them
		}
		at.terms = append(at.terms, h.Term)
	}
	at.lacking, ok = findLacking(newest, end)
	return at, ok
}

// newer compares the parameters of two members: first their versions, then the terms
// that made them, then how many updates the members remember.
func newer(h, than *wire.Holding) bool {
	switch {
	case h.Version != than.Version:
		return h.Version > than.Version
	case h.Term != than.Term:
		return h.Term > than.Term
	}
	if (than.Decision == nil) != (h.Decision == nil) {
		return h.Decision != nil
	}
	return len(h.Before) > len(than.Before)
}

// attach begins a term with the parameters that a member holds. Members that hold
// others fetch them.
func (a *allReduce) attach(ctx context.Context, at point, from attachment, c restoreSource) error {
	a.term, a.lacks = at.term, time.Time{}
	c.point = at
	return a.begin(ctx, from.source, c, func(i int) (wire.Type, any) {
		if from.terms[i] == 0 {
			return wire.TypeRestore, nil
		}
		return wire.TypeAttach, wire.Attach{Term: at.term, Held: from.terms[i], Version: at.version, Group: a.groupFor(i)}
	})
}

// lackTime is the time for workers with the newest parameters to join, before the run
// restores a checkpoint. Workers without a coordinator connect every two seconds.
const lackTime = 10 * time.Second

// awaitMore waits for other workers, because the present ones lack the newest
// parameters. It reports whether to form the group again: not with all workers of the
// run present, and not after lackTime.
func (a *allReduce) awaitMore(ctx context.Context, workers int) bool {
	if a.lacks.IsZero() {
		a.lacks = time.Now()
	}
	present, changed := a.members()
	left := time.Until(a.lacks.Add(lackTime))
	if len(present) >= workers || left <= 0 {
		a.lacks = time.Time{}
		return false
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
	}
	return true
}

func (a *allReduce) groupFor(i int) *wire.Group {
	return wire.NewGroup(a.addresses, i, model.Length(a.workload.Vars))
}

// restore gives one member the parameters of the cut. The others fetch them there.
func (a *allReduce) restore(ctx context.Context, c restoreSource) error {
	a.term = c.term
	if err := c.begin(); err != nil {
		return err
	}
	if err := a.restoreOne(ctx, 0, a.restoreOf(0, c), c); err != nil {
		return err
	}
	return a.begin(ctx, 0, c, func(i int) (wire.Type, any) {
		if i == 0 {
			return 0, nil // it has begun
		}
		return wire.TypeRestore, nil
	})
}

func (a *allReduce) restoreOf(i int, c restoreSource) wire.Restore {
	vars := a.workload.Vars
	return wire.Restore{
		Term: c.term, Version: c.version, From: 0, To: model.Length(vars), Vars: vars, Recipe: c.recipe,
		Checkpoint: c.checkpoint, Parts: c.parts, Exact: true, Group: a.groupFor(i),
	}
}

// begin sends every member its request, and waits for all answers. A restore
// without a head fetches the parameters from the source.
func (a *allReduce) begin(ctx context.Context, source int, c restoreSource, request func(i int) (wire.Type, any)) (err error) {
	defer func() {
		if err != nil {
			a.drop(err)
		}
	}()
	asked := make(map[int]wire.Type)
	for i, l := range a.links {
		t, head := request(i)
		if t == 0 {
			continue
		}
		if head == nil {
			r := a.restoreOf(i, c)
			r.Checkpoint, r.Parts, r.Source = "", nil, a.addresses[source]
			head = r
		}
		if err := l.conn.Send(t, head, nil); err != nil {
			return fmt.Errorf("%w: member %d: %w", errLost, i, err)
		}
		asked[i] = t
	}
	for i, t := range asked {
		if _, err := a.await(ctx, i, t, restoreTime); err != nil {
			if t == wire.TypeRestore && errors.Is(err, errRefused) { // it cannot reach the source
				a.group()[i].Disconnect()
			}
			return err
		}
	}
	return nil
}

// commit lets every member make the updates.
func (a *allReduce) commit(ctx context.Context, all []proposal) ([]outcome, error) {
	if !all[0].finite {
		return a.parameterServers.commit(ctx, all)
	}
	limit := a.answer
	if all[0].named {
		limit = math.MaxInt64 // a lease that makes no progress is taken back (see isLate), and a silent member leaves
	}
	requests := make([]wire.Prepare, len(all))
	for i, p := range all {
		requests[i] = wire.Prepare{Term: p.term, Version: p.version, IDs: p.ids, Discard: p.void, Weight: p.weight, Alone: &all[i].recipe}
	}
	requests[0].Then = requests[1:]
	answers, err := a.askWithin(ctx, wire.TypePrepare, limit, func(int) any { return &requests[0] })
	if err != nil {
		return nil, err
	}
	var made []outcome
	if before := answers[0].Series; before != nil {
		for _, squares := range before.SquaredNorms {
			made = append(made, outcome{math.Sqrt(squares), true})
		}
	}
	if len(made) >= len(all) {
		return nil, fmt.Errorf("a member answers about %d updates, not %d", len(made)+1, len(all))
	}
	return append(made, outcome{math.Sqrt(answers[0].SquaredNorm), answers[0].Finite}), nil
}

// reportBeforePush is for vectors of any length: a contribution is lost with its worker only,
// and then another group is formed anyway.
func (a *allReduce) reportBeforePush() bool { return true }

// commitBeforeReports is true, as a member that is lost ends the call.
func (a *allReduce) commitBeforeReports() bool { return true }

// hold lets one member keep its parameters.
func (a *allReduce) hold(ctx context.Context, at point) error {
	a.formMu.Lock()
	a.keeper = a.addresses[0]
	a.formMu.Unlock()
	if err := a.links[0].conn.Send(wire.TypeCut, wire.CutRequest{Term: at.term, Version: at.version}, nil); err != nil {
		return fmt.Errorf("%w: member 0: %w", errLost, err)
	}
	_, err := a.await(ctx, 0, wire.TypeCut, answerTime)
	return err
}

// write lets the member that keeps the parameters save them.
func (a *allReduce) write(ctx context.Context, term int64, name string) ([]checkpoint.Part, error) {
	a.formMu.Lock()
	keeper := a.keeper
	a.formMu.Unlock()
	part, err := a.writeOne(ctx, keeper, wire.Write{Term: term, Checkpoint: name, Part: fmt.Sprintf("member-term-%d.f32", term)})
	if err != nil {
		return nil, fmt.Errorf("member %s: %w", keeper, err)
	}
	return []checkpoint.Part{part}, nil
}

// names returns the members of the group for people.
func (a *allReduce) names() string {
	var all []string
	for _, m := range a.group() {
		all = append(all, m.Seat().String())
	}
	return strings.Join(all, ", ")
}
