//go:build e2e && linux

package packages_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/lab"
	"github.com/stokehq/stoke/providers/metal/packages"
)

// unit makes a maintainer script deal with systemd, as debhelper's do.
const unit = "#!/bin/sh\nset -e\nif [ -d /run/systemd/system ]; then systemctl --system daemon-reload >/dev/null; fi\n"

func demo(version string, depends string) lab.Package {
	p := lab.Package{Name: "stoke-kubelet", Version: version, Fields: map[string]string{"Depends": "stoke-cni"},
		Files: map[string]string{"/usr/bin/stoke-kubelet": "#!/bin/sh\necho " + version + "\n", "/etc/stoke-kubelet.conf": "version=" + version + "\n"}, Conffiles: []string{"/etc/stoke-kubelet.conf"}}
	if depends != "" {
		p.Fields["Depends"] = depends
	}
	return p
}

func simple(name, version string) lab.Package {
	return lab.Package{Name: name, Version: version, All: true, Files: map[string]string{"/usr/share/" + name + "/version": version + "\n"}}
}

// machine is a machine with a record, and what is asked of it.
type machine struct {
	*lab.Machine
	t    *testing.T
	rec  *host.Record
	ctx  context.Context
	pool *ssh.Pool
}

// Remote is patient, as the provider's is: machines reboot.
func (m *machine) Remote() *host.Remote { return &host.Remote{Pool: m.pool, Target: m.Target()} }

func open(t *testing.T, m *lab.Machine) *machine {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	ctx = providers.WithCall(ctx, &providers.Call{Progress: func(p providers.Progress) {
		if p.Step+p.Line != "" {
			t.Logf("  %s%s", p.Step, p.Line)
		}
	}})
	open := &machine{Machine: m, t: t, ctx: ctx, pool: newPool(t, time.Minute)}
	var err error
	if open.rec, err = host.NewRecord(ctx, open.Remote(), "host", "id", "metal_host.test"); err != nil {
		t.Fatal(err)
	}
	return open
}

// settled is a snapshot of a machine that has finished starting.
func settled(m *lab.Machine) lab.Snapshot {
	m.Script("systemctl is-system-running --wait >/dev/null || :")
	return m.Snapshot()
}

func newPool(t *testing.T, patience time.Duration) *ssh.Pool {
	p := &ssh.Pool{Patience: patience}
	t.Cleanup(p.Close)
	return p
}

// reopen reads the record as another process would.
func (m *machine) reopen() {
	m.t.Helper()
	var err error
	if m.rec, err = host.OpenRecord(m.ctx, m.Remote(), "host"); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) observe(want packages.Spec) packages.State {
	m.t.Helper()
	st, err := packages.Observe(m.ctx, m.Remote(), want)
	if err != nil {
		m.t.Fatalf("observe: %v", err)
	}
	return st
}

func (m *machine) foresee(want packages.Spec) packages.Forecast {
	m.t.Helper()
	f, err := packages.Foresee(m.ctx, m.Remote(), want, m.observe(want))
	if err != nil {
		m.t.Fatalf("foresee: %v", err)
	}
	return f
}

func (m *machine) try(want packages.Spec) error {
	m.t.Helper()
	return packages.Apply(m.ctx, m.Remote(), m.rec, want, m.observe(want))
}

// apply applies and checks that nothing is left to do.
func (m *machine) apply(want packages.Spec) {
	m.t.Helper()
	if err := m.try(want); err != nil {
		m.t.Fatalf("apply: %v", err)
	}
	if changes := m.diff(want); changes != "" {
		m.t.Fatalf("after apply: %s", changes)
	}
}

func (m *machine) diff(want packages.Spec) string {
	m.t.Helper()
	var all []string
	for _, c := range packages.Diff(want, m.observe(want)) {
		all = append(all, c.Fact+": "+c.Have+" → "+c.Want)
	}
	return strings.Join(all, "; ")
}

func (m *machine) restore() string {
	m.t.Helper()
	outcomes, err := packages.Restore(m.ctx, m.Remote(), m.rec)
	if err != nil {
		m.t.Fatalf("restore: %v", err)
	}
	var left []string
	for _, o := range outcomes {
		m.t.Logf("  %s: %s %s", o.Fact, o.Fate, o.Why)
		if o.Fate == host.Left && o.Fact != "logs of apt and dpkg" {
			left = append(left, o.Fact+": "+o.Why)
		}
	}
	return strings.Join(left, "; ")
}

// traces are what Restore says it leaves: dpkg's own backups, and apt's lists of
// the mirror, which were read when lists had to be.
var traces = []string{"content /var/log/...", "file /var/log/...", "content /var/lib/dpkg/...", "content /var/lib/apt/...", "file /var/lib/apt/...", "content /var/cache/...", "file /var/cache/...", "file /var/lib/dpkg/..."}

func repository(r *lab.Repository) map[string]packages.Repository {
	return map[string]packages.Repository{"lab": {URIs: []string{r.URL}, Suites: []string{"/"}, Key: packages.Key{URL: r.KeyURL}, Fingerprints: []string{r.Fingerprint}}}
}

func TestLife(t *testing.T) {
	l := lab.New(t)
	r := l.Repository(demo("1.36.3-1.1", ""), demo("1.36.4-1.1", ""), simple("stoke-cni", "1.6.0-1.1"), simple("stoke-tool", "1.0"), simple("stoke-old", "1.0"))
	made := l.Machine("life", lab.NoMirror())
	old := l.Repository(simple("stoke-old", "0.9"), simple("stoke-gone", "1.0"))
	old.AddTo(made)
	made.Exec("apt-get", "install", "-qy", "stoke-old", "stoke-gone")
	before := settled(made)
	m := open(t, made)

	want := packages.Spec{Owner: "host", Repositories: repository(r), Packages: map[string]packages.Package{
		"stoke-kubelet": {Version: "1.36.3-*", Hold: true, Exclude: true}, "stoke-tool": {}, "stoke-old": {Version: "1.*"},
	}, Absent: []string{"stoke-gone"}}

	t.Log("plan before the repository is there")
	f := m.foresee(want)
	if len(f.Refusals)+len(f.Missing) > 0 || len(f.Doubtful) == 0 || !strings.Contains(f.Doubtful[0].Why, "does not have repository lab yet") {
		t.Errorf("forecast: %+v", f)
	}
	t.Log("create")
	m.apply(want)
	if got := m.Exec("stoke-kubelet"); got != "1.36.3-1.1" {
		t.Errorf("installed is %s", got)
	}
	m.reopen()
	if f := m.foresee(want); len(f.Actions)+len(f.Refusals)+len(f.Notes) > 0 {
		t.Errorf("there is nothing to do, and still: %+v", f)
	}
	m.Reboot()
	if d := m.diff(want); d != "" {
		t.Errorf("after a reboot: %s", d)
	}
	drift(t, m, r, want)

	t.Log("change")
	m.Script("echo edited > /etc/stoke-kubelet.conf")
	want.Packages["stoke-kubelet"] = packages.Package{Version: "1.36.4-*", Hold: true}
	delete(want.Packages, "stoke-tool")
	if f := m.foresee(want); len(f.Actions) != 1 || f.Actions[0].String() != "upgrade stoke-kubelet 1.36.3-1.1 → 1.36.4-1.1" || len(f.Refusals) > 0 {
		t.Errorf("forecast: %+v", f)
	}
	m.apply(want)
	if out, err := m.Try("dpkg-query", "-W", "stoke-tool"); err == nil {
		t.Errorf("stoke-tool is no longer declared, and still there: %s", out)
	}

	if got := m.Exec("cat", "/etc/stoke-kubelet.conf"); got != "edited" {
		t.Errorf("a configuration file that people changed is now %q", got)
	}
	t.Log("a dependency that came in has to be upgraded")
	r.Publish(demo("1.37.0-1.1", "stoke-cni (>= 2)"), simple("stoke-cni", "2.0"))
	want.Packages["stoke-kubelet"] = packages.Package{Version: "1.37.*", Hold: true}
	if f := m.foresee(want); len(f.Refusals)+len(f.Missing)+len(f.Doubtful) > 0 || len(f.Notes) == 0 || !strings.Contains(f.Notes[0], "new ones have stoke-kubelet 1.37.0-1.1") {
		t.Errorf("old lists: %+v", f)
	}
	misspelled := packages.Spec{Owner: "host", Repositories: want.Repositories, Packages: map[string]packages.Package{"stoke-kubblet": {}, "stoke-cni": {Version: "9.*"}}}
	if f := m.foresee(misspelled); len(f.Missing) != 2 || !strings.Contains(f.Missing[0].Why, "no version of stoke-cni is 9.*: there are 2.0, 1.6.0-1.1") || !strings.Contains(f.Missing[1].Why, "stoke-kubblet is in none") {
		t.Errorf("what no repository has: %+v", f)
	}
	m.Exec("apt-get", "-qq", "update")
	if f := m.foresee(want); len(f.Actions) != 2 || len(f.Refusals)+len(f.Notes) > 0 {
		t.Errorf("new lists: %+v", f)
	}
	m.apply(want)

	t.Log("destroy")
	if left := m.restore(); left != "configuration of package stoke-kubelet: not as the package had it: /etc/stoke-kubelet.conf; apt-get purge stoke-kubelet deletes it" {
		t.Errorf("left: %s", left)
	}
	if err := m.rec.Delete(m.ctx); err != nil {
		t.Fatal(err)
	}
	if got := m.Exec("cat", "/etc/stoke-kubelet.conf"); got != "edited" {
		t.Errorf("a configuration file that people changed is %q after destroying", got)
	}
	m.Exec("apt-get", "-qq", "-y", "purge", "stoke-kubelet")
	if diff := lab.Diff(before, m.Snapshot(), traces...); len(diff) > 0 {
		t.Errorf("after destroying:\n%s", strings.Join(diff, "\n"))
	}
}

// drift makes every kind of fact differ by hand, and fixes it.
func drift(t *testing.T, m *machine, r *lab.Repository, want packages.Spec) {
	other := r.Fingerprint
	for _, c := range []struct{ name, script, want string }{
		{"removed", "apt-get purge -qy stoke-tool", "package stoke-tool:"},
		{"upgraded", "apt-get install -qy --allow-change-held-packages stoke-kubelet=1.36.4-1.1", "package stoke-kubelet: 1.36.4-1.1 → 1.36.3-*"},
		{"hold removed", "apt-mark unhold stoke-kubelet", "hold of stoke-kubelet: false → true"},
		{"held", "apt-mark hold stoke-tool", "hold of stoke-tool: true → false"},
		{"came back", "printf 'deb [trusted=yes] %s /\\n' > /dev/null; apt-get install -qy stoke-gone", "package stoke-gone: 1.0 →"},
		{"dependency removed by force", "dpkg --force-all --purge stoke-cni; apt-mark unhold stoke-kubelet; dpkg --force-all --purge stoke-kubelet; dpkg -r stoke-tool", "package stoke-kubelet:"},
		{"repository edited", "sed -i 's/^Suites: .*/Suites: nowhere/' /etc/apt/sources.list.d/stoke-lab.sources", "repository lab suites: nowhere → /"},
		{"repository removed", "rm /etc/apt/sources.list.d/stoke-lab.sources", "repository lab uris"},
		{"key replaced", "head -c 40 /etc/apt/keyrings/stoke-lab.gpg > /x; mv /x /etc/apt/keyrings/stoke-lab.gpg", "repository lab fingerprints: unreadable → " + other},
		{"pins edited", "echo > /etc/apt/preferences.d/stoke-host.pref", "version pins"},
		{"exclusion edited", "rm /etc/apt/apt.conf.d/95stoke-host-exclude", "exclusion from unattended-upgrades: none"},
		{"mode", "chmod 600 /etc/apt/sources.list.d/stoke-lab.sources", "mode 600"},
	} {
		m.Script(c.script)
		if d := m.diff(want); !strings.Contains(d, c.want) {
			t.Errorf("drift %s: diff says %q, want %q", c.name, d, c.want)
		}
		t.Log("drift:", c.name)
		m.apply(want)
	}
}

func TestRefused(t *testing.T) {
	l := lab.New(t)
	ousting := simple("stoke-runtime", "2.0")
	ousting.Fields = map[string]string{"Conflicts": "stoke-engine", "Provides": "stoke-engine"}
	service := simple("stoke-service", "1.0")
	service.Scripts = map[string]string{"postinst": unit}
	needs := simple("stoke-needs", "1.0")
	needs.Fields = map[string]string{"Depends": "stoke-service"}
	r := l.Repository(simple("stoke-engine", "1.0"), ousting, service, needs)
	m := open(t, l.Machine("refused", lab.NoMirror()))
	r.AddTo(m.Machine)
	m.Exec("apt-get", "install", "-qy", "stoke-engine")

	want := packages.Spec{Owner: "host", Packages: map[string]packages.Package{"stoke-runtime": {Version: "2.*"}}}
	const says = "remove stoke-engine 1.0, which is not declared"
	if f := m.foresee(want); len(f.Refusals) != 1 || !strings.Contains(f.Refusals[0], says) {
		t.Errorf("plan: %+v", f)
	}
	var refused *packages.RefusedError
	if err := m.try(want); !errors.As(err, &refused) || !strings.Contains(err.Error(), says) {
		t.Errorf("apply: %v", err)
	}
	m.Exec("dpkg-query", "-W", "stoke-engine")
	want.Absent = []string{"stoke-engine"}
	if f := m.foresee(want); len(f.Refusals) != 0 {
		t.Errorf("declared, and still refused: %+v", f)
	}
	m.apply(want)

	t.Log("two keys for one repository")
	want.Repositories = repository(r)
	if f := m.foresee(want); len(f.Refusals) != 1 || !strings.Contains(f.Refusals[0], "while one repository has two keys") {
		t.Errorf("plan: %+v", f)
	}
	if err := m.try(want); !errors.As(err, &refused) {
		t.Errorf("apply: %v", err)
	}
	want.Repositories = nil

	t.Log("more than was planned is interrupted")
	limit := host.None
	want.Packages["stoke-needs"], want.Limit = packages.Package{}, &limit
	if f := m.foresee(want); f.Disruption != host.None {
		t.Errorf("nobody can know yet, and still: %+v", f)
	}
	var beyond *packages.LimitError
	if err := m.try(want); !errors.As(err, &beyond) {
		t.Errorf("apply: %v", err)
	}
	f := m.foresee(want)
	if f.Disruption != host.ReloadsSystemd || !strings.Contains(f.Because, "stoke-service") {
		t.Errorf("downloaded, and still: %+v", f)
	}
	limit = f.Disruption
	m.apply(want)
	if left := m.restore(); left != "" {
		t.Errorf("left: %s", left)
	}
	if got := m.Exec("dpkg-query", "-W", "-f", "${Package} ${Version}", "stoke-engine"); got != "stoke-engine 1.0" {
		t.Errorf("stoke-engine is %q", got)
	}
}

func TestKeys(t *testing.T) {
	l := lab.New(t)
	r := l.Repository(simple("stoke-tool", "1.0"))
	m := open(t, l.Machine("keys", lab.NoMirror()))
	want := packages.Spec{Owner: "host", Repositories: repository(r), Packages: map[string]packages.Package{"stoke-tool": {}}}

	other := strings.Repeat("A", 40)
	want.Repositories["lab"] = packages.Repository{URIs: []string{r.URL}, Suites: []string{"/"}, Key: packages.Key{URL: r.KeyURL}, Fingerprints: []string{other}}
	var wrong *packages.KeyError
	if err := m.try(want); !errors.As(err, &wrong) || !strings.Contains(err.Error(), other) || !strings.Contains(err.Error(), r.Fingerprint) {
		t.Errorf("another key: %v", err)
	}
	if out, err := m.Try("ls", "/etc/apt/sources.list.d/stoke-lab.sources"); err == nil {
		t.Errorf("the repository was added with a key that nobody declared: %s", out)
	}
	want.Repositories = repository(r)
	m.apply(want)

	t.Log("the publisher signs with another key")
	r.NewKey()
	r.Publish(simple("stoke-tool", "2.0"))
	want.Packages["stoke-tool"] = packages.Package{Version: "2.*"}
	var update *packages.UpdateError
	if err := m.try(want); !errors.As(err, &update) || !strings.Contains(err.Error(), "signed by another key") {
		t.Errorf("signed by another key: %v", err)
	}
	want.Repositories = repository(r)
	m.apply(want)

	t.Log("inline key, repository with suites")
	want.Repositories["lab"] = packages.Repository{URIs: []string{r.URL}, Suites: []string{"bookworm"}, Components: []string{"main"}, Key: packages.Key{Inline: r.Key}, Fingerprints: []string{r.Fingerprint}}
	m.apply(want)
	if left := m.restore(); left != "" {
		t.Errorf("left: %s", left)
	}
	if got := m.Script("ls /etc/apt/keyrings /etc/apt/sources.list.d /var/lib/apt/lists | grep -c '" + strings.Split(strings.TrimPrefix(r.URL, "http://"), "/")[0] + "\\|stoke' || :"); got != "0" {
		t.Errorf("%s files of the repository are left", got)
	}
	t.Log("a repository that is down")
	want.Repositories["lab"] = packages.Repository{URIs: []string{"http://192.0.2.1:9/"}, Suites: []string{"/"}, Key: packages.Key{Inline: r.Key}, Fingerprints: []string{r.Fingerprint}}
	want.Proxy = &packages.Proxy{HTTP: "http://127.0.0.1:9", Direct: []string{"10.0.0.0/8"}}
	if err := m.try(want); !errors.As(err, &update) || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("a repository that is down: %v", err)
	}
}

func TestLocked(t *testing.T) {
	l := lab.New(t)
	r := l.Repository(simple("stoke-tool", "1.0"))
	m := open(t, l.Machine("locked", lab.NoMirror()))
	m.Exec("systemd-run", "--unit", "holder", "python3", "-c", "import fcntl,time\nf=open('/var/lib/dpkg/lock-frontend','w')\nfcntl.lockf(f,fcntl.LOCK_EX)\nopen('/run/held','w')\ntime.sleep(600)")
	m.Script("until [ -e /run/held ]; do sleep 0.1; done")
	want := packages.Spec{Owner: "host", Repositories: repository(r), Packages: map[string]packages.Package{"stoke-tool": {}}, Patience: 10 * time.Second}
	if f := m.foresee(want); !strings.Contains(strings.Join(f.Notes, "; "), "apt is in use by /usr/bin/python3") {
		t.Errorf("plan: %+v", f)
	}
	var locked *packages.LockedError
	if err := m.try(want); !errors.As(err, &locked) || !strings.Contains(err.Error(), "python3") {
		t.Errorf("locked: %v", err)
	}
	want.Patience = time.Minute
	done := make(chan error, 1)
	st := m.observe(want)
	go func() { done <- packages.Apply(m.ctx, m.Remote(), m.rec, want, st) }()
	time.Sleep(3 * time.Second)
	m.Exec("systemctl", "stop", "holder")
	if err := <-done; err != nil {
		t.Errorf("after the lock was given back: %v", err)
	}
}

func TestDiskFull(t *testing.T) {
	l := lab.New(t)
	large := simple("stoke-large", "1.0")
	large.Files["/usr/share/stoke-large/data"] = strings.Repeat("0123456789abcdef\n", 1<<20)
	r := l.Repository(large)
	m := open(t, l.Machine("full", lab.NoMirror(), lab.Disk("60M")))
	want := packages.Spec{Owner: "host", Repositories: repository(r), Packages: map[string]packages.Package{"stoke-large": {}}}
	m.Script("f=$(df --output=avail -k / | tail -1); dd if=/dev/zero of=/filler bs=1k count=$((f - 9000)) 2>/dev/null")
	if err := m.try(want); err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("full disk: %v", err)
	} else {
		t.Log("it says:", err)
	}
	m.Exec("rm", "/filler")
	m.apply(want)
	if left := m.restore(); left != "" {
		t.Errorf("left: %s", left)
	}
}

func TestBrokenScripts(t *testing.T) {
	l := lab.New(t)
	bad := simple("stoke-bad", "1.0")
	bad.Scripts = map[string]string{"postinst": "#!/bin/sh\n[ -e /good ] || { echo 'stoke-bad: cannot start' >&2; exit 3; }\n"}
	r := l.Repository(bad, simple("stoke-tool", "1.0"))
	made := l.Machine("broken", lab.NoMirror())
	before := settled(made)
	m := open(t, made)
	want := packages.Spec{Owner: "host", Repositories: repository(r), Packages: map[string]packages.Package{"stoke-bad": {Version: "1.0"}, "stoke-tool": {}}}
	err := m.try(want)
	if err == nil || !strings.Contains(err.Error(), "maintainer scripts of stoke-bad fail") || !strings.Contains(err.Error(), "cannot start") {
		t.Errorf("failing script: %v", err)
	}
	if d := m.diff(want); !strings.Contains(d, "dpkg: stoke-bad (half-configured) → finished") {
		t.Errorf("diff: %s", d)
	}
	if err := m.try(want); err == nil || !strings.Contains(err.Error(), "stoke-bad") {
		t.Errorf("still failing: %v", err)
	}
	m.Exec("touch", "/good")
	m.apply(want)
	t.Log("breaks again, and is destroyed as it is")
	m.Exec("rm", "/good")
	if out, err := m.Try("dpkg-reconfigure", "stoke-bad"); err == nil {
		t.Errorf("reconfigure worked: %s", out)
	}
	if left := m.restore(); left != "" {
		t.Errorf("left: %s", left)
	}
	if err := m.rec.Delete(m.ctx); err != nil {
		t.Fatal(err)
	}
	if diff := lab.Diff(before, m.Snapshot(), traces...); len(diff) > 0 {
		t.Errorf("after destroying:\n%s", strings.Join(diff, "\n"))
	}
}
