package system

import (
	"slices"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Table is what this package looks after, in the order in which a plan says it.
var Table = host.Table[Spec, Facts]{
	{
		Key:   nameKey,
		Names: host.One[Spec, Facts](func(w Spec) bool { return w.Hostname != "" }),
		Was: func(_ Spec, have Facts, _ string) any {
			return nameWas{Live: have.Name.Live, Static: have.Name.Static, Own: ownLines(have.Name.Hosts)}
		},
		Diff: func(want Spec, have Facts) []host.Change {
			if want.Hostname == "" || have.Name == nil {
				return nil
			}
			return diffName(want.Hostname, have.Name)
		},
		Back: host.Becomes("host name"),
	},
	{
		Key:   swapKey,
		Names: host.One[Spec, Facts](func(w Spec) bool { return w.SwapOff }),
		Wanted: func(rec *host.Record, want Spec, _ string) bool {
			var was swapWas
			_, err := rec.ReadNote(swapKey, &was)
			return want.SwapOff || err == nil && was.untouched()
		},
		Was: func(_ Spec, have Facts, _ string) any {
			if len(diffSwap(have.Swap)) > 0 {
				return nil // it is written down with the units that are masked for it
			}
			return swapWas{Off: true}
		},
		Diff: func(want Spec, have Facts) []host.Change {
			if !want.SwapOff || have.Swap == nil {
				return nil
			}
			return diffSwap(have.Swap)
		},
		// Units that a generator makes of /etc/fstab appear only when systemd is
		// reloaded.
		Back: func(*host.Record, string) host.Change {
			return host.Change{Fact: "swap comes back", Disruption: host.ReloadsSystemd}
		},
	},
	{
		Key:   moduleKey,
		Names: func(want Spec, _ Facts) []string { return sorted(want.Modules) },
		Was: func(_ Spec, have Facts, name string) any {
			if have.Modules[name].State == ModuleUnknown {
				return nil
			}
			return have.Modules[name].Holds()
		},
		Wanted: func(rec *host.Record, want Spec, name string) bool {
			return slices.Contains(want.Modules, name) || heldBefore(rec, name)
		},
		Diff: func(want Spec, have Facts) []host.Change { return diffModules(want.Modules, have.Modules) },
		Back: func(_ *host.Record, name string) host.Change {
			return host.Change{Fact: "kernel module " + name + " is no longer loaded at boot"}
		},
	},
	{
		Key:   sysctlKey,
		Names: func(want Spec, _ Facts) []string { return keys(want.Sysctl) },
		Was:   func(_ Spec, have Facts, k string) any { return have.priorOf(k) },
		Diff:  func(want Spec, have Facts) []host.Change { return diffSysctl(want.Sysctl, have.Sysctl) },
		Back: func(rec *host.Record, k string) host.Change {
			var was sysctlWas
			_, err := rec.ReadNote(sysctlKey+k, &was)
			p, _ := sysctlPath(k)
			return host.Change{Fact: "sysctl " + k + " becomes " + was.Value + " again", Drains: err == nil && was.Value == "0" && slices.Contains(forwards, p)}
		},
	},
	{
		Key: timeKey,
		Names: func(want Spec, have Facts) []string {
			if want.Time == nil || have.Time == nil {
				return nil
			}
			return []string{have.Time.Service(*want.Time)}
		},
		Wanted: func(_ *host.Record, want Spec, service string) bool {
			return want.Time != nil && (want.Time.Service == "" || want.Time.Service == service)
		},
		Was: func(_ Spec, have Facts, service string) any {
			u := have.Time.unit(service)
			if u.Load != "loaded" {
				return nil
			}
			return timeWas{Enabled: u.File == "enabled", Active: u.Active == "active"}
		},
		Diff: func(want Spec, have Facts) []host.Change {
			if want.Time == nil || have.Time == nil {
				return nil
			}
			return diffTime(*want.Time, have.Time)
		},
		Back: host.Becomes("time service"),
	},
	{
		Key:   zoneKey,
		Names: host.One[Spec, Facts](func(w Spec) bool { return w.Timezone != "" }),
		Was:   func(_ Spec, have Facts, _ string) any { return have.Timezone },
		Files: func(string) []string { return zoneFiles },
		Diff: func(want Spec, have Facts) []host.Change {
			if want.Timezone == "" {
				return nil
			}
			return diffTimezone(want.Timezone, have.Timezone)
		},
		Back: host.Becomes("time zone"),
	},
	{
		Key:   fileKey,
		Names: func(want Spec, _ Facts) []string { return keys(want.Files) },
		Was: func(_ Spec, have Facts, name string) any {
			if have.Files[name].obstacle(name) != nil {
				return nil
			}
			return true
		},
		Files: func(name string) []string { return []string{name} },
		Diff:  func(want Spec, have Facts) []host.Change { return diffFiles(want.Files, have.Files) },
		Back:  host.Becomes("file"),
	},
}

// forwards are the sysctl values without which the pods of a node reach nobody.
var forwards = []string{
	"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/conf/all/forwarding", "/proc/sys/net/ipv6/conf/all/forwarding",
	"/proc/sys/net/bridge/bridge-nf-call-iptables", "/proc/sys/net/bridge/bridge-nf-call-ip6tables",
}
