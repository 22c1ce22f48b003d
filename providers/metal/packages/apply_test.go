package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// double is a machine whose apt says what the test wants. What it was asked to
// change is in did.
type double struct {
	*hosttest.Machine
	state    string            // of observeScript, but for files and records
	simulate map[string]string // output of a simulation, by a word of its arguments
	install  func(args []string) hosttest.Answer
	locked   int // rounds for which somebody holds the lock
	update   string
	key      string // what the key's URL has
	offered  string // of offeredScript
	edited   string // of editedScript
	did      []string
}

func (d *double) answer(cmd host.Command) (hosttest.Answer, bool) {
	if len(cmd.Args) < 4 || cmd.Args[0] != "sh" {
		return hosttest.Answer{}, cmd.Args[0] == "env" || cmd.Args[0] == "rm" && cmd.Args[1] == "-rf"
	}
	args := strings.Join(cmd.Args[4:], " ")
	switch cmd.Args[2] {
	case observeScript:
		return hosttest.Answer{Stdout: "os\tdebian\napt\tamd64\n" + d.state + d.files(cmd.Args[5:]) + "end\n"}, true
	case waitScript:
		if d.locked--; d.locked >= 0 {
			return hosttest.Answer{Stdout: "lock\t/var/lib/dpkg/lock-frontend\t812\t/usr/bin/python3 /usr/bin/unattended-upgrade\nend\n"}, true
		}
		return hosttest.Answer{Stdout: "end\n"}, true
	case editedScript:
		return hosttest.Answer{Stdout: d.edited + "end\n"}, true
	case dropListsScript:
		return hosttest.Answer{}, true
	case fetchScript:
		return hosttest.Answer{Stdout: d.key}, true
	case refreshScript, `"$@" 2>&1`:
		d.did = append(d.did, "refresh")
		return hosttest.Answer{Stdout: d.update, Status: 100 * min(1, len(d.update))}, true
	case offeredScript:
		return hosttest.Answer{Stdout: d.offered}, true
	case simulateScript:
		for word, out := range d.simulate {
			if strings.Contains(args, word) {
				return hosttest.Answer{Stdout: out, Status: 100 * strings.Count(out, "E: ")}, true
			}
		}
		return hosttest.Answer{}, true
	case transactionScript:
		i := slices.IndexFunc(cmd.Args, func(a string) bool { return a == "apt-get" || a == "dpkg" })
		d.did = append(d.did, strings.Join(cmd.Args[i:], " "))
		if d.install == nil {
			return hosttest.Answer{}, true
		}
		return d.install(cmd.Args[i:]), true
	}
	return hosttest.Answer{}, false
}

func newDouble(t *testing.T) (*double, *host.Record) {
	d := &double{Machine: &hosttest.Machine{}}
	d.Answer = d.answer
	rec, err := host.NewRecord(context.Background(), d, "host", "id", "metal_host.a")
	if err != nil {
		t.Fatal(err)
	}
	return d, rec
}

const jqState = "policy\tjq:\npolicy\t  Candidate: 1.6\npolicy\t  Version table:\npolicy\t     1.6 500\npolicy\t        500 http://deb.example.org/debian bookworm/main amd64 Packages\n"

func (d *double) try(rec *host.Record, want Spec) error {
	ctx := context.Background()
	st, err := Observe(ctx, d, want)
	if err != nil {
		return err
	}
	return Apply(ctx, d, rec, want, st)
}

func TestApplyInstalls(t *testing.T) {
	d, rec := newDouble(t)
	d.state = jqState
	d.simulate = map[string]string{"jq=1.6": "Inst libjq1 (1.6 Debian:12/oldstable [amd64])\nInst jq (1.6 Debian:12/oldstable [amd64])\n"}
	d.install = func([]string) hosttest.Answer {
		d.state = "pkg\tii \tok\tjq\tamd64\t1.6\npkg\tii \tok\tlibjq1\tamd64\t1.6\nauto\tlibjq1\tamd64\n" + jqState
		return hosttest.Answer{}
	}
	if err := d.try(rec, Spec{Owner: "host", Packages: map[string]Package{"jq": {}}}); err != nil {
		t.Fatal(err)
	}
	const want = "apt-get -y -q -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold " +
		"install -o Dir::Cache::archives=/var/cache/stoke-host --no-install-recommends jq=1.6"
	if diff := cmp.Diff([]string{want}, d.did); diff != "" {
		t.Error(diff)
	}
	all, err := recorded(rec)
	if diff := cmp.Diff(map[string]priorPackage{"jq": {Now: "1.6", Asked: true, Declared: true}, "libjq1": {Now: "1.6"}}, all); diff != "" || err != nil {
		t.Errorf("the record: %v %s", err, diff)
	}
}

// TestApplyRefuses lets apt say things that must keep anything from being changed.
func TestApplyRefuses(t *testing.T) {
	other := testdata(t, "key-rsa.asc")
	repository := map[string]Repository{"lab": {URIs: []string{"http://lab.example.org"}, Suites: []string{"/"}, Key: Key{URL: "http://lab.example.org/key.asc"}, Fingerprints: []string{printEd25519}}}
	jq := map[string]Package{"jq": {}}
	for _, c := range []struct {
		name   string
		want   Spec
		double double
		says   string
		as     any
	}{
		{"an undeclared removal", Spec{Owner: "host", Packages: jq}, double{state: jqState, simulate: map[string]string{"jq": "Remv docker.io [20]\nInst jq (1.6 Debian [amd64])\n"}},
			"remove docker.io 20, which is not declared", new(*RefusedError)},
		{"a package that the system cannot be without", Spec{Owner: "host", Packages: jq, Absent: []string{"login"}}, double{state: "pkg\tii \tok\tlogin\tamd64\t4\n" + jqState,
			simulate: map[string]string{"login-": "WARNING: The following essential packages will be removed.\nThis should NOT be done unless you know exactly what you are doing!\n  login\n0 upgraded\nRemv login [4]\nInst jq (1.6 Debian [amd64])\n"}},
			"remove login 4, which is essential", new(*RefusedError)},
		{"the machine's own architecture", Spec{Owner: "host", Packages: map[string]Package{"jq:amd64": {}}}, double{state: "apt\tamd64\n" + jqState}, "jq:amd64 is declared as jq", new(*RefusedError)},
		{"a simulation that cannot be read", Spec{Owner: "host", Packages: jq}, double{state: jqState, simulate: map[string]string{"jq": "Remv docker.io\nInst jq (1.6 Debian [amd64])\n"}},
			`"Remv docker.io" has no version`, nil},
		{"more than was planned", Spec{Owner: "host", Packages: jq, Limit: new(host.Disruption)}, double{state: jqState, simulate: map[string]string{"jq": "Inst cron (3.0 Debian [amd64])\nInst jq (1.6 Debian [amd64])\n"}},
			"to install cron 3.0 reloads systemd, and the plan allowed none", new(*LimitError)},
		{"no such package", Spec{Owner: "host", Packages: map[string]Package{"nosuch": {}}}, double{}, "nosuch is in none of the repositories", new(*RefusedError)},
		{"dependencies that cannot be had", Spec{Owner: "host", Packages: jq}, double{state: jqState, simulate: map[string]string{"jq": " jq : Depends: libjq1 but it is not installable\nE: Unable to correct problems\n"}},
			"jq Depends: libjq1 but it is not installable", new(*ImpossibleError)},
		{"another key", Spec{Owner: "host", Repositories: repository}, double{key: other}, printRSA, new(*KeyError)},
		{"a web page for a key", Spec{Owner: "host", Repositories: repository}, double{key: "<html>log in</html>"}, `begins with "<html>log in`, nil},
		{"a repository that is down", Spec{Owner: "host", Repositories: repository}, double{key: testdata(t, "key-ed25519.asc"), update: "E: Failed to fetch http://lab.example.org/InRelease  Could not resolve 'lab.example.org'\n"},
			"cannot resolve the name", new(*UpdateError)},
		{"a lock that is not given back", Spec{Owner: "host", Packages: jq, Patience: 30 * time.Second}, double{state: jqState, locked: 3}, "unattended-upgrade (process 812", new(*LockedError)},
		{"no apt", Spec{Owner: "host", Packages: jq}, double{state: "os\trocky\n"}, `this is "rocky"`, new(UnsupportedError)},
	} {
		d, rec := newDouble(t)
		d.state, d.simulate, d.key, d.update, d.locked = c.double.state, c.double.simulate, c.double.key, c.double.update, c.double.locked
		err := d.try(rec, c.want)
		if err == nil || !strings.Contains(err.Error(), c.says) || c.as != nil && !errors.As(err, c.as) {
			t.Errorf("%s: %T %v, want %q", c.name, err, err, c.says)
		}
		for _, did := range d.did {
			if did != "refresh" && !strings.Contains(did, "--download-only") {
				t.Errorf("%s: it ran %s", c.name, did)
			}
		}
		if _, there := d.Files[sourcesFile("lab")]; there && c.double.update == "" {
			t.Errorf("%s: the repository was added", c.name)
		}
	}
}

func TestApplyWaitsForTheLock(t *testing.T) {
	d, rec := newDouble(t)
	d.state, d.locked = "pkg\tii \tok\tjq\tamd64\t1.6\n"+jqState, 2
	if err := d.try(rec, Spec{Owner: "host", Packages: map[string]Package{"jq": {}}, Patience: 30 * time.Second}); err != nil {
		t.Error(err)
	}
}

func TestForesee(t *testing.T) {
	d, _ := newDouble(t)
	ctx := context.Background()
	d.simulate = map[string]string{"jq": "Inst rpcbind (1.2 Debian [amd64])\nInst jq (1.6 Debian [amd64])\n"}
	d.state = jqState
	want := Spec{Owner: "host", Packages: map[string]Package{"jq": {}, "kubelet": {Version: "1.36.*"}}}
	st, err := Observe(ctx, d, want)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Foresee(ctx, d, want, st)
	if err != nil || f.Disruption != host.ReloadsSystemd || len(f.Refusals) > 0 || len(f.Actions) != 2 {
		t.Errorf("%+v %v", f, err)
	}
	if len(f.Missing) > 0 || len(f.Doubtful) != 1 || f.Doubtful[0].Package != "kubelet" || !strings.Contains(f.Doubtful[0].Why, "package kubelet is in none of the repositories") {
		t.Errorf("of a machine that does not answer it says %+v", f)
	}
	for _, ran := range d.Ran {
		if strings.Contains(ran, "stoke-lists") {
			continue // a copy of the lists
		}
		if strings.Contains(ran, "apt-get") && !strings.Contains(ran, "'apt-get' '-s'") && !strings.Contains(ran, "apt-get -s") && !strings.Contains(ran, "command -v apt-get") {
			t.Errorf("a plan ran %s", ran)
		}
	}
}

// What no repository has is an error already while planning; what one may have
// that is still to come, or cannot be read, is not.
func TestForeseeWhatCannotBeHad(t *testing.T) {
	policy := func(version string) string {
		return strings.ReplaceAll(jqState, "1.6", version)
	}
	lab := map[string]Repository{"lab": {URIs: []string{"http://lab.example.org"}, Suites: []string{"/"}, Key: Key{URL: "http://lab.example.org/key.asc"}, Fingerprints: []string{printEd25519}}}
	for _, c := range []struct {
		name                     string
		want                     Spec
		offered                  string
		missing, doubtful, notes string
	}{
		{"no such name", Spec{Packages: map[string]Package{"jqq": {}}}, "update\tHit:1 http://deb.example.org/debian bookworm InRelease\nstatus\t0\nend\n",
			"package jqq is in none of the repositories", "", ""},
		{"no such version", Spec{Packages: map[string]Package{"jq": {Version: "1.8*"}}}, policy("1.7") + "status\t0\nend\n",
			"no version of jq is 1.8*: there are 1.7, 1.6", "", ""},
		{"a version that is newer than the lists", Spec{Packages: map[string]Package{"jq": {Version: "1.7"}}}, policy("1.7") + "status\t0\nend\n",
			"", "", "new ones have jq 1.7"},
		{"a repository to come", Spec{Repositories: lab, Packages: map[string]Package{"jqq": {}}}, "",
			"", "does not have repository lab yet", ""},
		{"a repository that does not work", Spec{Packages: map[string]Package{"jqq": {}}}, "update\tE: Failed to fetch http://deb.example.org/InRelease  Could not resolve 'deb.example.org'\nstatus\t100\nend\n",
			"", "the machine cannot resolve the name", ""},
		{"lists that take too long", Spec{Packages: map[string]Package{"jqq": {}}}, "status\t124\nend\n",
			"", "ended with status 124", ""},
		{"half an answer", Spec{Packages: map[string]Package{"jqq": {}}}, "update\tHit:1\n", "", "only a part", ""},
	} {
		d, _ := newDouble(t)
		d.state, d.offered, c.want.Owner = jqState, c.offered, "host"
		st, err := Observe(context.Background(), d, c.want)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Foresee(context.Background(), d, c.want, st)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for _, x := range []struct{ what, want, got string }{
			{"missing", c.missing, fmt.Sprint(f.Missing)}, {"doubtful", c.doubtful, fmt.Sprint(f.Doubtful)}, {"notes", c.notes, fmt.Sprint(f.Notes)},
		} {
			if x.want == "" && x.got != "[]" || !strings.Contains(x.got, x.want) {
				t.Errorf("%s: %s: %s, want %q", c.name, x.what, x.got, x.want)
			}
		}
	}
}

func TestUndoPlan(t *testing.T) {
	for _, c := range []struct {
		name string
		w    priorPackage
		p    Installed
		want string
	}{
		{"came in", priorPackage{Now: "1", Asked: true}, Installed{Status: 'i', Version: "1"}, "purge"},
		{"came in and was upgraded since", priorPackage{Now: "1", Asked: true}, Installed{Status: 'i', Version: "2"}, "purge"},
		{"came in, where configuration was left", priorPackage{Config: true, Now: "1", Asked: true}, Installed{Status: 'i', Version: "1"}, "remove"},
		{"a dependency", priorPackage{Now: "1"}, Installed{Status: 'i', Version: "1", Auto: true}, "purge"},
		{"a dependency that somebody asked for", priorPackage{Now: "1"}, Installed{Status: 'i', Version: "1"}, "left"},
		{"a dependency, cut off before it was marked", priorPackage{Open: true}, Installed{Status: 'U', Version: "1"}, "purge"},
		{"upgraded", priorPackage{Version: "1", Now: "2", Asked: true}, Installed{Status: 'i', Version: "2", Versions: []string{"2", "1"}}, "install 1"},
		{"upgraded, gone from the repository", priorPackage{Version: "1", Now: "2", Asked: true}, Installed{Status: 'i', Version: "2", Versions: []string{"2"}}, "left"},
		{"upgraded, and by somebody again", priorPackage{Version: "1", Now: "2", Asked: true}, Installed{Status: 'i', Version: "3", Versions: []string{"3", "2", "1"}}, "left"},
		{"untouched", priorPackage{Version: "1", Now: "1", Asked: true}, Installed{Status: 'i', Version: "1"}, ""},
		{"cut off before anything happened", priorPackage{Version: "1", Open: true, Asked: true}, Installed{Status: 'i', Version: "1"}, ""},
		{"removed", priorPackage{Version: "1", Asked: true}, Installed{Versions: []string{"1"}}, "install 1"},
		{"removed by somebody", priorPackage{Version: "1", Now: "1", Asked: true}, Installed{Versions: []string{"1"}}, "left"},
		{"gone already", priorPackage{Now: "1", Asked: true}, Installed{}, "removed"},
		{"cut off before it was purged", priorPackage{Now: "1", Asked: true}, Installed{Status: 'c', Version: "1"}, "clear"},
		{"gone already, where configuration was left", priorPackage{Config: true, Now: "1", Asked: true}, Installed{Status: 'c', Version: "1"}, "removed"},
		{"never came, and somebody removed it", priorPackage{Asked: true}, Installed{Status: 'c', Version: "1"}, ""},
	} {
		u := undo{install: map[string]string{}}
		u.plan("p", c.w, c.p)
		got := ""
		switch {
		case len(u.purge) > 0:
			got = "purge"
		case len(u.clear) > 0:
			got = "clear"
		case len(u.remove) > 0:
			got = "remove"
		case len(u.install) > 0:
			got = "install " + u.install["p"]
		case len(u.outcomes) > 0:
			got = fmt.Sprint(u.outcomes[0].Fate)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// What somebody else has decided about packages is said before it is overruled.
func TestOthers(t *testing.T) {
	s := Spec{Packages: map[string]Package{"a": {}, "b": {Version: "2.*"}, "c": {}, "d": {Hold: true}, "e": {Version: "1.*"}}}
	have := State{Packages: map[string]Installed{
		"a": {Status: 'i', Version: "1", Held: true, Candidate: "1", Versions: []string{"1"}},
		"b": {Candidate: "1.0", Versions: []string{"2.0", "1.0"}, Preferred: "1.0"},
		"c": {Versions: []string{"1.0"}},
		"d": {Status: 'i', Version: "1", Held: true, Candidate: "1", Versions: []string{"1"}},
		"e": {Candidate: "1.0", Versions: []string{"1.0"}, Preferred: "1.0"},
	}}
	got := s.foreignDecisions(have)
	for i, begins := range []string{"a is held on the machine", "preferences on the machine put b 1.0 above", "preferences on the machine keep c from being installed"} {
		if len(got) != 3 || !strings.HasPrefix(got[i], begins) {
			t.Fatalf("it says %q, want something of %q", got, begins)
		}
	}
}

// What is declared absent and is not there is noted: nothing is to be restored.
func TestAbsentAlready(t *testing.T) {
	d, rec := newDouble(t)
	d.state = "pkg\tii \tok\tgone\tamd64\t1\n"
	d.simulate = map[string]string{"gone-": "Remv gone [1]\n"}
	if err := d.try(rec, Spec{Owner: "host", Absent: []string{"gone", "never"}}); err == nil || !strings.Contains(err.Error(), "still package gone") {
		t.Fatal(err) // the double removes nothing
	}
	all, err := recorded(rec)
	if err != nil || all["never"] != (priorPackage{Asked: true, Declared: true, Open: all["never"].Open}) || all["gone"].Version != "1" {
		t.Errorf("remembered %v, %v", all, err)
	}
}

// TestUndoing: a package that is declared no more, and what came in for it, are
// planned to go; on a node, pods leave before what runs them does.
func TestUndoing(t *testing.T) {
	list := hosttest.NewChecks(t, "packages-undoing")
	d, rec := newDouble(t)
	d.state = "pkg\tii \tok\tcontainerd.io\tamd64\t2.2.1-1\npkg\tii \tok\tjq\tamd64\t1.6\npkg\tii \tok\tlibjq1\tamd64\t1.6\npkg\tii \tok\tcurl\tamd64\t8.1\n"
	d.simulate = map[string]string{"jq-": "Remv jq [1.6]\nRemv libjq1 [1.6]\n"}
	all := map[string]priorPackage{
		"containerd.io": {Now: "2.2.1-1", Asked: true, Declared: true},
		"jq":            {Now: "1.6", Asked: true, Declared: true},
		"libjq1":        {Now: "1.6"},
		"curl":          {Version: "8.0", Now: "8.1", Asked: true, Declared: true},
	}
	if err := rec.Set(t.Context(), noteAll, all); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		want   []string
		facts  []string
		drains int
	}{
		{"all of them", []string{"containerd.io", "curl", "jq"}, nil, 0},
		{"no jq", []string{"containerd.io", "curl"}, []string{"package jq is removed", "package libjq1 is removed"}, 0},
		{"no curl", []string{"containerd.io", "jq"}, []string{"package curl becomes what it was before"}, 0},
		{"no containerd", []string{"curl", "jq"}, []string{"package containerd.io is removed"}, 1},
	} {
		want := Spec{Owner: "host", Packages: map[string]Package{}}
		for _, name := range c.want {
			want.Packages[name] = Package{}
		}
		got, err := Undoing(t.Context(), d, rec, &want)
		if err != nil {
			t.Fatal(err)
		}
		var facts []string
		drains := 0
		for _, x := range got {
			if facts = append(facts, x.Fact); x.Drains {
				drains++
			}
		}
		if diff := cmp.Diff(c.facts, facts); diff != "" || drains != c.drains {
			t.Errorf("%s: %d, %s", c.name, drains, diff)
		}
		list.Case("%s", c.name)
		list.Changes(got)
	}
}

// TestNoted: a declared package that is there already is written down as it is.
// Somebody removes it and apply installs another version: destroy keeps it.
func TestNoted(t *testing.T) {
	d, rec := newDouble(t)
	const there = "pkg\tii \tok\tjq\tamd64\t1.6\n"
	want := Spec{Owner: "host", Packages: map[string]Package{"jq": {}}}
	d.state = there + jqState
	if err := d.try(rec, want); err != nil || len(d.did) > 0 {
		t.Fatal(err, d.did)
	}
	was1 := map[string]priorPackage{"jq": {Version: "1.6", Now: "1.6", Asked: true, Declared: true}}
	all, err := recorded(rec)
	if diff := cmp.Diff(was1, all); diff != "" || err != nil {
		t.Errorf("the record: %v %s", err, diff)
	}
	d.state = jqState
	d.simulate = map[string]string{"jq=1.6": "Inst jq (1.6 Debian:12/oldstable [amd64])\n"}
	d.install = func([]string) hosttest.Answer {
		d.state = there + jqState
		return hosttest.Answer{}
	}
	if err := d.try(rec, want); err != nil || len(d.did) != 1 {
		t.Fatal(err, d.did)
	}
	if all, err = recorded(rec); cmp.Diff(was1, all) != "" || err != nil {
		t.Errorf("the record: %v %v", err, all)
	}
	outcomes, err := Restore(t.Context(), d, rec)
	if err != nil || len(d.did) != 1 {
		t.Errorf("%v %v: %v", err, d.did, outcomes)
	}
}

// TestAbsentNoted: a package that is not there, as declared, comes by hand. Apply
// removes it, and destroy does not bring it back; nor does it take away one that
// came since.
func TestAbsentNoted(t *testing.T) {
	d, rec := newDouble(t)
	const there = "pkg\tii \tok\tjq\tamd64\t1.6\n"
	want := Spec{Owner: "host", Absent: []string{"jq"}}
	d.state = jqState
	if err := d.try(rec, want); err != nil || len(d.did) > 0 {
		t.Fatal(err, d.did)
	}
	d.state = there + jqState
	d.simulate = map[string]string{"jq-": "Remv jq [1.6]\n", "jq=1.6": "Inst jq (1.6 Debian:12/oldstable [amd64])\n"}
	d.install = func([]string) hosttest.Answer {
		d.state = jqState
		return hosttest.Answer{}
	}
	if err := d.try(rec, want); err != nil || len(d.did) != 1 {
		t.Fatal(err, d.did)
	}
	for _, state := range []string{jqState, there + jqState} {
		d.state = state
		if changes, err := Undoing(t.Context(), d, rec, nil); err != nil || len(changes) > 0 {
			t.Errorf("destroy is planned to change %v, %v", changes, err)
		}
	}
	outcomes, err := Restore(t.Context(), d, rec)
	if err != nil || len(d.did) != 1 {
		t.Errorf("%v %v: %v", err, d.did, outcomes)
	}
}
