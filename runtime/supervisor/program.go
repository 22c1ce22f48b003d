package supervisor

import (
	"context"
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

// endProgram ends the processes that an agent has left, before another agent takes
// its place.
func (c *processes) endProgram(r *role) {
	if c.spec.HasProgram() && r.name != Coordinator {
		c.endMarked(program.Mark{Run: c.Folder.Name(), Member: run.RoleName(r.name, r.index)})
	}
}

// endPrograms ends the processes of all agents that an earlier supervisor has left.
func (c *processes) endPrograms(name string) {
	if c.spec.HasProgram() {
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
