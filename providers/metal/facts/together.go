package facts

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers"
)

// Member is one of several machines that are to work together.
type Member struct {
	Facts Facts
	Needs Needs
	// Address is what it is reached by.
	Address string
}

// MTU is that of the interface in the cluster's network; 0 when it is not known.
func (m Member) MTU() int {
	nic, _ := m.Facts.uplink(m.InCluster())
	return nic.MTU
}

func (m Member) name() string { return strings.ToLower(cmp.Or(m.Needs.Hostname, m.Facts.Hostname)) }

// InCluster is its address in the cluster's network.
func (m Member) InCluster() string { return cmp.Or(m.Needs.PrivateAddress, m.Address) }

func (m Member) holds(address string) bool { return m.Facts.hasAddress(address) }

// Mutual is a problem between machines.
type Mutual struct {
	Problem
	Hosts []string // whose it is, as they are called in Together, sorted
}

// CompareHosts reports faults between machines: names, ids and addresses that occur
// twice, clocks that are apart, MTUs that differ, and networks of a cluster
// that one machine declares and another is in. The machines go by what messages
// call them.
func CompareHosts(members map[string]Member) []Mutual {
	t := comparison{members: members, names: slices.Sorted(maps.Keys(members))}
	t.unique()
	t.addresses()
	t.clocks()
	t.mtu()
	t.networks()
	return t.found
}

// Distinct is the part of Together that holds for machines of different
// clusters, too: a machine is one resource's, and an address one machine's.
func Distinct(members map[string]Member) []Mutual {
	t := comparison{members: members, names: slices.Sorted(maps.Keys(members))}
	t.machines(t.isOneMachine)
	t.checkAddresses()
	return t.found
}

type comparison struct {
	members map[string]Member
	names   []string
	found   []Mutual
}

func (t *comparison) add(s providers.Severity, hosts []string, path, summary, detail string, args ...any) {
	var p problems
	p.add(s, path, summary, detail, args...)
	t.found = append(t.found, Mutual{Problem: p[0], Hosts: slices.Compact(slices.Sorted(slices.Values(hosts)))})
}

// findShared calls found for each value that several machines have, in order.
func (t *comparison) findShared(values func(Member) []string, found func(value string, hosts []string)) {
	by := map[string][]string{}
	for _, name := range t.names {
		for _, v := range slices.Compact(slices.Sorted(slices.Values(values(t.members[name])))) {
			if v != "" {
				by[v] = append(by[v], name)
			}
		}
	}
	for _, v := range slices.Sorted(maps.Keys(by)) {
		if len(by[v]) > 1 {
			found(v, by[v])
		}
	}
}

func one(value func(Member) string) func(Member) []string {
	return func(m Member) []string { return []string{value(m)} }
}

func (t *comparison) machines(counts func(hosts []string) bool) {
	t.findShared(one(func(m Member) string { return m.Facts.MachineID }), func(id string, hosts []string) {
		switch {
		case !counts(hosts):
		case t.isOneMachine(hosts):
			t.add(providers.Error, hosts, "address", "These resources are one machine", "%s lead to the same machine (machine id %s, same addresses). A machine belongs to one resource: remove the others.", strings.Join(hosts, " and "), id)
		default:
			t.add(providers.Error, hosts, "", "Machines share a machine id", "%s all have %s in /etc/machine-id, as copies of one image do. Kubernetes and DHCP take them for one. On all but one:\n  rm /etc/machine-id /var/lib/dbus/machine-id; systemd-machine-id-setup; reboot", strings.Join(hosts, ", "), id)
		}
	})
}

func (t *comparison) unique() {
	t.machines(func([]string) bool { return true })
	t.findShared(one(Member.name), func(name string, hosts []string) {
		if !t.isOneMachine(hosts) {
			t.add(providers.Error, hosts, "hostname", "Machines share a host name", "%s are all called %s. Nodes go by their names: set another hostname for all but one.", strings.Join(hosts, ", "), name)
		}
	})
	t.findShared(one(func(m Member) string { return m.Facts.ProductUUID }), func(id string, hosts []string) {
		if !t.isOneMachine(hosts) {
			t.add(providers.Warning, hosts, "", "Machines share a product UUID", "The firmware of %s says %s. Kubernetes "+
				"requires a unique one, and stoke does not depend on it.", strings.Join(hosts, ", "), id)
		}
	})
}

// isOneMachine tells whether these are one machine: it was booted once, and has the
// same addresses and cards.
func (t *comparison) isOneMachine(hosts []string) bool {
	key := func(name string) string {
		f := t.members[name].Facts
		macs := []string{f.MachineID, f.BootID}
		for _, nic := range f.NICs {
			macs = append(macs, nic.Name, nic.MAC)
		}
		return strings.Join(macs, " ")
	}
	return !slices.ContainsFunc(hosts[1:], func(name string) bool { return key(name) != key(hosts[0]) })
}

// ofItsOwn tells interfaces that lead out of the machine from the bridges that
// every machine with a certain software has, with the same address on each.
func ofItsOwn(nic NIC) bool {
	return !begins(nic.Name, "br-", "docker", "lxcbr", "lxdbr", "incusbr", "podman", "virbr")
}

// checkAddresses checks the addresses that machines are reached by, and returns those
// that several are.
func (t *comparison) checkAddresses() map[string]bool {
	twice := map[string]bool{}
	t.findShared(one(func(m Member) string { return strings.ToLower(m.InCluster()) }), func(address string, hosts []string) {
		twice[address] = true
		if !t.isOneMachine(hosts) {
			t.add(providers.Error, hosts, "address", "Machines share an address", "%s all have the address %s.", strings.Join(hosts, ", "), address)
		}
	})
	return twice
}

func (t *comparison) addresses() {
	twice := t.checkAddresses()
	held := func(m Member) []string {
		var list []string
		for _, nic := range m.Facts.NICs {
			for _, p := range nic.prefixes() {
				if ofItsOwn(nic) {
					list = append(list, p.Addr().String())
				}
			}
		}
		return list
	}
	t.findShared(held, func(address string, hosts []string) {
		if twice[address] || t.isOneMachine(hosts) {
			return
		}
		// It does harm where one of them is reached by it; elsewhere it may be a
		// network of its own, such as a management controller's.
		severity := providers.Warning
		for _, name := range hosts {
			if t.members[name].InCluster() == address {
				severity = providers.Error
			}
		}
		t.add(severity, hosts, "address", "Machines hold the same address", "Interfaces of %s have %s. A packet to it "+
			"reaches one of them, and not always the same.", strings.Join(hosts, ", "), address)
	})
}

// clocks compares each with the median, so that one that is off is named, and
// not all the others.
func (t *comparison) clocks() {
	if len(t.names) < 2 {
		return
	}
	order := slices.SortedStableFunc(slices.Values(t.names), func(x, y string) int {
		return cmp.Compare(t.members[x].Facts.Clock.Offset, t.members[y].Facts.Clock.Offset)
	})
	middle := order[(len(order)-1)/2]
	median := t.members[middle].Facts.Clock
	for _, name := range t.names {
		c := t.members[name].Facts.Clock
		apart := c.Offset - median.Offset
		if math.Abs(apart)-c.Resolution-median.Resolution <= MaxOffset {
			continue
		}
		t.add(providers.Error, []string{name}, "time_sync", "Clocks are too far apart", "%s is %.1f s %s %s, and most is %g s: certificates would not be valid yet, or leases end too early. Set time_sync, or see why it does not keep the time (%s).",
			name, math.Abs(apart), side(apart), middle, MaxOffset, cmp.Or(c.Service, "nothing does"))
	}
}

func (t *comparison) mtu() {
	by := map[int][]string{}
	for _, name := range t.names {
		m := t.members[name]
		if nic, ok := m.Facts.uplink(m.InCluster()); ok && nic.MTU > 0 {
			by[nic.MTU] = append(by[nic.MTU], name)
		}
	}
	if len(by) < 2 {
		return
	}
	var lines, hosts []string
	for _, mtu := range slices.Sorted(maps.Keys(by)) {
		lines = append(lines, fmt.Sprintf("%d: %s", mtu, strings.Join(by[mtu], ", ")))
		hosts = append(hosts, by[mtu]...)
	}
	t.add(providers.Warning, hosts, "", "Machines have different MTUs", "Large packets between them are lost where the network cannot say so. On the interfaces of the cluster's network:\n  %s", strings.Join(lines, "\n  "))
}

// networks: what one machine declares for its cluster may not hold the others.
func (t *comparison) networks() {
	by := map[declaredNetwork][]string{}
	for _, name := range t.names {
		for _, d := range t.members[name].Needs.declaredNetworks() {
			by[d] = append(by[d], name)
		}
	}
	order := slices.SortedFunc(maps.Keys(by), func(x, y declaredNetwork) int {
		return cmp.Or(strings.Compare(x.attribute, y.attribute), x.prefix.Compare(y.prefix))
	})
	for _, d := range order {
		var inside []string
		for _, name := range t.names {
			ip, err := netip.ParseAddr(t.members[name].InCluster())
			// Preflight reports a machine that has the address on an interface.
			if err == nil && d.prefix.Contains(ip) && !(slices.Contains(by[d], name) && t.members[name].holds(ip.String())) {
				inside = append(inside, name)
			}
		}
		if len(inside) > 0 {
			t.add(providers.Error, inside, d.attribute, "Machines are inside a cluster's network", "%s %s holds the addresses of %s. Choose another network.", d.name, d.prefix, strings.Join(inside, ", "))
		}
	}
}
