package system

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parse reads what look printed.
func parse(out []byte) (Facts, error) {
	p := newParser()
	err := p.lines().Read(out)
	p.settle()
	return *p.f, err
}

// What a machine cannot do is told before anything is written there.
func TestUnknownAndFixed(t *testing.T) {
	digest := strings.Repeat("ab", 32)
	want := Spec{Timezone: "Mars/Olympus", Files: map[string]File{
		"/etc/a": {Owner: "prometheus", Group: "4711", Digest: digest}, "/etc/b": {Owner: "root", Group: "prometheus", Digest: digest},
		"/srv/x/c": {Owner: "daemon", Group: "daemon", Digest: digest},
	}}
	asked := strings.Join(questions(want), " ")
	if asked != "timezone Mars/Olympus group daemon group prometheus passwd daemon passwd prometheus file /etc/a  "+digest+" open file /etc/b  "+digest+" open file /srv/x/c  "+digest+" open" {
		t.Errorf("it asks %s", asked)
	}
	const answer = "timezone\t/usr/share/zoneinfo/Etc/UTC\nunknown\ttime zone\tMars/Olympus\nunknown\tgroup\tprometheus\nunknown\tuser\tprometheus\n" +
		"file\t/etc/a\t\t0000000000000000000000000000000000000000000000000000000000000000\t\tregular file\t644\t0\troot\t0\troot\t5\nfixed\t/etc/a\t/etc/a\n" +
		"file\t/etc/b\t\t\t\tabsent\nfile\t/srv/x/c\t/srv/x\t\t\tabsent\nfixed\t/srv/x/c\t/srv\nend\n"
	f, err := parse([]byte(answer))
	if err == nil {
		err = f.answers(want)
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, err := range append(Problems(want, f), UnknownNames(want, f)...) {
		all = append(all, err.Error())
	}
	wants := []string{"/etc/a is immutable", "/srv/x/c: nothing can be written into /srv, which is immutable", "time zone Mars/Olympus does not exist", "/etc/a: user prometheus, the declared owner, does not exist", "/etc/b: group prometheus, the declared owner, does not exist"}
	for i, says := range wants {
		if len(all) != len(wants) || !strings.Contains(all[i], says) {
			t.Fatalf("it says %q, want something of %q", all, wants)
		}
	}
	for _, bad := range []string{"fixed\t/etc/z\t/etc/z\nend\n", "unknown\tuser\nend\n", "fixed\t/etc/z\nend\n"} {
		if _, err := parse([]byte(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// testdata/look.txt is what look printed on a Debian 12 in which systemd did
// not run.
func TestParse(t *testing.T) {
	out, err := os.ReadFile("testdata/look.txt")
	if err != nil {
		t.Fatal(err)
	}
	f, err := parse(out)
	if err != nil {
		t.Fatal(err)
	}
	if f.Name.Live != "node1" || f.Name.Static != "node1" || !hostsHold(f.Name.Hosts, "node1") || f.Name.Cloud != "" {
		t.Errorf("name: %+v", f.Name)
	}
	if got := f.Swap.Display(); got != "off until the next boot (/etc/fstab, extra.swap)" {
		t.Errorf("swap: %s", got)
	}
	modules := map[string]ModuleFacts{
		"overlay": {ModuleBuiltin, true}, "br_netfilter": {ModuleFeature, true}, "nf_conntrack": {ModuleFeature, true}, "nosuch": {ModuleUnknown, false},
	}
	if diff := cmp.Diff(modules, f.Modules); diff != "" {
		t.Error(diff)
	}
	sysctls := map[string]SysctlFacts{
		"net.ipv4.ip_forward":          {State: SysctlValue, Live: "0", AtBoot: "0", From: "/etc/sysctl.d/99-zz.conf"},
		"net.ipv4.ip_local_port_range": {State: SysctlValue, Live: "32768 60999"},
		"net.x":                        {State: SysctlMissing},
		"net.ipv4.route.flush":         {State: SysctlUnreadable},
	}
	osrelease := f.Sysctl["kernel.osrelease"]
	delete(f.Sysctl, "kernel.osrelease")
	if diff := cmp.Diff(sysctls, f.Sysctl); diff != "" {
		t.Error(diff)
	}
	if osrelease.State != SysctlReadOnly || osrelease.Live == "" {
		t.Errorf("kernel.osrelease: %+v", osrelease)
	}
	if f.Timezone != "Etc/UTC" {
		t.Errorf("time zone %q", f.Timezone)
	}
	conf := f.Files["/etc/app/conf"]
	if string(conf.Content) != "hello\n" || conf.Mode != 0o640 || conf.Owner != [2]string{"0", "root"} || conf.Digest != Digest("", []byte("hello\n")) {
		t.Errorf("conf: %+v", conf)
	}
	if s := f.Files["/etc/app/secret"]; len(s.Content) > 0 || s.Digest != Digest("salt", []byte("x")) {
		t.Errorf("secret: %+v", s)
	}
	for name, want := range map[string]string{"/etc/app/link": "symbolic link", "/etc": "directory", "/etc/hosts/x": "blocked", "/etc/none/a/b": "absent"} {
		if got := f.Files[name]; got.Type != want || (got.obstacle(name) == nil) != (want == "absent") {
			t.Errorf("%s is %q, obstacle %v", name, got.Type, got.obstacle(name))
		}
	}
	if f.Files["/etc/none/a/b"].Missing != "/etc/none" {
		t.Errorf("missing: %q", f.Files["/etc/none/a/b"].Missing)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", "end", "hostname\ta\ta\t\t\n", "x\nend\n", "hostname\ta\nend\n", "swaps\t!\nend\n", "module\tx\tperhaps\nend\n",
		"sysctl\tk\tperhaps\t\nend\n", "file\t/a\nend\n", "file\t/a\t\t\t\tregular file\t644\t0\troot\t0\troot\t1\nend\n",
		"file\t/a\t\t" + strings.Repeat("0", 64) + "\t\tregular file\t9\t0\troot\t0\troot\t1\nend\n",
	} {
		if _, err := parse([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// Whatever a machine says, nothing breaks.
func FuzzParse(f *testing.F) {
	if out, err := os.ReadFile("testdata/look.txt"); err == nil {
		f.Add(out)
	}
	f.Add([]byte("swaps\t\nfile\t/a\t\t\t\tabsent\nend\n"))
	want := Spec{Hostname: "a", SwapOff: true, Modules: []string{"overlay"}, Sysctl: map[string]string{"net.ipv4.ip_forward": "1"},
		Time: &Time{}, Timezone: "UTC", Files: map[string]File{"/etc/app/conf": {Digest: Digest("", nil), Owner: "root", Group: "root"}}}
	f.Fuzz(func(t *testing.T, out []byte) {
		facts, err := parse(out)
		if err != nil || facts.answers(want) != nil {
			return
		}
		Table.Diff(want, facts)
		Problems(want, facts)
	})
}
