package coordinator

import (
	"context"
	"fmt"
	"math"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// parameterServers keeps the parameters in servers, each a span of the flat
// vector. It is the part of a strategy that has nothing to do with when updates
// are made.
type parameterServers struct {
	*servers
	exactly bool    // contributions are computed with just the version that they change
	void    []int64 // leases taken back, for the servers to forget
}

func (p *parameterServers) exact() bool { return p.exactly }

func (p *parameterServers) discard(leases ...int64) { p.void = append(p.void, leases...) }

// askHeld asks every server for the state of its parameters.
func (p *parameterServers) askHeld(term int64) (all []wire.Holding, err error) {
	p.term = term
	answers, err := p.ask(wire.TypeHold, wire.Hold{Term: term})
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

// attach begins a term with what the servers hold.
func (p *parameterServers) attach(at point, held int64, redo *wire.Apply) error {
	p.void, p.term = nil, at.term
	_, err := p.ask(wire.TypeAttach, wire.Attach{Term: at.term, Held: held, Version: at.version, Redo: redo})
	return err
}

// restore sends every server its span.
func (p *parameterServers) restore(ctx context.Context, c cut) error {
	p.void, p.term = nil, c.term
	vars := p.options.Workload.Vars
	n := engine.Length(vars)
	var initial []float32
	if c.parts == nil {
		var err error
		if initial, err = c.initial(); err != nil {
			return err
		}
	}
	k := len(p.options.Servers)
	for i := range k {
		from, to := span(n, i, k)
		r := wire.Restore{
			Term: c.term, Version: c.version, From: from, To: to, Vars: engine.Cut(vars, from, to),
			Recipe: c.recipe, Checkpoint: c.checkpoint, Parts: c.parts, Exact: p.exactly,
		}
		var values []float32
		if initial != nil {
			values = initial[from:to]
		}
		a, err := p.askRestore(ctx, i, r, values)
		if err == nil && a.Send {
			a, err = p.send(ctx, i, r)
		}
		switch {
		case err != nil && a.Damaged:
			return damaged{err}
		case err != nil && c.parts != nil && a.Error != "":
			return placeError{err}
		case err != nil:
			return err
		}
	}
	return nil
}

// span is the part of n values that server i of k holds.
func span(n, i, k int) (from, to int) { return n * i / k, n * (i + 1) / k }

// flush sends what there is to forget.
func (p *parameterServers) flush(at point) error {
	if len(p.void) == 0 {
		return nil
	}
	if _, err := p.ask(wire.TypeDiscard, wire.Discard{Term: at.term, Version: at.version, IDs: p.void}); err != nil {
		return err
	}
	p.void = p.void[:0]
	return nil
}

// commit makes every server sum up exactly these contributions, then, once all
// of them are known to be finite, every server applies them.
func (p *parameterServers) commit(at point, u *update, recipe engine.Recipe) (norm float64, applied bool, err error) {
	var ids []int64
	var sessions []string
	var taken []spec.Contribution
	var weight float64
	finite := true
	for _, t := range u.units {
		ids, sessions = append(ids, t.id), append(sessions, t.session)
		taken = append(taken, t.Contribution)
		weight += t.report.Weight
		finite = finite && t.pushes()
	}
	if finite {
		r := wire.Prepare{Term: at.term, Version: at.version, IDs: ids, Discard: p.void, Weight: weight}
		if len(p.options.Servers) == 1 {
			r.Alone, r.Sessions = &recipe, sessions // nobody else is to be asked
		}
		answers, err := p.ask(wire.TypePrepare, r)
		if err != nil {
			return 0, false, err
		}
		p.void = p.void[:0]
		for _, a := range answers {
			if a.Missing != 0 {
				return 0, false, notCome{a.Missing}
			}
			norm += a.SquaredNorm
			finite = finite && a.Finite
		}
		if norm = math.Sqrt(norm); r.Alone != nil {
			return norm, finite, nil
		}
	} else {
		p.discard(ids...) // some of them were pushed
	}
	_, err = p.ask(wire.TypeApply, wire.Apply{
		Term: at.term, Version: at.version, Skip: !finite, Scale: 1, Recipe: recipe, Taken: taken,
	})
	return norm, finite, err
}

func (p *parameterServers) hold(at point) error {
	_, err := p.ask(wire.TypeCut, wire.Cut{Term: at.term, Version: at.version})
	return err
}

// refusal is the error that a server's refusal means to the coordinator of a
// term; nil: it was none.
func refusal(a wire.Answer, term int64) error {
	switch {
	case a.Refused == "":
		return nil
	case a.Term > term:
		return superseded(term, a.Term)
	}
	return fmt.Errorf("%w: %s", errLost, a.Refused)
}
