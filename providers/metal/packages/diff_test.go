package packages

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// asWanted is a machine on which nothing differs from wanted().
func asWanted(t *testing.T) (Spec, State) {
	want := wanted()
	st := State{Architecture: "amd64", Files: map[string]File{}, Packages: map[string]Installed{
		"kubelet": {Status: 'i', Version: "1.36.3-1.1", Held: true}, "jq": {Status: 'i', Version: "1.6"},
		"libstdc++6": {Status: 'i', Version: "12.2.0-14"}, "docker.io": {Status: 'c', Version: "20"},
	}}
	for name, content := range want.settings() {
		st.Files[name] = File{Mode: "644", Owner: "root:root", Content: []byte(content)}
	}
	st.Files[keyringFile("kubernetes")] = File{Mode: "644", Owner: "root:root", Content: []byte(testdata(t, "key-ed25519.gpg"))}
	rsa, _, err := readKeyring([]byte(testdata(t, "key-rsa.asc")))
	if err != nil {
		t.Fatal(err)
	}
	st.Files[keyringFile("docker")] = File{Mode: "644", Owner: "root:root", Content: rsa}
	return want, st
}

func TestDiff(t *testing.T) {
	list := hosttest.NewChecks(t, "packages")
	change := func(name string, f func(*Installed)) func(*State) {
		return func(st *State) {
			p := st.Packages[name]
			f(&p)
			st.Packages[name] = p
		}
	}
	file := func(name string, f func(*File)) func(*State) {
		return func(st *State) {
			x := st.Files[name]
			f(&x)
			st.Files[name] = x
		}
	}
	for _, c := range []struct {
		name  string
		drift func(*State)
		want  string // fact: have → want (disruption)
	}{
		{"nothing", func(*State) {}, ""},
		{"removed", change("jq", func(p *Installed) { p.Status = 'c' }), "package jq:  → any version (none)"},
		{"upgraded", change("kubelet", func(p *Installed) { p.Version = "1.36.4-1.1" }), "package kubelet: 1.36.4-1.1 → 1.36.3-* (restarts the kubelet)"},
		{"never there", change("kubelet", func(p *Installed) { *p = Installed{} }), "package kubelet:  → 1.36.3-* (reloads systemd); hold of kubelet: false → true (none)"},
		{"hold removed", change("kubelet", func(p *Installed) { p.Held = false }), "hold of kubelet: false → true (none)"},
		{"held by hand", change("jq", func(p *Installed) { p.Held = true }), "hold of jq: true → false (none)"},
		{"came back", change("docker.io", func(p *Installed) { p.Status = 'i' }), "package docker.io: 20 →  (reloads systemd)"},
		{"half-configured", func(st *State) { st.Broken = []string{"badpost (half-configured)"} }, "dpkg: badpost (half-configured) → finished (reloads systemd)"},
		{"cut off", func(st *State) { st.Interrupted = true }, "dpkg: cut off → finished (reloads systemd)"},
		{"repository edited", file(sourcesFile("docker"), func(f *File) { f.Content = []byte(strings.ReplaceAll(string(f.Content), "bookworm", "trixie")) }), "repository docker suites: trixie → bookworm (none)"},
		{"repository disabled", file(sourcesFile("docker"), func(f *File) { f.Content = append(f.Content, "Trusted: yes\n"...) }), "repository docker file: otherwise → as declared (none)"},
		{"repository's mode", file(sourcesFile("docker"), func(f *File) { f.Mode = "600" }), "repository docker file: mode 600, root:root → as declared (none)"},
		{"repository removed", func(st *State) { delete(st.Files, sourcesFile("docker")) }, "repository docker uris:  → http://10.1.2.3/docker (none)"},
		{"key replaced", file(keyringFile("docker"), func(f *File) { f.Content = []byte(testdata(t, "key-ed25519.gpg")) }), "repository docker fingerprints: " + printEd25519 + " → " + printRSA + " (none)"},
		{"key added", file(keyringFile("docker"), func(f *File) { f.Content = append(f.Content, testdata(t, "key-ed25519.gpg")...) }), "repository docker fingerprints: " + printEd25519 + " " + printRSA + " → " + printRSA + " (none)"},
		{"key damaged", file(keyringFile("docker"), func(f *File) { f.Content = f.Content[:9] }), "repository docker fingerprints: unreadable → " + printRSA + " (none)"},
		{"key removed", func(st *State) { delete(st.Files, keyringFile("docker")) }, "repository docker fingerprints:  → " + printRSA + " (none)"},
		{"pins edited", file(pinFile("host"), func(f *File) { f.Content = nil }), "version pins: otherwise → as declared (none)"},
		{"proxy removed", func(st *State) { delete(st.Files, proxyFile("host")) }, "apt's proxy: none → as declared (none)"},
		{"exclusion removed", func(st *State) { delete(st.Files, excludeFile("host")) }, "exclusion from unattended-upgrades: none → as declared (none)"},
	} {
		want, st := asWanted(t)
		c.drift(&st)
		list.Case("%s", c.name)
		list.Changes(Diff(want, st))
		var got []string
		for _, x := range Diff(want, st) {
			got = append(got, x.Fact+": "+x.Have+" → "+x.Want+" ("+x.Disruption.String()+")")
		}
		if diff := cmp.Diff(c.want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
}

func TestStateAsSpec(t *testing.T) {
	want, st := asWanted(t)
	if diff := cmp.Diff(want, st.Spec(want)); diff != "" {
		t.Errorf("nothing differs, and still: %s", diff)
	}
	st.Packages["kubelet"] = Installed{Status: 'i', Version: "1.36.4-1.1"}
	st.Packages["jq"] = Installed{}
	st.Packages["docker.io"] = Installed{Status: 'i', Version: "20"}
	delete(st.Files, proxyFile("host"))
	delete(st.Files, excludeFile("host"))
	delete(st.Files, sourcesFile("kubernetes"))
	is := wanted()
	is.Proxy, is.Absent = nil, nil
	is.Packages = map[string]Package{"kubelet": {Version: "1.36.4-1.1"}, "libstdc++6": {Version: "12.2.0-14"}}
	delete(is.Repositories, "kubernetes")
	if diff := cmp.Diff(is, st.Spec(want)); diff != "" {
		t.Error(diff)
	}
}

func TestDisruption(t *testing.T) {
	for _, c := range []struct {
		name           string
		there, scripts bool
		want           host.Disruption
	}{
		{"containerd.io", true, false, host.RestartsContainer},
		{"containerd.io", false, false, host.ReloadsSystemd},
		{"nvidia-fabricmanager-580", true, false, host.ReloadsSystemd},
		{"kubectl", true, false, host.None},
		{"kubectl", true, true, host.ReloadsSystemd},
		{"my-daemon", true, true, host.ReloadsSystemd},
		{"my-tool", true, false, host.None},
	} {
		if got := disruption(c.name, c.there, c.scripts); got != c.want {
			t.Errorf("%s (there %v, scripts %v): %v, want %v", c.name, c.there, c.scripts, got, c.want)
		}
	}
}
