package system

import (
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// forwards are the sysctl values without which the pods of a node reach nobody.
var forwards = []string{
	"/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv4/conf/all/forwarding", "/proc/sys/net/ipv6/conf/all/forwarding",
	"/proc/sys/net/bridge/bridge-nf-call-iptables", "/proc/sys/net/bridge/bridge-nf-call-ip6tables",
}

// Undoing is what Apply takes back because the record knows of it and want does
// not declare it; nil wants nothing, as Restore.
func Undoing(rec *host.Record, want *Spec) []host.Change {
	if want == nil {
		want = &Spec{}
	}
	var changes []host.Change
	each := func(prefix string, wanted func(name string) bool, change func(name string) host.Change) {
		for _, key := range rec.Keys(prefix) {
			if name := strings.TrimPrefix(key, prefix); !wanted(name) {
				changes = append(changes, change(name))
			}
		}
	}
	each(nameKey, func(string) bool { return want.Hostname != "" }, func(string) host.Change {
		return host.Change{Fact: "host name becomes what it was before"}
	})
	// What a generator makes of /etc/fstab comes only when systemd is reloaded.
	each(swapKey, func(string) bool {
		var was swapWas
		_, err := rec.Was(swapKey, &was)
		return want.SwapOff || err == nil && was.untouched()
	}, func(string) host.Change {
		return host.Change{Fact: "swap comes back", Disruption: host.ReloadsSystemd}
	})
	each(zoneKey, func(string) bool { return want.Timezone != "" }, func(string) host.Change {
		return host.Change{Fact: "time zone becomes what it was before"}
	})
	each(timeKey, func(service string) bool {
		return want.Time != nil && (want.Time.Service == "" || want.Time.Service == service)
	}, func(service string) host.Change {
		return host.Change{Fact: "time service " + service + " becomes what it was before"}
	})
	each(sysctlKey, func(k string) bool { _, ok := want.Sysctl[k]; return ok }, func(k string) host.Change {
		var was string
		_, err := rec.Was(sysctlKey+k, &was)
		p, _ := sysctlPath(k)
		return host.Change{Fact: "sysctl " + k + " becomes " + was + " again", Drains: err == nil && was == "0" && slices.Contains(forwards, p)}
	})
	each(moduleKey, func(name string) bool { return slices.Contains(want.Modules, name) }, func(name string) host.Change {
		return host.Change{Fact: "kernel module " + name + " is not loaded at boot any more"}
	})
	each(fileKey, func(name string) bool { _, ok := want.Files[name]; return ok }, func(name string) host.Change {
		return host.Change{Fact: "file " + name + " becomes what it was before"}
	})
	return changes
}
