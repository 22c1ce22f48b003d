package firewall

import (
	"bytes"
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
	// LetIn says whom somebody else's rules let in, which stay; nil for nobody.
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
	NodePort bool   // nobody listens there: the connection goes on to a pod
}

// ss says who listens on TCP and UDP, with the programs, and which TCP
// connections stand; see ss(8). -H leaves the titles out. It does not see what
// goes on to pods, which the kernel's connection tracking does: of that, what
// has come to node ports of this machine.
const connectionsScript = `# list connections
export LC_ALL=C
ss -Htulpn && echo established && ss -Htn state established && echo tracked || exit 1
{ ip -o addr show; cat /proc/net/nf_conntrack 2>/dev/null; } | awk '
$3 ~ /^inet/ { sub("/.*", "", $4); own[$4] = 1 }
$3 == "tcp" && $6 == "ESTABLISHED" {
  split($7, src, "="); split($8, dst, "="); split($10, port, "=")
  if (own[dst[2]] && port[2] >= 30000 && port[2] <= 32767 && !seen[src[2], port[2]]++ && n++ < 1000) print src[2], port[2]
}'
echo end`

// ReadConnections looks at who would notice a firewall.
func ReadConnections(ctx context.Context, m host.Machine) (Connections, error) {
	out, err := host.LookScript(ctx, m, connectionsScript)
	if err != nil {
		return Connections{}, fmt.Errorf("list listeners and connections: %w", err)
	}
	c, err := readConnections(out)
	if err != nil {
		return Connections{}, fmt.Errorf("%s: %w", m.Name(), err)
	}
	own := ownAddress(ctx, m)
	c.Own, c.OwnPort = own.Addr(), own.Port()
	return c, nil
}

func readConnections(out []byte) (Connections, error) {
	var c Connections
	established, tracked, whole := false, false, false
	seen := map[Listener]bool{}
	peers, listens, own := map[Peer]bool{}, map[uint16]bool{}, map[netip.Addr]bool{}
	connected := func(p Peer) {
		if !p.Address.IsLoopback() && !peers[p] {
			peers[p] = true
			c.Peers = append(c.Peers, p)
		}
	}
	for line := range bytes.Lines(out) {
		text := strings.TrimSpace(string(line))
		fields := strings.Fields(text)
		switch {
		case text == "":
		case text == "established":
			established = true
		case text == "tracked":
			tracked = true
		case text == "end":
			whole = true
		case tracked:
			p, err := readTracked(fields)
			if err != nil {
				return c, fmt.Errorf("tracked connections: %q: %w", shorten(text), err)
			}
			if !listens[p.Port] {
				connected(p)
			}
		case !established:
			is, address, ok := facts.ReadListener(text)
			if !ok {
				return c, fmt.Errorf("ss: %q is no listener of tcp or udp", shorten(text))
			}
			l := Listener{map[string]Protocol{"tcp": TCP, "udp": UDP}[is.Protocol], uint16(is.Port), strings.ReplaceAll(is.Process, "\uFFFD", "?")}
			if !address.Unmap().IsLoopback() && !seen[l] { // others can reach it
				seen[l] = true
				c.Listeners = append(c.Listeners, l)
				listens[l.Port] = listens[l.Port] || l.Protocol == TCP
			}
		default:
			p, at, err := readPeer(fields)
			if err != nil {
				return c, fmt.Errorf("ss: %q: %w", shorten(text), err)
			}
			if own[at] = true; listens[p.Port] {
				connected(p)
			}
		}
	}
	if !whole {
		return c, fmt.Errorf("the list of listeners and connections broke off")
	}
	// What the machine says to itself goes over lo, whatever the addresses.
	c.Peers = slices.DeleteFunc(c.Peers, func(p Peer) bool { return own[p.Address] })
	slices.SortFunc(c.Listeners, func(a, b Listener) int {
		return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Port, b.Port))
	})
	slices.SortFunc(c.Peers, func(a, b Peer) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), a.Address.Compare(b.Address))
	})
	return c, nil
}

// readPeer reads a line such as "0 0 10.0.0.1:22 10.0.0.2:40000"; at is the
// address of this machine that the peer has connected to.
func readPeer(fields []string) (p Peer, at netip.Addr, err error) {
	if len(fields) < 4 {
		return p, at, fmt.Errorf("it has %d fields where 4 are expected", len(fields))
	}
	if at, p.Port, err = readEndpoint(fields[2]); err != nil {
		return p, at, err
	}
	p.Address, _, err = readEndpoint(fields[3])
	return p, at, err
}

// readTracked reads a line such as "10.0.0.2 30080".
func readTracked(fields []string) (Peer, error) {
	if len(fields) != 2 {
		return Peer{}, fmt.Errorf("it has %d fields where 2 are expected", len(fields))
	}
	address, errA := netip.ParseAddr(fields[0])
	port, errP := strconv.ParseUint(fields[1], 10, 16)
	return Peer{address.Unmap().WithZone(""), uint16(port), true}, errors.Join(errA, errP)
}

// readEndpoint reads "10.0.0.1:22", "[::]:22", "*:22", "127.0.0.53%lo:53",
// "[fe80::1]%eth0:546". The address of "*" is ::.
func readEndpoint(s string) (netip.Addr, uint16, error) {
	address, port, ok := facts.Endpoint(s)
	if !ok {
		return address, 0, fmt.Errorf("%q is no address with a port", s)
	}
	return address.Unmap(), uint16(port), nil
}

// Cut is something that works now and would not with new rules.
type Cut struct {
	Text string
	Own  bool // it is the way that we come ourselves
}

// Cuts is what rules cut that was open before: the old rules, or none where
// there is nothing yet. Connections that stand go on; whoever is cut could not
// come back.
func (c Connections) Cuts(want Spec, before *Spec) []Cut {
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
	var cuts []Cut
	if c.Own.IsValid() && !allows(TCP, c.OwnPort, c.Own) {
		cuts = append(cuts, Cut{Own: true, Text: fmt.Sprintf("cuts stoke's own way in: SSH from %s to port %d. "+
			"The machine would take these rules back; declare %[1]s in ssh_from", c.Own, c.OwnPort)})
	}
	programs := map[uint16]string{}
	for _, l := range c.Listeners {
		if l.Protocol == TCP {
			programs[l.Port] = l.Program
		}
		if !after.opens(l.Protocol, l.Port) && !closedBefore(l) {
			cuts = append(cuts, Cut{Text: fmt.Sprintf("nobody reaches %s any more", port(l.Protocol, l.Port, l.Program))})
		}
	}
	for _, p := range c.Peers {
		own := p.Address == c.Own && p.Port == c.OwnPort
		if p.NodePort && (want.Role == NoRole || before != nil && before.Role == NoRole) {
			continue // without a role nobody judges what goes on to pods
		}
		if !own && !allows(TCP, p.Port, p.Address) && was(TCP, p.Port, p.Address) {
			cuts = append(cuts, Cut{Text: fmt.Sprintf("%s, which is connected to %s, cannot come back", p.Address, port(TCP, p.Port, programs[p.Port]))})
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
