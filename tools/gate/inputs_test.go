package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// keys returns the key of each package of each suite of tests.
func keys(t *testing.T, in *inputs) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for _, s := range suites() {
		chosen, err := s.tests(in.folders)
		if err != nil {
			t.Fatal(err)
		}
		for name, names := range chosen {
			all[s.name+" "+name] = in.key(name, s.needs, s.recipe(names))
		}
	}
	return all
}

// change stands for another content of a file.
func (in *inputs) change(t *testing.T, name string) *inputs {
	t.Helper()
	changed := *in
	changed.tree += name
	changed.paths = make(map[string]string)
	for p, hash := range in.paths {
		changed.paths[p] = hash
	}
	if changed.paths[name] == "" {
		t.Fatalf("there is not a file %s", name)
	}
	changed.paths[name] = "other"
	changed.own()
	return &changed
}

// TestInputs shows which suites a change runs again, and which it leaves.
func TestInputs(t *testing.T) {
	root, all := read(t)
	in, err := readInputs(root, all)
	if err != nil {
		t.Fatal(err)
	}
	before := keys(t, in)
	engine := []string{"race plan", "race plan/run", "race plan/view", "e2e cmd/stoke", "e2e-order cmd/stoke"}
	machines := []string{"e2e-metal providers/metal/firewall", "e2e-metal providers/metal/packages", "e2e-metal providers/metal/system",
		"e2e-metal providers/metal/host", "e2e-metal providers/metal/nvidia", "e2e-metal providers/metal/facts", "e2e-cut providers/connect/ssh"}
	tests := []struct {
		file         string
		again, still []string
	}{
		{"providers/gke/words.go", []string{"e2e-gke providers/gke", "e2e cmd/stoke", "e2e-kube-commands cmd/stoke", "e2e-metal providers/metal"},
			append(machines, "e2e-kube providers/kube", "race plan/run")},
		{"plan/plan.go", engine, append(machines, "e2e-kube providers/kube/schema", "race runtime/ps")},
		{"plan/contract/doc.go", append([]string{"e2e plan/contract"}, engine...), machines},
		{"providers/metal/firewall/doc.go", []string{"e2e-metal providers/metal/firewall", "e2e-cut providers/metal/firewall", "e2e-metal providers/metal", "e2e cmd/stoke"},
			[]string{"e2e-metal providers/metal/system", "e2e-cut providers/connect/ssh", "e2e-kube providers/kube"}},
		{"testdata/machines/machine-init", append(machines, "machine providers/metal"), []string{"race plan/run", "race runtime/ps"}},
		{"testdata/kubernetes/go.mod", []string{"e2e-kube providers/kube", "pod providers/kube"}, machines},
		{"testdata/parity/" + someFile(t, root), []string{"e2e cmd/stoke"}, machines},
		{"runtime/ps/doc.go", []string{"race runtime/ps", "e2e-metal providers/metal", "e2e cmd/stoke"}, append(machines, "race plan/run")},
		{"docs/sudoers.d-stoke", machines[:6], []string{"race plan/run"}},
		{"examples/mlbench/README.md", []string{"e2e-pods cmd/stoke"}, machines},
		{"providers/metal/testdata/checks/" + someCheck(t, root), []string{"e2e-metal providers/metal/system"}, []string{"e2e-kube providers/kube"}},
		{"docs/runs.md", []string{"race cmd/stoke-trainer"}, machines},
		{"go.mod", append(machines, engine...), nil},
		{"providers/gke/words_test.go", []string{"e2e-gke providers/gke"}, []string{"e2e cmd/stoke", "e2e-metal providers/metal"}},
	}
	for _, test := range tests {
		after := keys(t, in.change(t, test.file))
		for _, name := range append(slices.Clone(test.again), test.still...) {
			if before[name] == "" {
				t.Errorf("there is not a %q", name)
			}
		}
		for _, name := range test.again {
			if after[name] == before[name] {
				t.Errorf("a change of %s does not run %s again", test.file, name)
			}
		}
		for _, name := range test.still {
			if after[name] != before[name] {
				t.Errorf("a change of %s runs %s again", test.file, name)
			}
		}
	}
}

func someFile(t *testing.T, root string) string {
	return firstOf(t, filepath.Join(root, "testdata", "parity"))
}

func someCheck(t *testing.T, root string) string {
	return firstOf(t, filepath.Join(root, "providers", "metal", "testdata", "checks"))
}

func firstOf(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		t.Fatal("no files", err)
	}
	return entries[0].Name()
}

// TestSnapshot has the gate test what lies in the checkout, committed or not,
// without a change of the index.
func TestSnapshot(t *testing.T) {
	root, c := t.TempDir(), cache(t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	git := func(words ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@localhost"}, words...)...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v\n%s", words, err, out)
		}
		return string(out)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q")
	write("same", "1")
	write("changed", "1")
	write(".gitignore", "ignored\n")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	head, err := snapshot(root)
	if err != nil || head != strings.TrimSpace(git("rev-parse", "HEAD")) {
		t.Fatalf("a clean checkout is %q, %v", head, err)
	}
	dir, err := c.checkout(root)
	if err != nil {
		t.Fatal(err)
	}
	first, err := os.Stat(filepath.Join(dir, "same"))
	if err != nil {
		t.Fatal(err)
	}
	write("changed", "22")
	write("new", "3")
	write("ignored", "4")
	status := git("status", "--porcelain")
	if err := os.WriteFile(filepath.Join(dir, "left"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := c.checkout(root); err != nil {
		t.Fatal(err)
	}
	if now := git("status", "--porcelain"); now != status {
		t.Errorf("the checkout changed from %q to %q", status, now)
	}
	for name, want := range map[string]string{"same": "1", "changed": "22", "new": "3"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	for _, name := range []string{"ignored", "left"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is in the gate's checkout", name)
		}
	}
	if second, err := os.Stat(filepath.Join(dir, "same")); err != nil || !second.ModTime().Equal(first.ModTime()) {
		t.Errorf("a file that is the same was written again: %v", err)
	}
}
