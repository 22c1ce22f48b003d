package cuda

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// machine is what this package sees of a machine. Tests use a folder as root.
type machine struct {
	root       string // of all absolute paths
	lookup     func(string) (string, bool)
	executable string // the running program
}

func thisMachine() machine {
	m := machine{root: "/", lookup: os.LookupEnv}
	if path, err := os.Executable(); err == nil {
		m.executable = path
	}
	return m
}

func (m machine) getenv(name string) string {
	value, _ := m.lookup(name)
	return value
}

// path returns where an absolute path is.
func (m machine) path(absolute string) string { return filepath.Join(m.root, absolute) }

func (m machine) read(absolute string) (string, error) {
	data, err := os.ReadFile(m.path(absolute))
	return string(data), err
}

// systemFolders are searched by the dynamic linker.
func (m machine) systemFolders() []string {
	triple := "x86_64-linux-gnu"
	if runtime.GOARCH == "arm64" {
		triple = "aarch64-linux-gnu"
	}
	return append(m.list("LD_LIBRARY_PATH"), "/lib/"+triple, "/usr/lib/"+triple, "/lib64", "/usr/lib64", "/lib", "/usr/lib")
}

// list returns the absolute folders of a variable such as PATH.
func (m machine) list(name string) []string {
	return slices.DeleteFunc(filepath.SplitList(m.getenv(name)), func(dir string) bool { return !filepath.IsAbs(dir) })
}

// pythonFolders are folders of Python packages, an activated environment first, then the
// environments whose python3 is in PATH.
func (m machine) pythonFolders() []string {
	var folders []string
	for _, dir := range append([]string{m.getenv("VIRTUAL_ENV"), m.getenv("CONDA_PREFIX")}, m.pythonPrefixes()...) {
		if dir != "" {
			folders = append(folders, filepath.Join(dir, "lib/python3*/site-packages"), filepath.Join(dir, "lib64/python3*/site-packages"))
		}
	}
	if home := m.getenv("HOME"); home != "" {
		folders = append(folders, filepath.Join(home, ".local/lib/python3*/site-packages"))
	}
	return append(folders, "/usr/local/lib/python3*/site-packages", "/usr/local/lib/python3*/dist-packages",
		"/usr/lib/python3*/site-packages", "/usr/lib/python3/dist-packages", "/opt/*/lib/python3*/site-packages",
		"/opt/*/.venv/lib/python3*/site-packages")
}

// pythonPrefixes returns the folders of Python environments in PATH: an environment has
// bin/python3, or PATH has a link to that. The system's own Python is left out.
func (m machine) pythonPrefixes() []string {
	var prefixes []string
	for _, dir := range m.list("PATH") {
		python := filepath.Join(dir, "python3")
		if !isFile(m.path(python), true) {
			target, err := os.Readlink(m.path(python)) // tests have a folder as root
			if err != nil || !isFile(m.path(target), true) {
				continue
			}
		}
		files := []string{python}
		if target, err := os.Readlink(m.path(python)); err == nil && filepath.IsAbs(target) {
			files = append(files, target)
		}
		for _, file := range files {
			prefix := filepath.Dir(filepath.Dir(file))
			if prefix != "/" && prefix != "/usr" && prefix != "/usr/local" && !slices.Contains(prefixes, prefix) {
				prefixes = append(prefixes, prefix)
			}
		}
	}
	return prefixes
}

// folders are all places where files of XLA and CUDA are looked for, in order:
// patterns of absolute paths.
func (m machine) folders() []string {
	folders := append(m.pythonFolders(), "/opt/stoke/gpu")
	if m.executable != "" {
		folders = append(folders, filepath.Dir(m.executable))
	}
	return append(folders, "/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda")
}

// match returns the files of patterns below the folders: the first folder's
// first. Of files that one pattern matches the last is first, as it has the
// higher version.
func (m machine) match(folders, patterns []string) []string {
	var found []string
	for _, folder := range folders {
		for _, pattern := range patterns {
			list, err := filepath.Glob(filepath.Join(m.path(folder), pattern))
			if err != nil {
				continue // a folder's name is not a pattern: no file is in it
			}
			slices.Reverse(list)
			found = append(found, list...)
		}
	}
	return found
}

// isFile reports whether a path is a file that can be read, or executed.
func isFile(path string, executable bool) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (!executable || info.Mode()&0o111 != 0)
}

// inWords lists folders for people.
func inWords(folders []string) string { return strings.Join(folders, ", ") }
