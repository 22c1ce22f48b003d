//go:build e2e && linux

package packages_test

import (
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/lab"
	"github.com/stokehq/stoke/providers/metal/packages"
)

// slow are packages whose scripts wait for a file, so that a test can cut in.
func slow() []lab.Package {
	wait := func(where string) string {
		return "#!/bin/sh\n: > /run/at-" + where + "\nn=0; until [ -e /run/go ] || [ $n = 200 ]; do sleep 0.1; n=$((n + 1)); done\n"
	}
	first := simple("stoke-first", "1.0")
	unpacked, configured := simple("stoke-unpacked", "1.0"), simple("stoke-configured", "1.0")
	unpacked.Scripts = map[string]string{"preinst": wait("unpack")}
	configured.Scripts = map[string]string{"postinst": wait("configure")}
	return []lab.Package{first, unpacked, configured}
}

// TestCutOff cuts apt off in the middle (TestDestroyedWhileCutOff by the power at
// both places): the next Apply finishes,
// and destroying leaves the machine as it was before the first one.
func TestCutOff(t *testing.T) {
	l := lab.New(t)
	r := l.Repository(slow()...)
	for _, c := range []struct {
		name, at string
		cut      func(m, other *machine)
		alone    bool // apt finishes by itself
	}{
		{"dpkg is killed while it unpacks", "unpack", func(m, _ *machine) { m.Script(`kill -9 $(pidof apt-get dpkg)`) }, false},
		{"power is cut while it configures", "configure", func(m, _ *machine) { m.Crash(); m.PowerOn() }, false},
		{"stoke is killed", "configure", func(_, other *machine) { other.pool.Close() }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			made := l.Machine(strings.ReplaceAll(c.at, " ", "-"), lab.NoMirror())
			before := settled(made)
			m := open(t, made)
			name := map[string]string{"unpack": "stoke-unpacked", "configure": "stoke-configured"}[c.at]
			want := packages.Spec{Owner: "host", Repositories: repository(r), Packages: map[string]packages.Package{"stoke-first": {Hold: true}, name: {Version: "1.*", Hold: true}}}
			st := m.observe(want)
			done := make(chan error, 1)
			other := *m
			other.pool = newPool(t, 0)
			rec, err := host.OpenRecord(m.ctx, other.Remote(), "host")
			if err != nil {
				t.Fatal(err)
			}
			go func() { done <- packages.Apply(m.ctx, other.Remote(), rec, want, st) }()
			m.Script("until [ -e /run/at-" + c.at + " ]; do sleep 0.1; done")
			c.cut(m, &other)
			if err := <-done; err == nil {
				t.Error("it was cut off, and says that it went well")
			} else {
				t.Log("it says:", err)
			}
			m.Exec("touch", "/run/go")
			t.Log("after the cut:", m.diff(want))
			if c.alone {
				m.Script("while pidof apt-get >/dev/null; do sleep 0.2; done")
				if got := m.Exec("dpkg-query", "-W", "-f", "${db:Status-Abbrev}", name); !strings.HasPrefix(got, "ii") {
					t.Errorf("nobody cut apt off, and %s is %q", name, got)
				}
			}
			m.reopen()
			m.apply(want)
			if left := m.restore(); left != "" {
				t.Errorf("left: %s", left)
			}
			if err := m.rec.Delete(m.ctx); err != nil {
				t.Fatal(err)
			}
			if diff := lab.Diff(before, m.Snapshot(), traces...); len(diff) > 0 {
				t.Errorf("after destroying:\n%s", strings.Join(diff, "\n"))
			}
		})
	}
}

// TestDestroyedWhileCutOff destroys what a power cut left, without the repository.
func TestDestroyedWhileCutOff(t *testing.T) {
	l := lab.New(t)
	r := l.Repository(slow()...)
	for _, at := range []string{"unpack", "configure"} {
		t.Run(at, func(t *testing.T) {
			made := l.Machine("cut-"+at, lab.NoMirror())
			before := settled(made)
			m := open(t, made)
			name := map[string]string{"unpack": "stoke-unpacked", "configure": "stoke-configured"}[at]
			want := packages.Spec{Owner: "host", Repositories: repository(r), Packages: map[string]packages.Package{"stoke-first": {}, name: {}}}
			st := m.observe(want)
			other := newPool(t, 0)
			done := make(chan error, 1)
			go func() { done <- packages.Apply(m.ctx, &host.Remote{Pool: other, Target: m.Target()}, m.rec, want, st) }()
			m.Script("until [ -e /run/at-" + at + " ]; do sleep 0.1; done")
			m.Crash()
			<-done
			m.PowerOn()
			m.Script("touch /run/go; echo 'exit 1' >> /var/lib/dpkg/info/stoke-configured.postinst || :; rm -f /etc/apt/sources.list.d/stoke-lab.sources; find /var/lib/apt/lists /var/cache/stoke-host -type f -delete")
			m.reopen()
			if left := m.restore(); left != "" {
				t.Errorf("left: %s", left)
			}
			if err := m.rec.Delete(m.ctx); err != nil {
				t.Fatal(err)
			}
			if diff := lab.Diff(before, m.Snapshot(), traces...); len(diff) > 0 {
				t.Errorf("after destroying:\n%s", strings.Join(diff, "\n"))
			}
		})
	}
}

// TestLeft destroys where somebody has come to need what Apply brought.
func TestLeft(t *testing.T) {
	l := lab.New(t)
	user := simple("their-tool", "1.0")
	user.Fields = map[string]string{"Depends": "stoke-tool"}
	base := simple("stoke-base", "2.0")
	top := simple("stoke-top", "1.0")
	top.Fields = map[string]string{"Depends": "stoke-dep, stoke-dep2"}
	r := l.Repository(user, simple("stoke-tool", "1.0"), base, simple("stoke-base", "3.0"), top, simple("stoke-dep", "1.0"), simple("stoke-dep2", "1.0"))
	made := l.Machine("left", lab.NoMirror())
	old := l.Repository(simple("stoke-base", "1.0"))
	old.AddTo(made)
	made.Exec("apt-get", "install", "-qy", "stoke-base=1.0")
	made.Script("apt-mark auto stoke-base; apt-mark hold stoke-base; rm /etc/apt/sources.list.d/gpg-*.list; apt-get -qq update")
	m := open(t, made)
	want := packages.Spec{Owner: "host", Repositories: repository(r), Packages: map[string]packages.Package{"stoke-tool": {}, "stoke-base": {Version: "2.*"}, "stoke-top": {}}}
	if f := m.foresee(want); len(f.Refusals) > 0 {
		t.Errorf("plan: %+v", f)
	}
	m.apply(want)
	m.Exec("apt-get", "install", "-qy", "their-tool")
	m.Exec("apt-mark", "manual", "stoke-dep")
	left := m.restore()
	for _, says := range []string{
		"package stoke-tool: taking it away would also remove their-tool 1.0",
		"package stoke-base: it stays 2.0: version 1.0, which was there before, can no longer be had",
		"package stoke-dep: it came as a dependency, and was marked as wanted since",
	} {
		if !strings.Contains(left, says) {
			t.Errorf("destroy does not say %q, but %q", says, left)
		}
	}
	state := m.Script(`dpkg-query -W -f '${db:Status-Abbrev} ${Package} ${Version}\n' 'stoke-*' their-tool | sort; apt-mark showauto stoke-tool stoke-base`)
	const wantState = "hi  stoke-base 2.0\nii  stoke-dep 1.0\nii  stoke-tool 1.0\nii  their-tool 1.0\nstoke-base\nstoke-tool"
	if state != wantState {
		t.Errorf("after destroying:\n%s\nwant:\n%s", state, wantState)
	}
	if err := m.rec.Delete(m.ctx); err != nil {
		t.Error(err)
	}
}

// TestOthersRepositories needs what the repositories of others have, of which one
// does not work: that is said, and keeps nobody from what can be done.
func TestOthersRepositories(t *testing.T) {
	l := lab.New(t)
	needs := simple("stoke-tool", "1.0")
	needs.Fields = map[string]string{"Depends": "their-dep"}
	r := l.Repository(needs)
	theirs := l.Repository(simple("their-dep", "1.0"))
	made := l.Machine("others", lab.NoMirror())
	theirs.AddTo(made)
	made.Script("printf 'deb [trusted=yes] http://%s:9/ /\\n' 127.0.0.1 > /etc/apt/sources.list.d/dead.list; echo 'Acquire::http::Proxy::127.0.0.1 \"DIRECT\";' > /etc/apt/apt.conf.d/02dead")
	m := open(t, made)

	t.Log("apt's lists are older than the other's repository")
	theirs.Withdraw(simple("their-dep", "1.0"))
	theirs.Publish(simple("their-dep", "1.1"))
	want := packages.Spec{Owner: "host", Repositories: repository(r), Packages: map[string]packages.Package{"stoke-tool": {}}}
	m.apply(want)
	if got := m.Exec("dpkg-query", "-W", "-f", "${Version}", "their-dep"); got != "1.1" {
		t.Errorf("their-dep is %s", got)
	}
	t.Log("apt has no lists, as in a fresh image")
	m.Script("apt-get purge -qy stoke-tool their-dep; find /var/lib/apt/lists -type f -delete")
	m.apply(want)

	t.Log("a version that nobody has")
	want.Packages["stoke-tool"] = packages.Package{Version: "2.*"}
	err := m.try(want)
	for _, says := range []string{"no version of stoke-tool is 2.*: there are 1.0", "a repository does not work: http://127.0.0.1:9/InRelease", "it cannot be reached"} {
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want %q: %v", says, err)
		}
	}
	if left := m.restore(); !strings.HasPrefix(left, "apt's lists: they were refreshed") {
		t.Errorf("left: %s", left)
	}
}
