package rendezvous

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/stokehq/stoke/runtime/program"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// form begins a generation where enough agents are ready.
func (r *rendezvous) form() {
	workers := r.available(wire.RoleWorker, r.Spec.Worker.Replicas)
	servers := r.available(wire.RoleServer, r.Spec.ParameterServer.Replicas)
	now := r.now()
	if len(workers) < r.Spec.Worker.MinReplicas || len(servers) < r.Spec.ParameterServer.Replicas {
		r.ready = noTime
		r.session.Explain(r.waiting(len(workers), len(servers)))
		return
	}
	if r.ready.IsZero() {
		r.ready = now
	}
	if join := time.Duration(r.Spec.Program.JoinTimeout); len(workers) < r.Spec.Worker.Replicas && now.Sub(r.ready) < join {
		r.session.Explain(fmt.Sprintf("%s; it begins without the others in %v", r.waiting(len(workers), len(servers)),
			(join - now.Sub(r.ready)).Round(time.Second)))
		return
	}
	if now.Before(r.next) || !agreeOnCheckpoint(workers) && now.Sub(r.listed) < r.ListTime {
		return
	}
	r.session.Explain("")
	r.begin(workers, servers)
}

// waiting returns what the run waits for.
func (r *rendezvous) waiting(workers, servers int) string {
	text := fmt.Sprintf("waiting for workers: %d of %d are ready, at least %d are needed",
		workers, r.Spec.Worker.Replicas, r.Spec.Worker.MinReplicas)
	if n := r.Spec.ParameterServer.Replicas; servers < n {
		text = fmt.Sprintf("waiting for servers: %d of %d are ready", servers, n)
	}
	return text
}

// available returns the agents of a role that are ready, by index.
func (r *rendezvous) available(role string, wanted int) (all []*agent) {
	for i := range wanted {
		if a := r.agents[session.Seat{Role: role, Index: i}]; a != nil && a.ready != nil && !a.Leaving() {
			all = append(all, a)
		}
	}
	return all
}

// begin starts the next generation on these agents. Its number is in the history
// before an agent hears of it.
func (r *rendezvous) begin(workers, servers []*agent) {
	members := append(slices.Clone(workers), servers...)
	resume := commonCheckpoint(workers)
	number := r.past.number + 1
	noteUntold(r, resume, workers[0].ready.Checkpoints)
	if number > 1 {
		r.progress.goBack(resume)
		r.session.Note(spec.Event{Type: spec.EventRestore, Message: resume})
	}
	per := r.Spec.ProcessesPerWorker()
	g := newGeneration(number, len(members), r.now())
	for _, a := range members {
		g.parts[a.Seat()] = &part{process: a.Process(), told: a.Member}
	}
	r.note(event{number: number, members: g.places(), restarts: r.past.restarts,
		text: fmt.Sprintf("begins with %d ranks on %d members%s", per*len(members), len(members), origin(resume))})
	if r.session.Unwritten() {
		return // the run ends
	}
	r.current = g
	r.session.UseTerm()
	for i, b := range r.plan(workers, servers) {
		a := members[i]
		b.Term, b.Generation, b.Resume = r.session.Term(), number, resume
		b.Address, b.Port = members[0].ready.Address, members[0].ready.Port
		g.parts[a.Seat()].begin = b
		a.Send(wire.TypeBegin, b)
	}
	for _, a := range members {
		a.ready = nil
	}
}

// origin returns where a generation begins, for people.
func origin(checkpoint string) string {
	if checkpoint == "" {
		return ""
	}
	return fmt.Sprintf(", from the checkpoint %q", checkpoint)
}

// plan returns the roles and ranks of a generation: workers before servers. The first
// worker is the chief, and the last one the evaluator, where the program has them.
func (r *rendezvous) plan(workers, servers []*agent) []wire.Begin {
	per := r.Spec.ProcessesPerWorker()
	p := &r.Spec.Program
	all := make([]wire.Begin, len(workers)+len(servers))
	addresses := make(map[string][]string)
	for i, a := range append(slices.Clone(workers), servers...) {
		b := &all[i]
		switch {
		case i >= len(workers):
			b.Role = program.Server
		case i == 0 && p.Chief:
			b.Role = program.Chief
		case i == len(workers)-1 && p.Evaluator:
			b.Role = program.Evaluator
		default:
			b.Role = program.Worker
		}
		b.Group, b.Groups, b.Rank, b.World = i, len(all), i*per, per*len(all)
		b.Task, b.Restarts, b.Most = len(addresses[b.Role]), r.past.restarts, p.MaxRestarts
		b.Grace = time.Duration(p.StopGrace).Seconds()
		for _, port := range a.ready.Ports {
			addresses[b.Role] = append(addresses[b.Role], net.JoinHostPort(a.ready.Address, strconv.Itoa(port)))
		}
	}
	for i := range all {
		all[i].Members = addresses
	}
	return all
}

// agreeOnCheckpoint reports whether all workers see the same newest checkpoint: a
// checkpoint that was made at the end of a generation is not in the list of an agent
// whose ranks ended earlier.
func agreeOnCheckpoint(workers []*agent) bool {
	newest := func(a *agent) string {
		if n := len(a.ready.Checkpoints); n > 0 {
			return a.ready.Checkpoints[n-1]
		}
		return ""
	}
	return !slices.ContainsFunc(workers, func(a *agent) bool { return newest(a) != newest(workers[0]) })
}

// commonCheckpoint returns the newest checkpoint that all workers see; "": there is none.
func commonCheckpoint(workers []*agent) string {
	for _, name := range slices.Backward(workers[0].ready.Checkpoints) {
		misses := func(a *agent) bool { return !slices.Contains(a.ready.Checkpoints, name) }
		if !slices.ContainsFunc(workers, misses) {
			return name
		}
	}
	return ""
}
