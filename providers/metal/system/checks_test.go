package system

import (
	"flag"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

var _ = flag.Bool("update", false, "rewrite golden files")

// TestChecks: all that a plan says of the operating system.
func TestChecks(t *testing.T) {
	list := hosttest.NewChecks(t, "system")
	file := func(f FileFacts) map[string]FileFacts { return map[string]FileFacts{"/etc/a": f} }
	wants := func(f File) Spec { return Spec{Files: map[string]File{"/etc/a": f}} }
	text := File{Content: []byte("new\n"), Digest: Digest("", []byte("new\n")), Mode: 0o644, Owner: "root", Group: "root"}
	secret := File{Content: []byte("new\n"), Digest: Digest("s", []byte("new\n")), Salt: "s", Sensitive: true, Mode: 0o600, Owner: "ops", Group: "4711"}
	old := FileFacts{Type: "regular file", Digest: Digest("", []byte("old\n")), Content: []byte("old\n"), Size: 4, Mode: 0o600, Owner: [2]string{"7", "lp"}, Group: [2]string{"9", "UNKNOWN"}}
	time := func(units map[string]host.Unit, files map[string]string) Facts {
		return Facts{Time: &TimeFacts{services: units, files: files}}
	}
	keeps := map[string]host.Unit{"chrony.service": {Load: "loaded", Active: "active", File: "enabled"}}
	for _, c := range []struct {
		name string
		want Spec
		have Facts
	}{
		{"name as declared", Spec{Hostname: "a"}, Facts{Name: &NameFacts{Live: "a", Static: "a", Hosts: "127.0.1.1 a\n"}}},
		{"name until the next boot", Spec{Hostname: "a"}, Facts{Name: &NameFacts{Live: "a", Static: "b"}}},
		{"name not in a file", Spec{Hostname: "a"}, Facts{Name: &NameFacts{Live: "a"}}},
		{"another name", Spec{Hostname: "a"}, Facts{Name: &NameFacts{Live: "b", Static: "b"}}},
		{"name not in hosts", Spec{Hostname: "a"}, Facts{Name: &NameFacts{Live: "a", Static: "a"}}},
		{"name of cloud-init", Spec{Hostname: "a"}, Facts{Name: &NameFacts{Live: "a", Static: "a", Hosts: "127.0.1.1 a\n", Cloud: "sets"}}},
		{"no swap", Spec{SwapOff: true}, Facts{Swap: &SwapFacts{}}},
		{"swap now", Spec{SwapOff: true}, Facts{Swap: &SwapFacts{Active: []string{"/swap"}}}},
		{"swap now and at boot", Spec{SwapOff: true}, Facts{Swap: &SwapFacts{Active: []string{"/swap"}, Fstab: "/swap none swap sw 0 0\n"}}},
		{"swap at boot", Spec{SwapOff: true}, Facts{Swap: &SwapFacts{Units: []string{"x.swap"}, Services: []string{"zramswap.service"}}}},
		{"modules", Spec{Modules: []string{"a", "b", "c", "d", "e"}}, Facts{Modules: map[string]ModuleFacts{
			"a": {ModuleLoaded, true}, "b": {ModuleLoaded, false}, "c": {ModuleAbsent, true}, "d": {ModuleAbsent, false}, "e": {ModuleUnknown, false}}}},
		{"sysctl", Spec{Sysctl: map[string]string{"a.a": "1", "a.b": "1", "a.c": "1", "a.d": "1", "a.e": "1", "a.f": "1", "a.g": "1", "a.h": "1"}}, Facts{Sysctl: map[string]SysctlFacts{
			"a.a": {SysctlValue, "1", "1", sysctlFile}, "a.b": {SysctlValue, "1", "", ""}, "a.c": {SysctlValue, "0", "1", sysctlFile}, "a.d": {SysctlValue, "1", "0", "/etc/sysctl.d/zz.conf"},
			"a.e": {SysctlMissing, "", "", ""}, "a.f": {SysctlUnreadable, "", "", ""}, "a.g": {SysctlReadOnly, "0", "", ""}, "a.h": {SysctlValue, "0", "0", "/etc/sysctl.d/10.conf"}}}},
		{"sysctl of modules", Spec{Sysctl: map[string]string{"net.bridge.a": "1", "net.netfilter.b": "1"}}, Facts{Sysctl: map[string]SysctlFacts{"net.bridge.a": {State: SysctlMissing}, "net.netfilter.b": {State: SysctlMissing}}}},
		{"sysctl of a module to come", Spec{Modules: []string{"br_netfilter"}, Sysctl: map[string]string{"net.bridge.a": "1"}},
			Facts{Modules: map[string]ModuleFacts{"br_netfilter": {ModuleAbsent, true}}, Sysctl: map[string]SysctlFacts{"net.bridge.a": {State: SysctlMissing}}}},
		{"no time service", Spec{Time: &Time{}}, time(nil, nil)},
		{"a time service", Spec{Time: &Time{}}, time(keeps, nil)},
		{"another time service", Spec{Time: &Time{Service: "ntpsec"}}, time(keeps, nil)},
		{"one that is stopped", Spec{Time: &Time{Service: "chrony"}}, time(map[string]host.Unit{"chrony.service": {Load: "loaded", Active: "inactive", File: "disabled"}}, nil)},
		{"one that is not enabled", Spec{Time: &Time{Service: "chrony"}}, time(map[string]host.Unit{"chrony.service": {Load: "loaded", Active: "active", File: "disabled"}}, nil)},
		{"one that is stopped and enabled", Spec{Time: &Time{Service: "chrony"}}, time(map[string]host.Unit{"chrony.service": {Load: "loaded", Active: "failed", File: "enabled"}}, nil)},
		{"other servers", Spec{Time: &Time{Servers: []string{"a", "b"}}}, time(keeps, map[string]string{chronyFile: "server c iburst\n"})},
		{"time zone", Spec{Timezone: "Etc/UTC"}, Facts{Timezone: "Europe/Berlin"}},
		{"a time zone that there is not", Spec{Timezone: "Mars/Olympus"}, Facts{Timezone: "Etc/UTC", Unknown: map[string]bool{"time zone Mars/Olympus": true}}},
		{"no file", wants(text), Facts{Files: file(FileFacts{Type: "absent"})}},
		{"another file", wants(text), Facts{Files: file(old)}},
		{"another secret file", wants(secret), Facts{Files: file(old), Unknown: map[string]bool{"user ops": true, "group 4711": true}}},
		{"a folder", wants(text), Facts{Files: file(FileFacts{Type: "directory"})}},
		{"blocked", wants(text), Facts{Files: file(FileFacts{Type: "blocked"})}},
		{"immutable", wants(text), Facts{Files: file(FileFacts{Type: "regular file", Fixed: "/etc/a"})}},
		{"in an immutable folder", wants(text), Facts{Files: file(FileFacts{Type: "absent", Fixed: "/etc"})}},
		{"all at once", Spec{Hostname: "a", SwapOff: true, Modules: []string{"x"}, Sysctl: map[string]string{"a.b": "1"}, Time: &Time{}, Timezone: "Etc/UTC", Files: wants(text).Files},
			Facts{Name: &NameFacts{Live: "b", Static: "b"}, Swap: &SwapFacts{Active: []string{"/swap"}}, Modules: map[string]ModuleFacts{"x": {ModuleAbsent, false}},
				Sysctl: map[string]SysctlFacts{"a.b": {SysctlValue, "0", "", ""}}, Time: time(nil, nil).Time, Timezone: "UTC", Files: file(FileFacts{Type: "absent"})}},
	} {
		list.Case("%s", c.name)
		for _, err := range Problems(c.want, c.have) {
			list.Say("problem %v", err)
		}
		for _, err := range Doubts(c.want, c.have) {
			list.Say("doubt %v", err)
		}
		for _, err := range UnknownNames(c.want, c.have) {
			list.Say("unknown %v", err)
		}
		if err := NoTimeService(c.want, c.have, nil); err != nil {
			list.Say("error %v", err)
		}
		list.Changes(Table.Diff(c.want, c.have))
	}
	for _, c := range []struct {
		service, packages string
		fails             bool
	}{{"", "", true}, {"", "jq", true}, {"", "jq chrony", false}, {"ntpsec", "chrony", true}, {"ntpsec", "ntpsec", false}} {
		if err := NoTimeService(Spec{Time: &Time{Service: c.service}}, time(nil, nil), strings.Fields(c.packages)); (err != nil) != c.fails {
			t.Errorf("time service %q, with packages %q: %v", c.service, c.packages, err)
		}
	}
	if err := NoTimeService(Spec{}, Facts{}, nil); err != nil {
		t.Errorf("none is declared: %v", err)
	}
	list.Case("mistakes")
	for _, s := range []Spec{
		{Hostname: "A_b"}, {Hostname: strings.Repeat("a", 65)}, {Hostname: "1.2"}, {Hostname: "localhost"}, {Modules: []string{"../x"}}, {Sysctl: map[string]string{"a b": "1", "a.b": ""}},
		{Time: &Time{Service: "x", Servers: []string{"a b"}}}, {Timezone: "/x"}, wants(File{}), {Files: map[string]File{"b": text, "/proc/x": text, "/etc/timezone": text, "/etc/hosts": text}, Hostname: "a", Timezone: "UTC"},
	} {
		list.Say("%v", s.Validate())
	}
}
