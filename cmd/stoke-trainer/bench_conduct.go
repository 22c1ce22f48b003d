package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/wire"
)

// reduceConductor is rank 0 as the coordinator of the members.
type reduceConductor struct {
	*reduction
	all   []peer
	links []*wire.Conn // to the holders of all members
}

// conduct lets the members make updates of vectors of each length, as a coordinator does.
func (m *reduction) conduct(ctx context.Context, all []peer, write func(any) error) error {
	c := &reduceConductor{reduction: m, all: all}
	for i, p := range all {
		link, err := dialMember(ctx, m.known, p.hello.Address, wire.Hello{Role: wire.RoleCoordinator, PID: os.Getpid()})
		if err != nil {
			return fmt.Errorf("connect to member %d: %w", i, err)
		}
		defer link.Close()
		link.SetPatience(benchPatience)
		stop := context.AfterFunc(ctx, func() { link.Close() })
		defer stop()
		c.links = append(c.links, link)
	}
	for i, n := range m.floats {
		result, err := c.time(int64(i+1), n)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("vectors of %d values: %w", n, err)
		}
		if err := write(result); err != nil {
			return err
		}
	}
	return nil
}

// Updates of one length: some before the measurement, and the least and the most that
// are measured.
const (
	firstUpdates = 3
	leastUpdates = 5
	mostUpdates  = 20_000
	aheadUpdates = 2 // requests that wait at the members, as those of a coordinator do
)

// begin begins a term with vectors of n zeros.
func (c *reduceConductor) begin(term int64, n int, recipe optimizer.Recipe) error {
	var addresses []string
	for _, p := range c.all {
		addresses = append(addresses, p.hello.Address)
	}
	zeros := make([]float32, n)
	for i, link := range c.links {
		r := wire.Restore{
			Term: term, To: n, Vars: []model.Var{{Name: "values", Shape: []int{n}, Len: n}}, Recipe: recipe, Exact: true,
			Group: wire.NewGroup(addresses, i, n),
		}
		if err := link.Send(wire.TypeRestore, r, zeros); err != nil {
			return err
		}
	}
	if err := answered(c.links); err != nil {
		return err
	}
	for _, p := range c.all[1:] {
		if err := p.conn.Send(wire.TypeApplied, wire.Applied{Term: term}, nil); err != nil {
			return err
		}
	}
	c.begun <- term
	return nil
}

// time measures updates of vectors of n values, in a term of its own.
func (c *reduceConductor) time(term int64, n int) (reduced, error) {
	recipe := optimizer.Recipe{LearningRate: 1}
	if err := c.begin(term, n, recipe); err != nil {
		return reduced{}, err
	}
	result := reduced{Floats: n, Members: c.members}
	var took []float64 // the time from each update to the next
	ends := time.Now().Add(time.Duration(c.seconds * float64(time.Second)))
	more := func() bool { return len(took) < leastUpdates || len(took) < mostUpdates && time.Now().Before(ends) }
	last, asked := time.Now(), int64(0)
	for version := int64(0); version < asked || more(); version++ {
		for ; asked < version+aheadUpdates && more(); asked++ {
			if err := c.ask(term, asked, &recipe); err != nil {
				return result, err
			}
		}
		if err := answered(c.links); err != nil {
			return result, err
		}
		now := time.Now()
		if version >= firstUpdates {
			took = append(took, now.Sub(last).Seconds())
		}
		last = now
	}
	rows := averageRows(took)
	result.Updates, result.Seconds, result.Fastest = len(took), rows[len(rows)/2], rows[0]
	result.Vectors = float64(c.holder.Values()) / float64(n)
	return result, nil
}

// averageRows returns the mean times of all leastUpdates updates in a row, in rising order. The
// time of one update may be short only because the answer before it was read late.
func averageRows(took []float64) (means []float64) {
	for i := range len(took) - leastUpdates + 1 {
		sum := 0.0
		for _, t := range took[i : i+leastUpdates] {
			sum += t
		}
		means = append(means, sum/leastUpdates)
	}
	slices.Sort(means)
	return means
}

// ask sends a request for the update of a version to all members.
func (c *reduceConductor) ask(term, version int64, recipe *optimizer.Recipe) error {
	p := wire.Prepare{Term: term, Version: version, Weight: float64(c.members), Alone: recipe}
	for rank := range c.members {
		p.IDs = append(p.IDs, c.lease(version, rank))
	}
	for _, link := range c.links {
		if err := link.Send(wire.TypePrepare, p, nil); err != nil {
			return err
		}
	}
	return nil
}

// answered waits for one answer of each member.
func answered(links []*wire.Conn) error {
	for i, c := range links {
		msg, err := c.Receive(0)
		if err != nil {
			return fmt.Errorf("member %d: %w", i, err)
		}
		var a wire.Answer
		if err := msg.Decode(&a); err != nil {
			return fmt.Errorf("member %d: %w", i, err)
		}
		if msg.Type != wire.TypeAnswer || a.Error != "" || a.Refused != "" {
			return fmt.Errorf("member %d answered %s: %s%s", i, msg.Type, a.Error, a.Refused)
		}
	}
	return nil
}
