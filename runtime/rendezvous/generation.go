package rendezvous

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stokehq/stoke/runtime/program"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

var noTime time.Time

// generation is one start of the program on all of its agents.
type generation struct {
	number  int
	members int // that it has
	began   time.Time
	parts   map[session.Seat]*part // as far as they are known
	missing bool                   // members that no coordinator knows are lost
	ending  string                 // why it is to end; "": it is not
	finish  bool                   // it ends because the program has succeeded
	broken  bool                   // it ends because a part has failed, or is lost
	moved   bool                   // the program made progress in it
	saved   saves
}

// part is an agent's part in a generation.
type part struct {
	begin   wire.Begin
	process string          // that runs it; "": it is not known yet
	told    *session.Member // the connection that had wire.Begin
	result  *wire.Result
	lost    time.Time       // when its connection was lost; zero: it was not
	gone    bool            // its ranks are lost
	halted  *session.Member // the connection that had wire.Halt
	done    []int           // ranks that have ended with 0
}

func newGeneration(number, members int, now time.Time) *generation {
	return &generation{number: number, members: members, began: now, parts: make(map[session.Seat]*part), saved: newSaves()}
}

// part returns the part of an agent that reports one.
func (g *generation) part(at session.Seat) *part {
	p := g.parts[at]
	if p == nil {
		p = new(part)
		g.parts[at] = p
	}
	return p
}

// join notes an agent's connection: a process that is not the one of its part has
// lost that.
func (g *generation) join(at session.Seat, process string) {
	if p := g.parts[at]; p != nil {
		p.lost = noTime
		p.gone = p.gone || p.result == nil && p.process != "" && p.process != process
	}
}

// leave notes that an agent has lost its connection.
func (g *generation) leave(at session.Seat, now time.Time) {
	if p := g.parts[at]; p != nil && p.result == nil {
		p.lost = now
	}
}

// isOver reports whether a part's ranks have ended, or are lost.
func (p *part) isOver() bool { return p.gone || p.result != nil }

// hasFailed reports whether a part has ended before it had succeeded.
func (p *part) hasFailed() bool {
	return p.gone || p.result != nil && program.Cause(p.result.Cause) != program.Succeeded
}

// review halts the generation where it must end, and reports whether all of its
// parts are over.
func (r *rendezvous) review() (over bool) {
	g := r.current
	r.findLost(g)
	r.noteSaves(g.saved.take(r.now()))
	r.clock.Set(g.ending == "")
	if g.ending == "" {
		switch bad := g.firstFailed(); {
		case bad != "":
			g.broken = true
			r.halt(bad)
		case g.succeeded():
			g.finish = true
			r.halt("the program has succeeded")
		default:
			r.session.Explain(g.partial())
			r.lookForChange(g)
		}
	}
	for _, p := range g.parts {
		if !p.isOver() {
			return false
		}
	}
	return len(g.parts) >= g.members
}

// partial returns which ranks still run where others have ended with 0; "": all run.
func (g *generation) partial() string {
	var ended, run []string
	for _, at := range g.places() {
		p := g.parts[at]
		switch {
		case p.result != nil:
			ended = append(ended, "all ranks of "+at.String())
			continue
		case len(p.done) > 0:
			ended = append(ended, fmt.Sprintf("%s of %s", naming(p.done), at))
		}
		if at.Role == wire.RoleWorker {
			run = append(run, at.String())
		}
	}
	if len(ended) == 0 || len(run) == 0 {
		return ""
	}
	return fmt.Sprintf("%s have ended with 0, and ranks of %s still run", first(ended), first(run))
}

// naming returns the names of ranks.
func naming(ranks []int) string {
	names := make([]string, len(ranks))
	for i, rank := range ranks {
		names[i] = fmt.Sprintf("rank %d", rank)
	}
	return first(names)
}

// first returns the first names, and how many others there are.
func first(names []string) string {
	if more := len(names) - maxBlamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxBlamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// findLost finds parts whose agent has no connection for too long. Where the history
// was lost, members that no agent reports are lost, too.
func (r *rendezvous) findLost(g *generation) {
	now := r.now()
	for at, p := range g.parts {
		if !p.isOver() && !p.lost.IsZero() && now.Sub(p.lost) > r.LostTime {
			p.gone = true
			r.Log.Warn("an agent is lost with its ranks", "member", at)
		}
	}
	if len(g.parts) < g.members && now.Sub(g.began) > r.LostTime {
		g.members, g.missing = len(g.parts), true
	}
}

// firstFailed returns why the generation must end; "": it must not.
func (g *generation) firstFailed() string {
	if g.missing {
		return textMissing
	}
	for _, at := range g.places() {
		if p := g.parts[at]; p.hasFailed() {
			return g.explain(at)
		}
	}
	return ""
}

// textMissing is about members that no agent reports.
const textMissing = "members that took part do not come back"

// places returns the places of all parts, workers by index first.
func (g *generation) places() []session.Seat {
	return slices.SortedFunc(maps.Keys(g.parts), func(a, b session.Seat) int {
		return cmp.Or(strings.Compare(b.Role, a.Role), cmp.Compare(a.Index, b.Index))
	})
}

// explain returns the end of a part for people.
func (g *generation) explain(at session.Seat) string {
	p := g.parts[at]
	if p.result == nil {
		return fmt.Sprintf("%s is lost", at)
	}
	return fmt.Sprintf("%s on %s", p.result.Text, at)
}

// succeeded reports whether the program has done its work: the chief has ended
// with 0 or, without one, all workers.
func (g *generation) succeeded() bool {
	if len(g.parts) < g.members {
		return false
	}
	workers, ended := 0, 0
	for _, p := range g.parts {
		switch p.begin.Role {
		case program.Chief:
			return p.result != nil && !p.hasFailed()
		case program.Worker, "": // or not known yet
			workers++
			if p.result != nil {
				ended++
			}
		}
	}
	return workers > 0 && ended == workers
}

// halt has all agents end their parts of the generation.
func (r *rendezvous) halt(reason string) {
	g := r.current
	if g.ending == "" {
		g.ending = reason
		r.clock.Pause()
		r.Log.Info("generation is to end", "generation", g.number, "reason", strings.SplitN(reason, "\n", 2)[0])
	}
	for at := range g.parts {
		if a := r.agents[at]; a != nil {
			r.haltPart(a, g.parts[at])
		}
	}
}

// haltPart has an agent end its part, once on each connection.
func (r *rendezvous) haltPart(a *agent, p *part) {
	if !p.isOver() && p.halted != a.Member {
		p.halted = a.Member
		r.sendHalt(a, r.current.number, r.current.ending)
	}
}

// conclude decides what follows a generation whose parts are all over.
func (r *rendezvous) conclude() error {
	g := r.current
	r.noteSaves(g.saved.takeAll())
	r.current, r.ready, r.change = nil, noTime, change{}
	r.clock.Pause()
	v := g.judge()
	restarts := r.past.restarts
	if v.cause == program.Failed && r.session.Reason() == nil {
		restarts++
	}
	most, run, text := r.Spec.Program.MaxRestarts, "", v.sentence()
	switch {
	case v.cause == program.Succeeded:
		run = keySucceeded
	case restarts > most && restarts > r.past.restarts:
		run, text = keyFailed, text+afterRestarts(most)
	}
	r.note(event{g.number, g.places(), restarts, true, run, text})
	if r.session.Reason() != nil && v.cause != program.Succeeded {
		return nil // the run ends
	}
	r.session.DismissSurplus()
	switch v.cause {
	case program.Succeeded:
		r.done = true
	case program.Failed:
		r.losses = 0
		if run == keyFailed {
			r.session.KeepLog(strings.Join(v.last, "\n"))
			return session.Fail(spec.ReasonProgram, "%s%s", v.text, afterRestarts(most))
		}
	case program.Killed:
		if r.losses++; r.losses >= maxLosses {
			r.session.KeepLog(strings.Join(v.last, "\n"))
			text := fmt.Sprintf("%d generations in a row were lost without progress; the last one: %s", r.losses, v.text)
			return session.Stopped{Cause: spec.CauseRestarts, Text: text}
		}
		r.next = r.now().Add(min(firstPause<<(r.losses-1), lastPause))
	}
	return nil
}

// afterRestarts ends the message of a run that has used up its restarts.
func afterRestarts(most int) string {
	switch most {
	case 0:
		return ""
	case 1:
		return ", after one restart"
	}
	return fmt.Sprintf(", after %d restarts", most)
}

// verdict is how a generation ended.
type verdict struct {
	cause program.Cause
	text  string   // for people
	last  []string // lines that the rank printed last
}

// sentence returns the verdict after the generation's name.
func (v verdict) sentence() string {
	if v.cause == program.Failed || v.cause == program.Killed {
		return "has ended: " + v.text
	}
	return v.text
}

// judge returns how the generation ended. A rank that was killed from outside, a lost
// agent, or a halted rank makes the ranks of others fail: then it is not the program's
// error.
func (g *generation) judge() verdict {
	if g.finish {
		return verdict{cause: program.Succeeded, text: "has succeeded"}
	}
	var lost, failed []session.Seat
	for _, at := range g.places() {
		switch p := g.parts[at]; {
		case p.result == nil || program.Cause(p.result.Cause) == program.Killed:
			lost = append(lost, at)
		case program.Cause(p.result.Cause) == program.Failed:
			failed = append(failed, at)
		}
	}
	switch {
	case g.missing:
		return verdict{cause: program.Killed, text: textMissing}
	case len(lost) > 0:
		return g.blame(program.Killed, lost)
	case len(failed) > 0 && (g.broken || g.ending == ""):
		return g.blame(program.Failed, failed)
	}
	return verdict{cause: program.Stopped, text: "has ended: " + cmp.Or(g.ending, "all of its ranks were stopped")}
}

// maxBlamed is how many members a message names.
const maxBlamed = 3

// blame returns the verdict about members, in the order of their ends. The clocks of
// machines differ, and ranks fail soon after each other, so that it names several.
func (g *generation) blame(cause program.Cause, members []session.Seat) verdict {
	ended := func(at session.Seat) (when time.Time) {
		if p := g.parts[at]; p.result != nil {
			when = p.result.At
		}
		return when
	}
	slices.SortStableFunc(members, func(a, b session.Seat) int { return ended(a).Compare(ended(b)) })
	v := verdict{cause: cause}
	var texts []string
	for _, at := range members[:min(len(members), maxBlamed)] {
		texts = append(texts, g.explain(at))
		if p := g.parts[at]; p.result != nil && len(p.result.Last) > 0 {
			v.last = append(append(v.last, fmt.Sprintf("%s:", at)), p.result.Last...)
		}
	}
	if more := len(members) - maxBlamed; more > 0 {
		texts = append(texts, fmt.Sprintf("%d other members failed, too", more))
	}
	v.text = strings.Join(texts, "; ")
	return v
}
