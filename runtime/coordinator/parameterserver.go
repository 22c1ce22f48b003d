package coordinator

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/wire"
	"github.com/stokehq/stoke/runtime/workload"
)

// parameterServers keeps the parameters in servers, each a span of the flat
// vector.
type parameterServers struct {
	*servers
	workload    *workload.Workload
	checkpoints *checkpoint.Place
	exact       bool // contributions are computed with just the version that they change
}

// newParameterServers returns the parameter servers of a run. hung is called
// with the index of a server that does not answer.
func newParameterServers(o Options, hung func(server int)) *parameterServers {
	s := &servers{
		addresses: o.Servers, credentials: o.Credentials, log: o.Log, hung: hung, answer: answerTime, pause: 50 * time.Millisecond,
		signal: make(chan struct{}, 1),
	}
	return &parameterServers{servers: s, workload: o.Workload, checkpoints: o.Checkpoints, exact: !o.Spec.Asynchronous}
}

// maxEarly is how many values a contribution has at most whose server is let
// wait for it: about as many as travel while the coordinator is asked.
const maxEarly = 4 << 20

// reportBeforePush is for one server, which commits by itself.
func (p *parameterServers) reportBeforePush() bool {
	return p.exact && len(p.addresses) == 1 && model.Length(p.workload.Vars) <= maxEarly
}

// commitBeforeReports is false: a server that waits for a contribution does nothing
// else for the coordinator.
func (p *parameterServers) commitBeforeReports() bool { return false }

// askHeld asks every server for the state of its parameters.
func (p *parameterServers) askHeld(ctx context.Context, term int64) (all []wire.Holding, err error) {
	p.term = term
	answers, err := p.ask(ctx, wire.TypeHold, wire.Hold{Term: term})
	if err != nil {
		return nil, err
	}
	for i, a := range answers {
		if a.Held == nil {
			return nil, fmt.Errorf("server %d did not answer what it holds", i)
		}
		all = append(all, *a.Held)
	}
	return all, nil
}

// attachable decides whether the servers hold one version of the parameters.
func (p *parameterServers) attachable(held []wire.Holding, terms []int64, end int64) (attachment, bool) {
	return findAttachment(held, model.Length(p.workload.Vars), terms, end)
}

// attach begins a term with the parameters that the servers hold.
func (p *parameterServers) attach(ctx context.Context, at point, from attachment, _ restoreSource) error {
	p.term = at.term
	_, err := p.askEach(ctx, wire.TypeAttach, func(i int) any {
		return wire.Attach{Term: at.term, Held: from.terms[i], Version: at.version, Redo: from.redo}
	})
	return err
}

// Workers hold no parameters where servers do.
func (p *parameterServers) enter(*session.Member)               {}
func (p *parameterServers) leave(*session.Member) bool          { return false }
func (p *parameterServers) serves(*session.Member) bool         { return true }
func (p *parameterServers) awaitMore(context.Context, int) bool { return false }
func (p *parameterServers) names() string                       { return "the parameter servers" }

func (p *parameterServers) newcomers(context.Context, restoreSource, []*session.Member, bool) []string {
	return nil
}

// restore sends every server its span.
func (p *parameterServers) restore(ctx context.Context, c restoreSource) error {
	p.term = c.term
	vars := p.workload.Vars
	n := model.Length(vars)
	if err := c.begin(); err != nil {
		return err
	}
	k := len(p.addresses)
	for i := range k {
		from, to := span(n, i, k)
		r := wire.Restore{
			Term: c.term, Version: c.version, From: from, To: to, Vars: model.Slice(vars, from, to),
			Recipe: c.recipe, Checkpoint: c.checkpoint, Parts: c.parts, Exact: p.exact,
		}
		if err := p.restoreOne(ctx, i, r, c); err != nil {
			return err
		}
	}
	return nil
}

// begin computes the initial values of a cut without parts.
func (c *restoreSource) begin() (err error) {
	if c.parts == nil {
		c.values, err = c.initial()
	}
	return err
}

// restoreOne restores one server.
func (p *parameterServers) restoreOne(ctx context.Context, i int, r wire.Restore, c restoreSource) error {
	var values []float32
	if c.values != nil {
		values = c.values[r.From:r.To]
	}
	a, err := p.askRestore(ctx, i, r, values)
	if err == nil && a.Send {
		a, err = p.send(ctx, i, r)
	}
	switch {
	case err != nil && a.Damaged:
		return damagedError{err}
	case err != nil && c.parts != nil && a.Error != "":
		return session.PlaceFailed(err)
	}
	return err
}

// span is the part of n values that server i of k holds.
func span(n, i, k int) (from, to int) { return n * i / k, n * (i + 1) / k }

// flush sends the leases whose contributions are void.
func (p *parameterServers) flush(ctx context.Context, at point, void []int64) error {
	_, err := p.ask(ctx, wire.TypeDiscard, wire.Discard{Term: at.term, Version: at.version, IDs: void})
	return err
}

// commit makes every server sum up exactly these contributions, then, once all
// of them are known to be finite, every server applies them.
func (p *parameterServers) commit(ctx context.Context, all []proposal) ([]outcome, error) {
	c, finite, scale, norm := all[0], all[0].finite, 1.0, 0.0
	if finite {
		r := wire.Prepare{Term: c.term, Version: c.version, IDs: c.ids, Discard: c.void, Weight: c.weight}
		if len(p.addresses) == 1 {
			r.Alone, r.Sessions = &c.recipe, c.sessions // it need not ask another one
		}
		answers, err := p.ask(ctx, wire.TypePrepare, r)
		if err != nil {
			return nil, err
		}
		for _, a := range answers {
			if a.Missing != 0 {
				return nil, notCome{a.Missing}
			}
			norm += a.SquaredNorm
			finite = finite && a.Finite
		}
		scale = c.recipe.ClipScale(norm)
		if norm = math.Sqrt(norm); r.Alone != nil {
			return []outcome{{norm, finite}}, nil
		}
	}
	_, err := p.ask(ctx, wire.TypeApply, wire.Apply{
		Term: c.term, Version: c.version, Skip: !finite, Scale: scale, Recipe: c.recipe, Taken: c.taken,
	})
	return []outcome{{norm, finite}}, err
}

func (p *parameterServers) hold(ctx context.Context, at point) error {
	_, err := p.ask(ctx, wire.TypeCut, wire.CutRequest{Term: at.term, Version: at.version})
	return err
}

// errRefused is the refusal of a request by a holder of parameters.
var errRefused = errors.New("refused")

// refusal is the error that a server's refusal means to the coordinator of a
// term; nil: it was none.
func refusal(a wire.Answer, term int64) error {
	switch {
	case a.Refused == "":
		return nil
	case a.Term > term:
		return session.Superseded(term, a.Term)
	}
	return fmt.Errorf("%w: %w: %s", errLost, errRefused, a.Refused)
}
