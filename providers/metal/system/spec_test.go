package system

import (
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	good := File{Digest: Digest("", []byte("x")), Content: []byte("x"), Mode: 0o644, Owner: "root", Group: "0"}
	with := func(change func(*File)) map[string]File {
		f := good
		change(&f)
		return map[string]File{"/etc/app/conf": f}
	}
	for _, c := range []struct {
		name string
		spec Spec
		says string // "" for none
	}{
		{"nothing", Spec{}, ""},
		{"all", Spec{Hostname: "gpu-1.lab", SwapOff: true, Modules: []string{"br_netfilter"}, Sysctl: map[string]string{"net.ipv4.ip_forward": "1", "net/ipv4/conf/eth0.1/forwarding": "1"},
			Time: &Time{Service: "chrony", Servers: []string{"ntp.example.com", "2001:db8::1"}}, Timezone: "Europe/Berlin", Files: with(func(*File) {})}, ""},
		{"upper case", Spec{Hostname: "Node1"}, "lower-case"},
		{"hyphen at the end", Spec{Hostname: "node-"}, "RFC 1123"},
		{"too long for Linux", Spec{Hostname: strings.Repeat("a", 40) + "." + strings.Repeat("b", 40)}, "64"},
		{"an address", Spec{Hostname: "10.0.0.1"}, "address"},
		{"everybody", Spec{Hostname: "localhost.localdomain"}, "every machine itself"},
		{"a shell's word", Spec{Modules: []string{"a;b"}}, "kernel module"},
		{"an option", Spec{Modules: []string{"-r"}}, "kernel module"},
		{"a key that climbs", Spec{Sysctl: map[string]string{"net/../../etc/passwd": "1"}}, "only dots"},
		{"a key that climbs by dots", Spec{Sysctl: map[string]string{"net.ipv4...x": "1"}}, "empty"},
		{"one word", Spec{Sysctl: map[string]string{"kernel": "1"}}, "a key is"},
		{"no value", Spec{Sysctl: map[string]string{"kernel.panic": " "}}, "one line"},
		{"two lines", Spec{Sysctl: map[string]string{"kernel.panic": "1\nkernel.x = 2"}}, "one line"},
		{"unknown clock", Spec{Time: &Time{Service: "sundial"}}, "time service"},
		{"a server that is an option", Spec{Time: &Time{Servers: []string{"-q"}}}, "neither"},
		{"a zone that climbs", Spec{Timezone: "../../etc/passwd"}, "time zone"},
		{"relative", Spec{Files: map[string]File{"etc/x": good}}, "absolute"},
		{"unclean", Spec{Files: map[string]File{"/etc/../x": good}}, "absolute"},
		{"line in a path", Spec{Files: map[string]File{"/etc/a\nb": good}}, "characters"},
		{"under proc", Spec{Files: map[string]File{"/proc/sys/x": good}}, "not for files"},
		{"stoke's own", Spec{Files: map[string]File{"/var/lib/stoke/host/record.json": good}}, "not for files"},
		{"another fact's", Spec{Files: map[string]File{"/etc/sysctl.d/99-stoke.conf": good}}, "not for files"},
		{"beside another fact's", Spec{Files: map[string]File{"/etc/hostname.d": good}}, ""},
		{"hosts without the name", Spec{Hostname: "a", Files: map[string]File{"/etc/hosts": good}}, "127.0.1.1 a"},
		{"hosts with the name", Spec{Hostname: "a", Files: map[string]File{"/etc/hosts": {Digest: Digest("", nil), Content: []byte("127.0.1.1 a\n"), Owner: "root", Group: "root"}}}, ""},
		{"a zone twice", Spec{Timezone: "UTC", Files: map[string]File{"/etc/timezone": good}}, "timezone writes it"},
		{"setuid", Spec{Files: with(func(f *File) { f.Mode = 0o4755 })}, "permission bits"},
		{"owner", Spec{Files: with(func(f *File) { f.Owner = "a:b" })}, "owner"},
		{"no content", Spec{Files: with(func(f *File) { f.Digest = "" })}, "content"},
		{"no salt", Spec{Files: with(func(f *File) { f.Sensitive = true })}, "salt"},
	} {
		err := c.spec.Validate()
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%s: %v, want something of %q", c.name, err, c.says)
		}
	}
}
