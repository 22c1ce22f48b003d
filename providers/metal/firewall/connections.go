package firewall

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/providers/metal/facts"
	"github.com/stokehq/stoke/providers/metal/host"
)

// Connections is who listens on a machine and who is connected to it.
type Connections struct {
	Listeners []Listener
	Peers     []Peer     // that connected to one of the listeners
	Own       netip.Addr // where our own connection comes from, as the machine sees it; invalid when that is not known
	OwnPort   uint16     // where it goes to
	// LetIn reports whether foreign rules, which stay, allow a connection; nil if
	// there are none. The zero address stands for any address.
	LetIn func(protocol Protocol, port uint16, from netip.Addr) bool
}

// Listener is a program that waits for others, on an address that others can
// reach.
type Listener struct {
	Protocol Protocol
	Port     uint16
	Program  string // "" when ss does not say
}

// Peer is another machine that has connected.
type Peer struct {
	Address  netip.Addr
	Port     uint16 // the listener's
	NodePort bool   // no process listens there: the connection is forwarded to a pod
}

// ss says who listens on TCP and UDP, with the programs, and which TCP
// connections stand; see ss(8). -H leaves the titles out. It does not see what
// goes on to pods, which the kernel's connection tracking does: of that, what
// has come to node ports of this machine.
const connectionsScript = `# list connections
export LC_ALL=C
l=$(ss -Htulpn) && p=$(ss -Htn state established) || exit 1
said() { printf '%s\n' "$2" | tr '\t' ' ' | sed -n "s/^./$1\t&/p"; }
said listener "$l"; said peer "$p"
{ ip -o addr show; cat /proc/net/nf_conntrack 2>/dev/null; } | awk '
$3 ~ /^inet/ { sub("/.*", "", $4); own[$4] = 1 }
$3 == "tcp" && $6 == "ESTABLISHED" {
  split($7, src, "="); split($8, dst, "="); split($10, port, "=")
  if (own[dst[2]] && port[2] >= 30000 && port[2] <= 32767 && !seen[src[2], port[2]]++ && n++ < 1000) print "tracked\t" src[2] "\t" port[2]
}'
echo end`

// ReadConnections looks at who would notice a firewall.
func ReadConnections(ctx context.Context, m host.Machine) (Connections, error) {
	r := newSockets()
	if err := host.Look(ctx, m, "listeners and connections", connectionsScript, r.lines()); err != nil {
		return Connections{}, err
	}
	c, own := r.finish(), ownAddress(ctx, m)
	c.Own, c.OwnPort = own.Addr(), own.Port()
	return c, nil
}

// sockets reads what connectionsScript prints.
type sockets struct {
	c       Connections
	listens map[uint16]bool     // TCP ports that others can reach
	own     map[netip.Addr]bool // addresses of this machine that peers have connected to
}

func newSockets() *sockets {
	return &sockets{listens: map[uint16]bool{}, own: map[netip.Addr]bool{}}
}

func (s *sockets) lines() host.Lines {
	return host.Lines{"listener": host.Fields(1, s.listener), "peer": host.Fields(1, s.peer), "tracked": host.Fields(2, s.tracked)}
}

func (s *sockets) listener(f []string) error {
	l, address, ok := facts.ReadListener(f[0])
	if !ok {
		return fmt.Errorf("%q is not a listener of tcp or udp", shorten(f[0]))
	}
	if protocol := (map[string]Protocol{"tcp": TCP, "udp": UDP}[l.Protocol]); !address.Unmap().IsLoopback() { // others can reach it
		s.c.Listeners = append(s.c.Listeners, Listener{protocol, uint16(l.Port), strings.ReplaceAll(l.Process, "\uFFFD", "?")})
		s.listens[uint16(l.Port)] = s.listens[uint16(l.Port)] || protocol == TCP
	}
	return nil
}

// peer reads a line such as "0 0 10.0.0.1:22 10.0.0.2:40000".
func (s *sockets) peer(f []string) error {
	fields := strings.Fields(f[0])
	if len(fields) < 4 {
		return fmt.Errorf("%q has %d fields where 4 are expected", shorten(f[0]), len(fields))
	}
	at, port, err := readEndpoint(fields[2])
	from, _, wrong := readEndpoint(fields[3])
	if s.own[at] = true; s.listens[port] {
		s.c.Peers = append(s.c.Peers, Peer{Address: from, Port: port})
	}
	return errors.Join(err, wrong)
}

func (s *sockets) tracked(f []string) error {
	address, errA := netip.ParseAddr(f[0])
	port, errP := strconv.ParseUint(f[1], 10, 16)
	if !s.listens[uint16(port)] {
		s.c.Peers = append(s.c.Peers, Peer{address.Unmap().WithZone(""), uint16(port), true})
	}
	return errors.Join(errA, errP)
}

func (s *sockets) finish() Connections {
	// Connections of the machine with itself use lo, whatever the addresses.
	s.c.Peers = slices.DeleteFunc(s.c.Peers, func(p Peer) bool { return p.Address.IsLoopback() || s.own[p.Address] })
	slices.SortStableFunc(s.c.Listeners, func(a, b Listener) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Program, b.Program))
	})
	slices.SortFunc(s.c.Peers, func(a, b Peer) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), a.Address.Compare(b.Address))
	})
	s.c.Listeners, s.c.Peers = slices.Compact(s.c.Listeners), slices.Compact(s.c.Peers)
	return s.c
}

// readEndpoint reads "10.0.0.1:22", "[::]:22", "*:22", "127.0.0.53%lo:53",
// "[fe80::1]%eth0:546". The address of "*" is ::.
func readEndpoint(s string) (netip.Addr, uint16, error) {
	address, port, ok := facts.Endpoint(s)
	if !ok {
		return address, 0, fmt.Errorf("%q is not an address with a port", s)
	}
	return address.Unmap(), uint16(port), nil
}

// CutConnection is something that works now and would not with new rules.
type CutConnection struct {
	Text string
	Own  bool // it is the way that we come ourselves
}

// Cuts is what rules cut that was open before: the old rules, or none where
// there is nothing yet. Connections that stand go on; whoever is cut could not
// come back.
func (c Connections) Cuts(want Spec, before *Spec) []CutConnection {
	after := newJudge(want)
	allows := func(protocol Protocol, port uint16, from netip.Addr) bool {
		return after.allows(protocol, port, from) || c.LetIn != nil && c.LetIn(protocol, port, from)
	}
	was := func(Protocol, uint16, netip.Addr) bool { return true }
	closedBefore := func(Listener) bool { return false }
	if before != nil {
		j := newJudge(*before)
		was = j.allows
		closedBefore = func(l Listener) bool { return !j.opens(l.Protocol, l.Port) }
	}
	var cuts []CutConnection
	if c.Own.IsValid() && !allows(TCP, c.OwnPort, c.Own) {
		cuts = append(cuts, CutConnection{Own: true, Text: fmt.Sprintf("cuts stoke's own way in: SSH from %s to port %d. "+
			"The machine would take these rules back; declare %[1]s in ssh_from", c.Own, c.OwnPort)})
	}
	programs := map[uint16]string{}
	for _, l := range c.Listeners {
		if l.Protocol == TCP {
			programs[l.Port] = l.Program
		}
		if !after.opens(l.Protocol, l.Port) && !closedBefore(l) && (c.LetIn == nil || !c.LetIn(l.Protocol, l.Port, netip.Addr{})) {
			cuts = append(cuts, CutConnection{Text: fmt.Sprintf("%s can no longer be reached", port(l.Protocol, l.Port, l.Program))})
		}
	}
	for _, p := range c.Peers {
		own := p.Address == c.Own && p.Port == c.OwnPort
		if p.NodePort && (want.Role == NoRole || before != nil && before.Role == NoRole) {
			continue // without a role the firewall does not filter connections to pods
		}
		if !own && !allows(TCP, p.Port, p.Address) && was(TCP, p.Port, p.Address) {
			cuts = append(cuts, CutConnection{Text: fmt.Sprintf("%s, which is connected to %s, cannot come back", p.Address, port(TCP, p.Port, programs[p.Port]))})
		}
	}
	return cuts
}

func port(protocol Protocol, number uint16, program string) string {
	text := Ports{protocol, number, number}.String()
	if program != "" {
		text += " (" + program + ")"
	}
	return text
}

// opens reports whether anybody may reach a port. Those of DHCP clients stay
// open on every machine.
func (j judge) opens(protocol Protocol, port uint16) bool {
	return protocol == UDP && (port == 68 || port == 546) || slices.ContainsFunc(j.open, func(o opening) bool { return o.ports.contains(protocol, port) })
}
