package supervisor

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/stokehq/stoke/runtime/program"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// Times for processes that outlive an agent. The kernel ends the ranks with it.
const (
	leftoverGrace = 2 * time.Second  // from SIGTERM to SIGKILL
	leftoverTime  = 20 * time.Second // for all of them to end
	adoptedTime   = 5 * time.Second  // for adopted ones to end
)

// listeningServers returns the number of servers that need a port. Agents need none.
func listeningServers(s *spec.Spec) int {
	if s.HasProgram() {
		return 0
	}
	return s.ParameterServer.Replicas
}

// agentArguments returns the arguments of an agent.
func (c *processes) agentArguments(r *role) []string {
	f, name := c.Folder, run.RoleName(r.name, r.index)
	return []string{
		r.name, "--supervised", "--spec", f.Spec(), "--token-file", f.Token(), "--run", f.Name(),
		"--coordinator", c.ports.endpoints().Coordinator, "--api", c.ports.apiURL(),
		"--state", f.Agent(name), "--logs", f.Logs(), "--checkpoints", f.Checkpoints(), "--index", strconv.Itoa(r.index),
	}
}

// grace returns the time that a program has from SIGTERM to SIGKILL, as the run has
// it now.
func (c *processes) grace() time.Duration {
	if s, err := c.Folder.ReadSpec(); err == nil {
		return time.Duration(s.Program.StopGrace)
	}
	return time.Duration(c.spec.Program.StopGrace)
}

// isAgent reports whether a role is an agent of a program.
func (c *processes) isAgent(r *role) bool { return c.spec.HasProgram() && r.name != Coordinator }

// forgetAgents forgets earlier ends of agents: the program makes progress.
func (c *processes) forgetAgents() {
	for _, r := range c.roles {
		if c.isAgent(r) {
			r.ends = nil
		}
	}
}

// endProgram ends marked processes that an agent has left, before another agent takes
// its place.
func (c *processes) endProgram(r *role) {
	if c.isAgent(r) {
		c.endMarked(program.Mark{Run: c.Folder.Name(), Member: run.RoleName(r.name, r.index)})
	}
}

// endAdopted ends the processes that this one has adopted from an agent that was
// killed. The loop calls it, because it starts the roles.
func (c *processes) endAdopted() {
	ctx, cancel := context.WithTimeout(context.Background(), adoptedTime)
	defer cancel()
	pids, err := program.EndChildren(ctx, func(pid int) bool {
		return slices.ContainsFunc(c.roles, func(r *role) bool { return r.process != nil && r.process.Pid == pid })
	})
	if len(pids) > 0 || err != nil {
		c.Log.Warn("processes of the program were left", "pids", pids, "error", err)
	}
}

// endPrograms ends the processes of all agents that an earlier supervisor has left.
func (c *processes) endPrograms(name string) {
	if c.spec.HasProgram() {
		if err := program.AdoptOrphans(); err != nil {
			c.Log.Error("processes of a killed agent may be left", "error", err)
		}
		c.endMarked(program.Mark{Run: name})
	}
}

func (c *processes) endMarked(m program.Mark) {
	ctx, cancel := context.WithTimeout(context.Background(), leftoverTime)
	defer cancel()
	pids, err := program.EndMarked(ctx, m, leftoverGrace)
	if len(pids) > 0 || err != nil {
		c.Log.Warn("processes of the program were left", "of", m.Member, "pids", pids, "error", err)
	}
}
