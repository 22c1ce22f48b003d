package stoke_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// platforms are the systems that links lists packages for.
var platforms = []string{"linux/amd64", "darwin/arm64"}

var (
	stokeLinks   = sync.OnceValues(func() ([]link, error) { return links("./cmd/stoke", "") })
	trainerLinks = sync.OnceValues(func() ([]link, error) { return links("./cmd/stoke-trainer", "") })
	gpuLinks     = sync.OnceValues(func() ([]link, error) { return links("./cmd/stoke-trainer", "gpu") })
	healthLinks  = sync.OnceValues(func() ([]link, error) { return linksOn("./cmd/stoke-gpu", "", "1", "linux/amd64") })
	commands     = map[string]func() ([]link, error){"stoke": stokeLinks, "stoke-trainer": trainerLinks, "stoke-trainer-gpu": gpuLinks, "stoke-gpu": healthLinks}
)

// link is a package in a command, with its module; "" for the standard library.
type link struct{ name, module string }

// links lists the packages of a command, built with some tags, on all platforms.
func links(command, tags string) ([]link, error) { return linksOn(command, tags, "0", platforms...) }

// linksOn lists the packages of a command on some platforms, with cgo ("1") or without
// ("0"). It compiles nothing, so that cgo needs no compiler.
func linksOn(command, tags, cgo string, platforms ...string) ([]link, error) {
	var all []link
	for _, platform := range platforms {
		system, processor, _ := strings.Cut(platform, "/")
		var complaint bytes.Buffer
		list := exec.Command("go", "list", "-deps", "-tags="+tags, "-f", "{{.ImportPath}} {{with .Module}}{{.Path}}{{end}}", command)
		list.Env = append(os.Environ(), "CGO_ENABLED="+cgo, "GOOS="+system, "GOARCH="+processor)
		list.Stderr = &complaint
		out, err := list.Output()
		if err != nil {
			return nil, fmt.Errorf("list the packages of %s on %s: %w\n%s", command, platform, err, complaint.String())
		}
		for line := range strings.Lines(string(out)) {
			name, module, _ := strings.Cut(strings.TrimSpace(line), " ")
			all = append(all, link{name, module})
		}
	}
	return all, nil
}

// linked lists the modules, apart from ours, that a command links on Linux or
// macOS; sorted. go.mod has their versions.
func linked(t *testing.T, command string) []string {
	t.Helper()
	all, err := commands[command]()
	if err != nil {
		t.Fatal(err)
	}
	var modules []string
	for _, l := range all {
		if l.module != "" && l.module != house {
			modules = append(modules, l.module)
		}
	}
	slices.Sort(modules)
	return slices.Compact(modules)
}

// TestLinkedModules shows a new dependency in review: it is a line in a golden
// file.
func TestLinkedModules(t *testing.T) {
	for _, name := range []string{"stoke", "stoke-trainer", "stoke-trainer-gpu", "stoke-gpu"} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(linked(t, name), "\n") + "\n"
			golden := filepath.Join("testdata", "linked", name+".txt")
			if *update {
				if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("read the golden list: %v; write it with: go test . -run TestLinkedModules -update", err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s links other modules than %s says (-listed +linked):\n%s\n"+
					"Is it wanted? Then: go test . -run TestLinkedModules -update, and say in the commit why.", name, golden, diff)
			}
		})
	}
}

// TestBinariesAreStatic holds that the default binaries run without a C library:
// what loads plugins for devices makes a binary dynamic, and is linked into the
// trainer for GPUs only.
func TestBinariesAreStatic(t *testing.T) {
	for _, command := range []string{"stoke", "stoke-trainer"} {
		all, err := commands[command]()
		if err != nil {
			t.Fatal(err)
		}
		if found := dynamic(all); len(found) > 0 {
			t.Errorf("cmd/%s links %s, which makes it dynamic: only cmd/stoke-trainer-gpu may", command, strings.Join(found, ", "))
		}
	}
}

// dynamic returns the packages that make a binary need a C library.
func dynamic(all []link) []string {
	var found []string
	for _, l := range all {
		switch {
		case l.name == "runtime/cgo", l.module == "github.com/ebitengine/purego", l.name == house+"/runtime/pjrt", l.name == house+"/runtime/cuda":
			found = append(found, l.name)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestDynamicBinariesAreNoticed(t *testing.T) {
	all, err := links("./runtime/pjrt", "")
	if err != nil {
		t.Fatal(err)
	}
	found := dynamic(all)
	for _, want := range []string{"github.com/ebitengine/purego", house + "/runtime/pjrt"} {
		if !slices.Contains(found, want) {
			t.Errorf("%s is not noticed in %q", want, found)
		}
	}
	if got := dynamic([]link{{"net", ""}, {"runtime/cgo", ""}}); !slices.Equal(got, []string{"runtime/cgo"}) {
		t.Errorf("got %q, want runtime/cgo", got)
	}
}
