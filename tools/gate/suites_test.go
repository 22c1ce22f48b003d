package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// read returns the module's packages, as the gate sees them.
func read(t *testing.T) (root string, all map[string]*folder) {
	t.Helper()
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	if all, err = folders(root); err != nil {
		t.Fatal(err)
	}
	return root, all
}

// forgotten lists tests that neither make test nor a suite runs.
func forgotten(all map[string]*folder, suites []suite) ([]string, error) {
	run := make(map[string]bool)
	for _, s := range suites {
		chosen, err := s.tests(all)
		if err != nil {
			return nil, err
		}
		for name, tests := range chosen {
			for _, test := range tests {
				run[name+" "+test] = true
			}
		}
	}
	var lost []string
	for name, f := range all {
		for _, test := range f.tests {
			if len(test.tags) > 0 && !run[name+" "+test.name] {
				lost = append(lost, fmt.Sprintf("%s %s (tags %s)", name, test.name, strings.Join(test.tags, ", ")))
			}
		}
	}
	slices.Sort(lost)
	return lost, nil
}

// TestEveryTestIsRun finds tests that need a tag and that no suite takes. make
// test runs the others.
func TestEveryTestIsRun(t *testing.T) {
	_, all := read(t)
	lost, err := forgotten(all, suites())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range lost {
		t.Errorf("no suite runs %s: give it a name that a suite of tools/gate/suites.go takes, or a suite", test)
	}
}

// TestForgottenTestIsFound shows that the check above can fail.
func TestForgottenTestIsFound(t *testing.T) {
	_, all := read(t)
	without := slices.DeleteFunc(suites(), func(s suite) bool { return s.name == "e2e-cut" })
	lost, err := forgotten(all, without)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(lost, "providers/connect/ssh TestCutEverywhere (tags e2e)") {
		t.Errorf("without e2e-cut these are said to be lost: %q", lost)
	}
}

// TestSuitesTakeTests finds suites whose expressions no longer match.
func TestSuitesTakeTests(t *testing.T) {
	_, all := read(t)
	names := make(map[string]bool)
	for _, s := range suites() {
		chosen, err := s.tests(all)
		if err != nil {
			t.Fatal(err)
		}
		if s.command == nil && len(chosen) == 0 {
			t.Errorf("%s takes no test", s.name)
		}
		for _, test := range s.grow {
			if !slices.ContainsFunc(mapped(chosen), func(n string) bool { return n == test }) {
				t.Errorf("%s is to take %s, which is not a test of its packages", s.name, test)
			}
		}
		if names[s.name] {
			t.Errorf("two suites are called %s", s.name)
		}
		names[s.name] = true
	}
}

// TestSuitesAreTargets holds that make runs each suite of whole processes and real
// machines by its name.
func TestSuitesAreTargets(t *testing.T) {
	root, _ := read(t)
	text, err := os.ReadFile(root + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(text), "\nSUITES := ")
	list, _, ended := strings.Cut(list, "\n\n")
	if !found || !ended {
		t.Fatal("the Makefile has no list SUITES")
	}
	targets := strings.Fields(strings.ReplaceAll(list, "\\", " "))
	for _, s := range suites() {
		if strings.HasPrefix(s.name, "e2e") && !slices.Contains(targets, s.name) {
			t.Errorf("make %s is not a target: add it to SUITES in the Makefile", s.name)
		}
	}
}

func mapped(chosen map[string][]string) (names []string) {
	for _, tests := range chosen {
		names = append(names, tests...)
	}
	return names
}

// TestNightlyHasAll holds that make nightly leaves nothing to the gate: what
// the gate runs in part has a suite that runs the whole.
func TestNightlyHasAll(t *testing.T) {
	_, all := read(t)
	nightly := slices.DeleteFunc(suites(), func(s suite) bool { return s.daily })
	lost, err := forgotten(all, nightly)
	if err != nil {
		t.Fatal(err)
	}
	if len(lost) > 0 {
		t.Errorf("only the gate runs %s", strings.Join(lost, ", "))
	}
}

// TestControlPlanes finds packages whose tests need a control plane, and which
// no suite gives one.
func TestControlPlanes(t *testing.T) {
	root, all := read(t)
	given := make(map[string]bool)
	for _, s := range suites() {
		if !slices.ContainsFunc(s.needs, func(n need) bool { return n.env == kubernetes.env }) {
			continue
		}
		chosen, err := s.tests(all)
		if err != nil {
			t.Fatal(err)
		}
		for name := range chosen {
			given[name] = true
		}
	}
	for name := range all {
		if strings.HasSuffix(name, "test") || given[name] || !usesKubetest(t, root+"/"+name) {
			continue
		}
		t.Errorf("the tests of %s use kubetest, and no suite gives them a control plane", name)
	}
}

func usesKubetest(t *testing.T, dir string) bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		text, err := os.ReadFile(dir + "/" + e.Name())
		return err == nil && strings.HasSuffix(e.Name(), "_test.go") && strings.Contains(string(text), `"`+module+`/providers/connect/kubetest"`)
	})
}
