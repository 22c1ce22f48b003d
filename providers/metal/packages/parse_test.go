package packages

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func testdata(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The files sim*.txt were printed by apt 2.6 (Debian 12) over a repository made
// for this test.
func TestParseSimulation(t *testing.T) {
	for file, want := range map[string][]string{
		"simupg.txt":           {"upgrade kubernetes-cni 1.6.0-1.1 → 2.0.0-1.1", "upgrade kubelet 1.36.3-1.1 → 1.37.0-1.1"},
		"simdown.txt":          {"downgrade kubelet 1.37.0-1.1 → 1.36.3-1.1", "downgrade kubernetes-cni 2.0.0-1.1 → 1.6.0-1.1"},
		"simrm.txt":            {"remove docker.io 20.10.24+dfsg1-1+deb12u1+b6", "remove containerd 1.6.20~ds1-1+deb12u3", "install containerd.io 2.2.1-1~debian.12~bookworm"},
		"simpurge.txt":         {"purge jq 1.6-2.1+deb12u2", "purge libjq1 1.6-2.1+deb12u2"},
		"simheld.txt":          {"upgrade kubelet 1.36.3-1.1 → 1.36.4-1.1"},
		"simi386.txt":          {"install gcc-12-base:i386 12.2.0-14+deb12u1", "install libgcc-s1:i386 12.2.0-14+deb12u1", "install libc6:i386 2.36-9+deb12u14", "install zlib1g:i386 1:1.2.13.dfsg-1"},
		"simhalffix.txt":       {"install kubernetes-cni 2.0.0-1.1"},
		"simbroken.txt":        nil,
		"debian13-simup.txt":   {"upgrade kubernetes-cni 1.6.0-1.1 → 2.0.0-1.1", "upgrade kubelet 1.36.3-1.1 → 1.37.0-1.1"},
		"ubuntu2404-simup.txt": {"upgrade kubernetes-cni 1.6.0-1.1 → 2.0.0-1.1", "upgrade kubelet 1.36.3-1.1 → 1.37.0-1.1"},
	} {
		actions, err := parseSimulation(testdata(t, file))
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		var got []string
		for _, a := range actions {
			got = append(got, a.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", file, diff)
		}
	}
	if actions, err := parseSimulation(testdata(t, "simmulti.txt")); err != nil || len(actions) != 15 {
		t.Errorf("simmulti.txt: %d actions, %v", len(actions), err)
	}
	ubuntu := "Inst libssl3t64 [3.0.13-0ubuntu3.4] (3.0.13-0ubuntu3.6 Ubuntu:24.04/noble-updates, Ubuntu:24.04/noble-security [amd64]) [libssl3t64:amd64 on libssl3t64:i386] []\n" +
		"Remv libnvidia-compute-535 [535.183.01-0ubuntu0.24.04.1] [nvidia-utils-535:amd64 ]\n"
	actions, err := parseSimulation(ubuntu)
	want := []Action{{Package: "libssl3t64", Old: "3.0.13-0ubuntu3.4", New: "3.0.13-0ubuntu3.6"}, {Package: "libnvidia-compute-535", Old: "535.183.01-0ubuntu0.24.04.1"}}
	if diff := cmp.Diff(want, actions); diff != "" || err != nil {
		t.Errorf("Ubuntu: %v %s", err, diff)
	}
}

// What begins as an action but is none must not be skipped: a removal that was
// not understood would not be refused.
func TestParseSimulationIsStrict(t *testing.T) {
	for _, line := range []string{"Remv docker.io", "Remv docker.io [", "Remv docker.io []", "Remv [1.0]", "Inst kubelet 1.0", "Inst kubelet (1.0)", "Inst kubelet [1 (2 x [all])", "Purg $(reboot) [1]", "Inst kubelet (1.0*x Debian [all])", "Inst kubelet ( 0)", "Conf kubelet"} {
		if actions, err := parseSimulation(line + "\n"); err == nil {
			t.Errorf("%q was read as %v", line, actions)
		}
	}
}

func FuzzParseSimulation(f *testing.F) {
	for _, name := range []string{"simupg.txt", "simrm.txt", "simi386.txt", "simpurge.txt"} {
		f.Add(testdata(f, name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		actions, err := parseSimulation(text)
		if err != nil {
			return
		}
		lines := 0
		for line := range strings.Lines(text) {
			for _, verb := range []string{"Inst ", "Remv ", "Purg "} {
				if strings.HasPrefix(line, verb) {
					lines++
				}
			}
		}
		if len(actions) > lines {
			t.Errorf("%d actions from %d lines", len(actions), lines)
		}
		for _, a := range actions {
			if !packageName.MatchString(a.Package) || a.Old == "" && a.New == "" {
				t.Errorf("%+v", a)
			}
		}
	})
}

func TestUnmet(t *testing.T) {
	for file, want := range map[string]string{
		"simbroken.txt":          "broken Depends: nosuchthing but it is not installable",
		"simnone.txt":            "Package 'nosuchthing' has no installation candidate",
		"debian13-simbroken.txt": "broken Depends: nosuchthing but it is not installable",
		"debian13-simhalf.txt":   "kubelet Depends: kubernetes-cni but it is not going to be installed",
		"simver.txt":             "Version '9.9' for 'kubelet' was not found",
		"simhalf.txt":            "kubelet Depends: kubernetes-cni but it is not going to be installed; needsnew Depends: kubernetes-cni (>= 2) but it is not going to be installed",
	} {
		if got := unmet(testdata(t, file)); got != want {
			t.Errorf("%s: %q, want %q", file, got, want)
		}
	}
}

func TestParsePolicy(t *testing.T) {
	got, err := parsePolicy(`kubelet:
  Installed: 1.36.3-1.1
  Candidate: 1.36.3-1.1
  Package pin: 1.36.3-1.1
  Version table:
     1.36.4-1.1 500
        500 https://pkgs.k8s.io/core:/stable:/v1.36/deb  Packages
 *** 1.36.3-1.1 995
        500 https://pkgs.k8s.io/core:/stable:/v1.36/deb  Packages
        100 /var/lib/dpkg/status
openssl:
  Installed: 3.0.13-0ubuntu3.1
  Candidate: 3.0.13-0ubuntu3.6
  Version table:
     3.0.13-0ubuntu3.6 500 (phased 10%)
        500 http://archive.ubuntu.com/ubuntu noble-updates/main amd64 Packages
 *** 3.0.13-0ubuntu3.1 100
        100 /var/lib/dpkg/status
docker.io:
  Installed: (none)
  Candidate: 20.10.24
  Version table:
     27.5.1 -1
         -1 http://deb.example.org/debian trixie/main amd64 Packages
     20.10.24 1001
        500 http://deb.example.org/debian bookworm/main amd64 Packages
mail-transport-agent:
  Installed: (none)
  Candidate: (none)
  Version table:
`)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Offer{
		"kubelet": {Candidate: "1.36.3-1.1", Versions: []string{"1.36.4-1.1", "1.36.3-1.1"}},
		"openssl": {Candidate: "3.0.13-0ubuntu3.6", Versions: []string{"3.0.13-0ubuntu3.6"}}, "mail-transport-agent": {},
		"docker.io": {Candidate: "20.10.24", Versions: []string{"27.5.1", "20.10.24"}, preferred: "20.10.24"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Offer{})); diff != "" {
		t.Error(diff)
	}
}

func FuzzParsePolicy(f *testing.F) {
	f.Add("kubelet:\n  Candidate: 1\n  Version table:\n *** 1 500\n        500 http://x Packages\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := parsePolicy(text)
		for name, a := range all {
			if err == nil && strings.Contains(name, "\n") || len(a.Versions) > strings.Count(text, "\n")+1 {
				t.Errorf("%q: %v", name, a)
			}
		}
	})
}

func parseState(out []byte, names []string) (State, error) {
	r := &reader{names: names, st: State{Packages: map[string]Installed{}, Files: map[string]File{}}}
	if err := r.lines().Read(out); err != nil {
		return r.st, err
	}
	return r.st, r.finish()
}

// observe.txt was printed by observeScript in a Debian 12 on which badpost's
// maintainer script had failed and somebody held dpkg's lock.
func TestParseState(t *testing.T) {
	names := []string{"badpost", "containerd.io", "docker.io", "jq", "kubelet", "libc6", "nosuch", "openssh-server", "zlib1g:i386"}
	st, err := parseState([]byte(testdata(t, "observe.txt")), names)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Installed{
		"badpost":        {Status: 'F', Version: "1.0", Candidate: "1.0", Versions: []string{"1.0"}},
		"containerd.io":  {Candidate: "2.2.1-1~debian.12~bookworm", Versions: []string{"2.2.1-1~debian.12~bookworm"}},
		"docker.io":      {Status: 'i', Version: "20.10.24+dfsg1-1+deb12u1+b6", Scripts: true, Candidate: "20.10.24+dfsg1-1+deb12u1+b6", Versions: []string{"20.10.24+dfsg1-1+deb12u1+b6", "20.10.24"}},
		"jq":             {Candidate: "1.6-2.1+deb12u2", Versions: []string{"1.6-2.1+deb12u2"}},
		"kubelet":        {Status: 'i', Version: "1.37.0-1.1", Held: true, Candidate: "1.37.0-1.1", Versions: []string{"1.37.0-1.1", "1.36.4-1.1", "1.36.3-1.1"}},
		"libc6":          {Status: 'i', Version: "2.36-9+deb12u14", Auto: true, Scripts: true, Candidate: "2.36-9+deb12u14", Versions: []string{"2.36-9+deb12u14"}},
		"nosuch":         {},
		"openssh-server": {Candidate: "1:9.2p1-2+deb12u10", Versions: []string{"1:9.2p1-2+deb12u10"}},
		"zlib1g:i386":    {Candidate: "1:1.2.13.dfsg-1", Versions: []string{"1:1.2.13.dfsg-1"}},
	}
	if diff := cmp.Diff(want, st.Packages); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"badpost (half-configured)"}, st.Broken); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Lock{{File: "/var/lib/dpkg/lock-frontend", PID: 8, Command: "python3 /srv/lock.py"}}, st.Locks); diff != "" {
		t.Error(diff)
	}
	if st.Architecture != "amd64" || st.Interrupted || len(st.Files) != 2 || len(st.Sources) != 3 {
		t.Errorf("architecture %q, interrupted %v, %d files, sources %+v", st.Architecture, st.Interrupted, len(st.Files), st.Sources)
	}
	if got := st.Sources[1]; got.SignedBy != "/x.gpg" || got.URIs[0] != "http://example.org/deb" || got.Suites[0] != "./" || got.File != "/etc/apt/sources.list.d/other.list" {
		t.Errorf("the one-line source was read as %+v", got)
	}
}

func FuzzParseState(f *testing.F) {
	f.Add(testdata(f, "observe.txt"))
	f.Fuzz(func(t *testing.T, text string) {
		st, err := parseState([]byte(text), []string{"kubelet", "jq"})
		if err == nil && st.Architecture == "" {
			t.Error("no architecture, and no error")
		}
	})
}

// The files up*.txt were printed by apt 2.6 of Debian 12 to whom each of these
// things really happened.
func TestParseUpdate(t *testing.T) {
	for file, want := range map[string]string{
		"uprefused.txt":   "it cannot be reached",
		"updns.txt":       "cannot resolve the name",
		"upnokey.txt":     "signed by another key",
		"upnorelease.txt": "no such suite",
		"uphttps.txt":     "does not trust the server's certificate",
		"upbadsig.txt":    "its signature is wrong",
		"upexpired.txt":   "no longer kept up, or the machine's clock is ahead",
		"upfuture.txt":    "the machine's clock is behind",
		"upconflict.txt":  "declared twice with two keys",
		"upexpkey.txt":    "its key has expired",
		"upok.txt":        "",
		// apt 3.0, whose signatures sqv checks, and 2.7 and 2.4
		"debian13-upnokey.txt": "signed by another key", "debian13-upbadsig.txt": "its signature is wrong",
		"debian13-uphttps.txt": "does not trust the server's certificate", "debian13-upnorelease.txt": "no such suite", "debian13-simconflict.txt": "declared twice with two keys",
		"ubuntu2404-upnokey.txt": "signed by another key", "ubuntu2404-upbadsig.txt": "its signature is wrong", "ubuntu2404-upexpkey.txt": "its key has expired",
		"ubuntu2404-upnorelease.txt": "no such suite", "ubuntu2204-upnokey.txt": "signed by another key", "ubuntu2204-upbadsig.txt": "its signature is wrong",
	} {
		problems := parseUpdate(testdata(t, file))
		if want == "" {
			if len(problems) > 0 {
				t.Errorf("%s: %v", file, problems)
			}
			continue
		}
		if len(problems) != 1 || !strings.Contains(problems[0].Advice, want) {
			t.Errorf("%s: %v, want one with %q", file, problems, want)
		}
	}
}

func FuzzParseUpdate(f *testing.F) {
	for _, name := range []string{"upnokey.txt", "upexpired.txt", "upconflict.txt", "upnorelease.txt"} {
		f.Add(testdata(f, name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n := len(parseUpdate(text)); n > 50 {
			t.Errorf("%d problems", n)
		}
	})
}

func TestFailedScripts(t *testing.T) {
	if diff := cmp.Diff([]string{"badpost"}, failedScripts(testdata(t, "badpost.txt"))); diff != "" {
		t.Error(diff)
	}
}

func TestParseSources(t *testing.T) {
	got := parseSources("/etc/apt/sources.list.d/a.sources", `# a comment
Types: deb deb-src
URIs: http://a.example/debian
 http://b.example/debian
# inside
Suites: bookworm bookworm-updates
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEawF0
 -----END PGP PUBLIC KEY BLOCK-----

Types: deb-src
URIs: http://c.example
Suites: x/

Enabled: no
Types: deb
URIs: http://d.example
Suites: /
Signed-By: /d.gpg
`)
	want := []source{
		{File: "/etc/apt/sources.list.d/a.sources", URIs: []string{"http://a.example/debian", "http://b.example/debian"}, Suites: []string{"bookworm", "bookworm-updates"}, Components: []string{"main"}, SignedBy: "a key inside of the file"},
		{File: "/etc/apt/sources.list.d/a.sources", URIs: []string{"http://d.example"}, Suites: []string{"/"}, SignedBy: "/d.gpg", Disabled: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for line, want := range map[string]int{"deb http://x y z": 1, "deb-src http://x y z": 0, "# deb http://x y": 0, "deb [ http://x y": 0, "deb http://x": 0, "debx y z": 0} {
		if got := parseSources("a.list", line+"\n"); len(got) != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

func FuzzParseSources(f *testing.F) {
	f.Add("a.list", "deb [signed-by=/x arch=amd64] http://x y z\n")
	f.Add("a.sources", "Types: deb\nURIs: x\n y\nSuites: /\n\n")
	f.Fuzz(func(t *testing.T, name, text string) {
		for _, s := range parseSources(name, text) {
			clash(Repository{URIs: s.URIs, Suites: s.Suites}, "/k", []source{s})
		}
	})
}

// The names are those that apt 2.6 gave its lists.
func TestListName(t *testing.T) {
	for _, c := range []struct{ uri, suite, want string }{
		{"file:/srv/repo", "/", "_srv_repo_"},
		{"http://deb.example.org/debian", "bookworm", "deb.example.org_debian_dists_bookworm_"},
		{"http://deb.example.org/debian/", "bookworm/updates", "deb.example.org_debian_dists_bookworm_updates_"},
		{"https://pkgs.k8s.io/core:/stable:/v1.36/deb/", "/", "pkgs.k8s.io_core:_stable:_v1.36_deb_"},
		{"http://10.0.0.1:8080/a_b~c", "./x/", "10.0.0.1:8080_a%5fb%7ec_x_"},
	} {
		if got := listName(c.uri, c.suite); got != c.want {
			t.Errorf("listName(%q, %q) = %q, want %q", c.uri, c.suite, got, c.want)
		}
	}
}
