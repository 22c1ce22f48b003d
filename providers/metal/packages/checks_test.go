package packages

import (
	"errors"
	"flag"
	"testing"

	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

var _ = flag.Bool("update", false, "rewrite golden files")

// TestChecks: what a plan says of packages beside what differs.
func TestChecks(t *testing.T) {
	list := hosttest.NewChecks(t, "packages-checks")
	want, st := asWanted(t)
	st.Packages["jq"] = Installed{}
	st.Packages["kubelet"] = Installed{Status: 'i', Version: "1.35.0-1", Held: true, Versions: []string{"1.35.0-1"}, Preferred: "1.35.0-1"}
	st.Packages["libstdc++6"] = Installed{Status: 'i', Version: "12", Held: true}
	list.Case("other things that somebody decided")
	for _, text := range want.foreignDecisions(st) {
		list.Say("%s", text)
	}
	list.Case("what cannot be had")
	for _, u := range want.request(st).missing {
		list.Say("%s: %s", u.Package, u.Why)
	}
	list.Case("conflicts")
	st.Sources = []source{{File: "/etc/apt/sources.list", URIs: want.Repositories["docker"].URIs, Suites: want.Repositories["docker"].Suites}}
	file := st.Files[sourcesFile("kubernetes")]
	file.Content = []byte("Types: deb\n")
	st.Owners = map[string][]string{"kubernetes": {"gpu-driver"}}
	st.Files[sourcesFile("kubernetes")] = file
	for _, text := range want.conflicts(st) {
		list.Say("%s", text)
	}
	list.Case("refusals")
	for _, text := range want.judge([]Action{{Package: "bash", Old: "5", Vital: true}, {Package: "jq", Old: "1"}, {Package: "kubelet", New: "1.1"}, {Package: "docker.io", New: "2"}, {Package: "runc", Old: "1", New: "2"}, {Package: "new", New: "1"}}) {
		list.Say("%s", text)
	}
	list.Case("errors")
	for _, err := range []error{
		UnsupportedError{OS: "rocky"}, &ImpossibleError{Why: "a needs b"}, &LimitError{Because: Action{Package: "a", New: "1"}, Would: 3}, &RefusedError{Reasons: []string{"a", "b"}},
		&KeyError{Repository: "a", From: "u", Want: []string{"A"}, Have: []string{"B"}}, &UpdateError{Problems: []Problem{{URI: "u", Said: "s", Advice: "a"}, {Said: "s", Advice: "a"}}},
		&LockedError{Holder: Lock{File: "f", PID: 1, Command: "apt"}}, errors.New(((&oldListsError{errors.New("x")}).Error())),
	} {
		list.Say("%v", err)
	}
	list.Case("mistakes")
	list.Say("%v", Spec{Owner: "A", Proxy: &Proxy{HTTP: "x", HTTPS: "http://a:b@c", Direct: []string{"a b"}}, Packages: map[string]Package{"A": {}, "ab": {Version: "!"}}, Absent: []string{"ab", "-"},
		Pinned: map[string]string{"!": "?"}, Repositories: map[string]Repository{"X": {}, "y": {URIs: []string{"htp://a", "http://a:b@c/", "[x"}, Suites: []string{"a b", "/", "x"},
			Components: []string{"!"}, Key: Key{URL: "ftp://x"}, Fingerprints: []string{"AB"}}}}.Validate())
	_, err := Merge(Spec{Owner: "a", Packages: map[string]Package{"x": {Version: "1"}}, Absent: []string{"y"}, Repositories: map[string]Repository{"r": {Suites: []string{"a"}}}},
		Spec{Owner: "b", Packages: map[string]Package{"x": {Version: "2", Why: "w"}, "y": {}}, Repositories: map[string]Repository{"r": {Suites: []string{"b"}, Why: "w"}}})
	list.Say("%v", err)
}
