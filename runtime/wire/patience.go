package wire

import (
	"net"
	"time"
)

// A process that other processes leave no core is silent, but not gone. The processes of a
// machine are late together: one that is late itself, because its timers fire late, waits
// longer for the others. It adds perLateness times its lateness to its patience, and moreLooks
// times its patience at most. Where it notices the end of that wait late, it looks again, for
// as long as that lateness adds, and moreLooks times at most. The bound of all looks together
// is seven times the patience (1 + moreLooks + moreLooks²), and the lateness of their ends.
const (
	perLateness = 4
	moreLooks   = 2
)

// onTime is by how much a timer is late at most on a machine with free cores.
const onTime = 50 * time.Millisecond

// noteLateness notes by how much a timer of this process was late. What was noted earlier
// fades within some seconds.
func (c *Conn) noteLateness(d time.Duration) {
	before := c.late.Load()
	c.late.Store(max(int64(d), before-before/4))
}

// extend returns how much longer than its patience a process waits that is late itself.
func extend(patience, late time.Duration) time.Duration {
	if late < onTime {
		return 0
	}
	return min(perLateness*late, moreLooks*patience)
}

// perCore is how many members each core of a machine computes at a time, as far as their
// patience with each other goes.
const perCore = 2

// Patience returns the longest silence of a member before the receiver of the group goes on
// without that member. Members that share the receiver's machine, with its number of cores, have
// more than MemberPatience where there are many: a member that is ready to run waits for the others.
func (g *Group) Patience(member, cores int) time.Duration {
	own, beside := hostOf(g.Members[g.Mine]), 0
	if hostOf(g.Members[member]) != own {
		return MemberPatience
	}
	for _, address := range g.Members {
		if hostOf(address) == own {
			beside++
		}
	}
	return MemberPatience * time.Duration(max(1, beside/(perCore*max(1, cores))))
}

// hostOf returns the host of an address host:port, and any other text as it is.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
