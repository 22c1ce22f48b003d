//go:build e2e && linux

package lab

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Releases of Debian that machines run, by their codenames.
const (
	Bookworm = "bookworm" // 12, which machines run unless a lab says otherwise
	Trixie   = "trixie"   // 13, on control groups of version 2 without controllers: no kubelet
)

// findRecipe finds testdata/machines from the folder of the package under test.
func findRecipe() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		recipe := filepath.Join(dir, "testdata", "machines")
		if _, err := os.Stat(filepath.Join(recipe, "build-rootfs")); err == nil {
			return recipe, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("testdata/machines is not in a folder above this test: run it in stoke's repository")
		}
		dir = filepath.Dir(dir)
	}
}

// cache is the folder for what is made once.
func cache() (string, error) {
	dir := os.Getenv("STOKE_LAB_CACHE")
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(user, "stoke-lab")
	}
	return dir, os.MkdirAll(dir, 0o755)
}

// rootfs returns the file system that machines start from. It is built when
// there is none yet of this recipe.
func rootfs(logf func(string, ...any), recipe, codename string) (string, error) {
	dir, err := cache()
	if err != nil {
		return "", err
	}
	sources, err := sources(codename)
	if err != nil {
		return "", err
	}
	key, err := recipeKey(recipe, codename, sources)
	if err != nil {
		return "", err
	}
	root := filepath.Join(dir, codename+"-"+key)
	lock, err := os.OpenFile(root+".lock", os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil { // another test may be building it
		return "", err
	}
	if _, err := os.Stat(root); err == nil {
		return root, nil
	}
	began := time.Now()
	half := root + ".half"
	list := root + ".list"
	if err := os.RemoveAll(half); err != nil {
		return "", err
	}
	if err := os.WriteFile(list, []byte(sources), 0o644); err != nil {
		return "", err
	}
	cmd := exec.Command(filepath.Join(recipe, "build-rootfs"), half, codename, list)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w:\n%s", err, lastLines(string(out), 30))
	}
	if err := os.Rename(half, root); err != nil {
		return "", err
	}
	logf("built %s in %.0f s", root, time.Since(began).Seconds())
	return root, nil
}

// recipeKey names a root file system by all that it is made from.
func recipeKey(recipe, codename, sources string) (string, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.GOARCH, codename, sources)
	content, err := os.ReadFile(filepath.Join(recipe, "build-rootfs"))
	if err != nil {
		return "", err
	}
	sum.Write(content)
	return fmt.Sprintf("%x", sum.Sum(nil)[:8]), nil
}

// sources says where machines have their packages from, as lines of apt's
// sources.list: where this machine has its own from, if that is Debian too,
// whatever its release, or STOKE_LAB_MIRROR.
func sources(codename string) (string, error) {
	if mirror := os.Getenv("STOKE_LAB_MIRROR"); mirror != "" {
		return "deb " + mirror + " " + codename + " main\n", nil
	}
	var lines []string
	names, _ := filepath.Glob("/etc/apt/sources.list.d/*")
	for _, name := range append([]string{"/etc/apt/sources.list"}, names...) {
		content, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		switch filepath.Ext(name) {
		case ".list":
			lines = append(lines, oneLine(string(content), codename)...)
		case ".sources":
			lines = append(lines, stanzas(string(content), codename)...)
		}
	}
	if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasSuffix(l, " "+codename+" main") }) {
		return "", fmt.Errorf("apt on this machine has no source for Debian %s: say where there is one in STOKE_LAB_MIRROR", codename)
	}
	var once []string // this machine may have several releases
	for _, l := range lines {
		if !slices.Contains(once, l) {
			once = append(once, l)
		}
	}
	return strings.Join(once, "\n") + "\n", nil
}

// oneLine takes what is ours from a sources.list.
func oneLine(content, codename string) []string {
	var lines []string
	for line := range strings.Lines(content) {
		line, _, _ = strings.Cut(line, "#")
		if open := strings.Index(line, "["); open >= 0 { // options
			if end := strings.Index(line, "]"); end > open {
				line = line[:open] + line[end+1:]
			}
		}
		if f := strings.Fields(line); len(f) > 3 && f[0] == "deb" {
			lines = append(lines, debianLines(codename, f[1:2], f[2:3], f[3:])...)
		}
	}
	return lines
}

// stanzas takes what is ours from a file in the deb822 format.
func stanzas(content, codename string) []string {
	var lines []string
	for stanza := range strings.SplitSeq(content, "\n\n") {
		field := map[string][]string{}
		for line := range strings.Lines(stanza) {
			if name, value, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "#") {
				field[strings.ToLower(name)] = strings.Fields(value)
			}
		}
		if slices.Contains(field["types"], "deb") && !slices.Contains(field["enabled"], "no") {
			lines = append(lines, debianLines(codename, field["uris"], field["suites"], field["components"])...)
		}
	}
	return lines
}

func debianLines(codename string, uris, suites, components []string) []string {
	var lines []string
	for _, uri := range uris {
		for _, suite := range suites {
			release, part, _ := strings.Cut(suite, "-")
			ours := (release == Bookworm || release == Trixie) && (part == "" || part == "updates" || part == "security")
			suite = strings.Replace(suite, release, codename, 1)
			if ours && slices.Contains(components, "main") && strings.HasPrefix(uri, "http") {
				lines = append(lines, "deb "+uri+" "+suite+" main")
			}
		}
	}
	return lines
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
