package stoke_test

import (
	"slices"
	"strings"
	"testing"
)

var doubleFence = fence{list: "doubles.txt", fault: "times",
	rule: "Test doubles (packages named …test, and lab) that other packages import or that are linked into a command.",
	fix: "only tests and other test doubles import a test double: " +
		"move the shared code into a package that is not a double, or do the test in a _test.go file"}

// importedDoubles returns the imports of test doubles by other packages. Tests
// are not part of the graph.
func importedDoubles(graph map[string][]string) map[string]int {
	found := make(map[string]int)
	for name, imported := range graph {
		for _, other := range imported {
			if double(other) && !double(name) {
				found[name+" imports "+other]++
			}
		}
	}
	return found
}

// linkedDoubles returns the test doubles among the packages of a command.
func linkedDoubles(command string, all []link) map[string]int {
	found := make(map[string]int)
	for _, l := range all {
		if ours, ok := strings.CutPrefix(l.name, house+"/"); ok && double(ours) {
			found["cmd/"+command+" links "+ours] = 1 // on every platform the same
		}
	}
	return found
}

func TestFenceDoubles(t *testing.T) {
	found := importedDoubles(imports(t, sources(t)))
	for command, list := range commands {
		all, err := list()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(all, func(l link) bool {
			return l.name == house+"/cmd/"+strings.Replace(command, "trainer-gpu", "trainer", 1)
		}) {
			t.Errorf("%s is not among its own packages: the list is not read", command)
		}
		for key := range linkedDoubles(command, all) {
			found[key]++
		}
	}
	doubleFence.check(t, found, nil)
}

func TestFenceDoublesAreNoticed(t *testing.T) {
	for _, test := range []struct{ name, other, want string }{
		{"providers/gke", "providers/gke/gcptest", "providers/gke imports providers/gke/gcptest"},
		{"cmd/stoke", "providers/metal/lab", "cmd/stoke imports providers/metal/lab"},
		{"providers/connect/podtest", "providers/connect/kubetest", ""},
		{"providers/metal/lab", "providers/connect/ssh/sshtest", ""},
		{"providers/metal/lab", "providers/connect/ssh", ""},
		{"plan", "plan/contest/entry", ""},
		{"plan", "plan/label", ""},
	} {
		t.Run(test.name+" imports "+test.other, func(t *testing.T) {
			advice := ""
			if test.want != "" {
				advice = "only tests and other test doubles"
			}
			noticed(t, doubleFence, importedDoubles(map[string][]string{test.name: {test.other}}), test.want, advice)
		})
	}
	all := []link{{"fmt", ""}, {"example.org/httptest", "example.org/httptest"}, {house + "/plan", house}}
	noticed(t, doubleFence, linkedDoubles("stoke", all), "", "")
	all = append(all, link{house + "/providers/filetest", house}, link{house + "/providers/filetest", house})
	noticed(t, doubleFence, linkedDoubles("stoke", all), "cmd/stoke links providers/filetest", "only tests")
}
