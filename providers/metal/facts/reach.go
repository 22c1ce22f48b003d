package facts

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/host"
)

// Answer is how a peer or a name answered.
type Answer string

const (
	Through   Answer = "reached" // also by packets as large as the link takes
	Smaller   Answer = "smaller" // full-size packets do not arrive, and the network says how large they may be
	OnlySmall Answer = "small"   // full-size packets do not arrive, and nobody says so
	Silent    Answer = "silent"  // nothing came back
	Untold    Answer = "untold"  // there is no way to find out
	Unknown   Answer = "unknown" // no such name
)

// Reach is what a machine can reach.
type Reach struct {
	Peers map[string]Answer
	Names map[string]Answer
}

// reachScript sends packets to peers and asks for names, as many at a time as
// are bearable, each for at most some seconds. Its arguments are groups of
// three: "peer" ADDRESS MTU or "name" NAME -.
//
// Full-size packets must not be taken apart on the way (-M do). Without a
// usable ping, a datagram of the same size is sent to an unused port: it has
// arrived if that machine answers with an ICMP error.
const reachScript = `# measure reachability
export LC_ALL=C PATH="$PATH:/usr/sbin:/sbin"
exec 2>/dev/null </dev/null
once() { ping -n -q -c 1 -W 1 -M do -s "$1" "$2" >/dev/null; }
some() { ping -n -q -c 3 -i 0.3 -W 1 -M do -s "$1" "$2" >/dev/null; }
told() { ping -n -c 1 -W 1 -M do -s "$1" "$2" 2>&1 | grep -qiE 'mtu ?= ?[0-9]|message too long'; }
refused() { timeout 4 bash -c 'exec 3<>"/dev/udp/$1/33433" || exit 2; dd if=/dev/zero bs="$2" count=1 >&3 || exit 2; read -r -t 1 -u 3 x; [ $? -le 128 ]' bash "$2" "$1"; }
peer() {
  over=28; case $1 in *:*) over=48;; esac
  big=$(($2 - over)); [ "$big" -gt 65000 ] && big=65000
  if ping -n -q -c 1 -W 1 -M do -s 56 127.0.0.1 >/dev/null; then
    if once "$big" "$1"; then a=reached; elif some 56 "$1"; then if some "$big" "$1"; then a=reached; elif told "$big" "$1"; then a=smaller; else a=small; fi; else a=silent; fi
  elif command -v bash >/dev/null; then
    if refused "$big" "$1" || refused "$big" "$1"; then a=reached; elif refused 56 "$1"; then a=small; else a=untold; fi
  else a=untold; fi
  printf 'peer\t%s\t%s\n' "$1" "$a"
}
name() {
  timeout 8 getent ahosts "$1" >/dev/null; r=$?
  case $r in 0) a=reached;; 124) a=silent;; 2) a=unknown;; *) a=untold;; esac
  printf 'name\t%s\t%s\n' "$1" "$a"
}
n=0
while [ $# -ge 3 ]; do
  case $1 in peer) peer "$2" "$3" &;; name) name "$2" &;; esac
  shift 3; n=$((n + 1)); [ $((n % 16)) = 0 ] && wait
done
wait
exit 0
`

// Reachable asks a machine what it can reach: peers by their addresses, which
// must be IP addresses, with packets as large as mtu allows, and names. It takes
// one round trip, and on the machine about three seconds for each sixteen that do
// not answer. It needs no root.
func Reachable(ctx context.Context, m host.Machine, mtu int, peers, names []string) (Reach, error) {
	r := Reach{Peers: map[string]Answer{}, Names: map[string]Answer{}}
	args := []string{"sh", "-c", reachScript, "sh"}
	for _, p := range peers {
		ip, err := netip.ParseAddr(p)
		if err != nil {
			return r, fmt.Errorf("peer %q is not an IP address", clean(p))
		}
		if _, twice := r.Peers[ip.String()]; !twice {
			r.Peers[ip.String()] = Untold
			args = append(args, "peer", ip.String(), strconv.Itoa(min(max(mtu, 1280), 65535)))
		}
	}
	for _, n := range names {
		if !ValidHostname(strings.ToLower(strings.TrimSuffix(n, "."))) {
			return r, fmt.Errorf("%q is no host name", clean(n))
		}
		if _, twice := r.Names[n]; !twice {
			r.Names[n] = Untold
			args = append(args, "name", n, "-")
		}
	}
	if len(args) == 4 {
		return r, nil
	}
	out, err := m.Run(ctx, host.Command{Args: args, Unprivileged: true})
	if err != nil {
		return r, fmt.Errorf("ask the machine what it reaches: %w", err)
	}
	r.read(out.Stdout)
	return r, nil
}

// read takes what was asked for; anything else that is said does not count.
func (r *Reach) read(out []byte) {
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 {
			continue
		}
		into := map[string]map[string]Answer{"peer": r.Peers, "name": r.Names}[fields[0]]
		answer := Answer(fields[2])
		if _, asked := into[fields[1]]; asked && slices.Contains([]Answer{Through, Smaller, OnlySmall, Silent, Untold, Unknown}, answer) {
			into[fields[1]] = answer
		}
	}
}

// Problems says what of it is in the way. peers gives the names that messages
// use for addresses.
func (r Reach) Problems(peers map[string]string) []Problem {
	var p problems
	by := map[Answer][]string{}
	for address, a := range r.Peers {
		name := address
		if n := peers[address]; n != "" && n != address {
			name = n + " (" + address + ")"
		}
		by[a] = append(by[a], name)
	}
	names := map[Answer][]string{}
	for name, a := range r.Names {
		names[a] = append(names[a], name)
	}
	list := func(l []string) string {
		slices.Sort(l)
		return strings.Join(l, ", ")
	}
	if l := by[OnlySmall]; len(l) > 0 {
		p.add(providers.Error, "", "Full-size packets do not arrive", "Small packets reach %s, packets as large as "+
			"this machine's MTU do not, and without an error: connections would open and then hang. Give the interfaces, and switches and tunnels between them, one MTU.", list(l))
	}
	if l := by[Smaller]; len(l) > 0 {
		p.add(providers.Warning, "", "Packets must be smaller on the way", "The network takes smaller packets to %s than this machine's MTU, and says so: connections work, pods' networks that wrap packets lose speed or packets. Give the interfaces the MTU of the way.", list(l))
	}
	if l := by[Silent]; len(l) > 0 {
		p.add(providers.Warning, "", "Peers do not answer", "No packet came back from %s. They are off, a firewall drops ICMP, or no route leads there. Whether full-size packets arrive is not known.", list(l))
	}
	if l := names[Unknown]; len(l) > 0 {
		p.add(providers.Error, "", "Names are not known here", "The machine's name servers do not know %s. See /etc/resolv.conf, or use a mirror whose name they know.", list(l))
	}
	if l := names[Silent]; len(l) > 0 {
		p.add(providers.Error, "", "Name servers do not answer", "The machine asked for %s and heard nothing. See /etc/resolv.conf and the firewall.", list(l))
	}
	return p
}
