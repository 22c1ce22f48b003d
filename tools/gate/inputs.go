package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// inputs knows what the result of a test depends on: the contents of files, as
// hashes of git's, so that the folder of the checkout plays no part.
type inputs struct {
	root    string
	folders map[string]*folder
	tree    string              // hash of the whole tree, with changes that are not committed
	owned   map[string][]string // folder of a package: "HASH PATH" of its files, and of those below it that are no package's
	paths   map[string]string   // path of a file: its hash
	links   map[string][]string // folder of a package: the folders that its tests link, with every tag
	builds  map[string][]string // folder of a package: the folders that it links itself
	machine string              // Go's version and the kernel's
}

// double is a package that has its tests read or start more than they link.
var doubles = map[string][]string{
	"providers/metal/lab":           {"testdata/machines", "docs/sudoers.d-stoke"},
	"providers/metal/host/hosttest": {"providers/metal/testdata/checks"},
	"providers/connect/kubetest":    {"testdata/kubernetes"},
	"providers/connect/podtest":     {"testdata/kubernetes"},
}

// pages are what a test reads that names the module's root.
var pages = []string{"README.md", "CONTRIBUTING.md", "Makefile", ".ci", "docs", "examples", "testdata", "modules/library"}

// programs are commands that tests start, built by the package programtest.
const programs = "cmd/programtest"

func readInputs(root string, all map[string]*folder) (*inputs, error) {
	in := &inputs{root: root, folders: all, paths: make(map[string]string)}
	var err error
	if in.tree, err = writeTree(root); err != nil {
		return nil, err
	}
	if err := in.readFiles(); err != nil {
		return nil, err
	}
	if in.builds, in.links, err = links(root); err != nil {
		return nil, err
	}
	version, err := output(root, "go", "version")
	if err != nil {
		return nil, err
	}
	kernel, err := output(root, "uname", "-rm")
	in.machine = version + kernel
	return in, err
}

// writeTree writes the files of a checkout into git's store as a tree, without
// a commit and without a change of the index, and returns the tree's hash.
func writeTree(root string) (string, error) {
	dir, err := os.MkdirTemp("", "stoke-gate-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a copy of the index
	name, err := output(root, "git", "rev-parse", "--git-path", "index")
	if err != nil {
		return "", err
	}
	if name = strings.TrimSpace(name); !filepath.IsAbs(name) {
		name = filepath.Join(root, name)
	}
	index, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	temporary := filepath.Join(dir, "index")
	if err := os.WriteFile(temporary, index, 0o600); err != nil {
		return "", err
	}
	for _, words := range [][]string{{"add", "-A", "."}, {"write-tree"}} {
		cmd := exec.Command("git", words...)
		cmd.Dir, cmd.Env = root, append(environment(), "GIT_INDEX_FILE="+temporary)
		var complaint bytes.Buffer
		cmd.Stderr = &complaint
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("git %s: %w: %s", words[0], err, complaint.String())
		}
		name = strings.TrimSpace(string(out))
	}
	return name, nil
}

func (in *inputs) readFiles() error {
	list, err := output(in.root, "git", "ls-tree", "-r", "-z", in.tree)
	if err != nil {
		return err
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
		about, name, ok := strings.Cut(line, "\t") // MODE TYPE HASH
		words := strings.Fields(about)
		if !ok || len(words) != 3 {
			return fmt.Errorf("git ls-tree printed %q", line)
		}
		in.paths[name] = words[0] + words[2]
	}
	in.own()
	return nil
}

// own gives each file to the package of the nearest folder above it.
func (in *inputs) own() {
	in.owned = make(map[string][]string)
	for _, name := range slices.Sorted(maps.Keys(in.paths)) {
		owner := path.Dir(name)
		for owner != "." && in.folders[owner] == nil {
			owner = path.Dir(owner)
		}
		in.owned[owner] = append(in.owned[owner], in.paths[name]+" "+name)
	}
}

// links asks go which folders of the module each package links, and which its
// tests link.
func links(root string) (builds, tests map[string][]string, err error) {
	list, err := output(root, "go", "list", "-e", "-test", "-tags", strings.Join(suiteTags, ","), "-json=ImportPath,Deps", "./...")
	if err != nil {
		return nil, nil, err
	}
	builds, tests = make(map[string][]string), make(map[string][]string)
	for decoder := json.NewDecoder(strings.NewReader(list)); ; {
		var p struct {
			ImportPath string
			Deps       []string
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return builds, tests, nil
		} else if err != nil {
			return nil, nil, fmt.Errorf("go list: %w", err)
		}
		name := inside(strings.TrimSuffix(p.ImportPath, ".test"))
		if name == "" || strings.Contains(p.ImportPath, " ") {
			continue // a variant of a package, which the program of a test lists
		}
		linked := []string{name}
		for _, d := range p.Deps {
			d, _, _ = strings.Cut(d, " ")
			if d := inside(d); d != "" && !strings.HasSuffix(d, ".test") && !strings.HasSuffix(d, "_test") {
				linked = append(linked, d)
			}
		}
		slices.Sort(linked)
		if linked = slices.Compact(linked); strings.HasSuffix(p.ImportPath, ".test") {
			tests[name] = linked
		} else {
			builds[name] = linked
		}
	}
}

// inside is the folder of an import path, "" where that is another module's.
func inside(importPath string) string {
	if importPath == module {
		return "."
	}
	name, ours := strings.CutPrefix(importPath, module+"/")
	if !ours {
		return ""
	}
	return name
}

// key is a hash of all that the tests of a folder depend on, and of recipe,
// which says how they are run. "..." stands for the whole tree.
func (in *inputs) key(name string, needs []need, recipe string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s%s\n", in.machine, recipe)
	if name == "." || name == "..." {
		fmt.Fprintln(h, in.tree)
	}
	read := []string{"go.mod", "go.sum"}
	for _, d := range in.links[name] {
		in.sources(h, d, d == name)
		read = append(read, doubles[d]...)
		if f := in.folders[d]; f != nil && d == name {
			read = append(read, f.elsewhere...)
			if slices.Contains(f.elsewhere, ".") {
				read = append(read, pages...)
			}
		}
	}
	if slices.Contains(in.links[name], programs) {
		for _, program := range []string{"cmd/stoke", "cmd/stoke-trainer"} {
			for _, d := range in.builds[program] {
				in.sources(h, d, false)
			}
		}
	}
	for _, n := range needs {
		read = append(read, path.Dir(n.script[0]))
	}
	slices.Sort(read)
	in.files(h, slices.Compact(read)...)
	return hex.EncodeToString(h.Sum(nil))[:24]
}

// sources writes the hashes of the files of a package, tests included or not.
func (in *inputs) sources(w io.Writer, name string, tests bool) {
	for _, line := range in.owned[name] {
		if tests || !strings.HasSuffix(line, "_test.go") {
			fmt.Fprintln(w, line)
		}
	}
}

// files writes the hashes of files, and of all files below folders.
func (in *inputs) files(w io.Writer, names ...string) {
	for _, name := range names {
		if hash := in.paths[name]; hash != "" {
			fmt.Fprintln(w, hash, name)
			continue
		}
		var below []string
		for p, hash := range in.paths {
			if strings.HasPrefix(p, name+"/") {
				below = append(below, hash+" "+p)
			}
		}
		slices.Sort(below)
		for _, line := range below {
			fmt.Fprintln(w, line)
		}
	}
}

// environment is the process's own without the variables by which git, when it
// runs a hook, points at the repository of the hook.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"}, name)
	})
}

// output runs a command and returns its standard output.
func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, environment()
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, complaint.String())
	}
	return string(out), nil
}
