package wire

import (
	"net"
	"time"
)

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
