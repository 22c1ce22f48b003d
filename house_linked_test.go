package stoke_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// linked lists the modules, apart from ours, of which packages are linked into
// a command on Linux or macOS; sorted. Versions are go.mod's affair.
func linked(t *testing.T, command string) []string {
	t.Helper()
	var modules []string
	for _, platform := range []string{"linux/amd64", "darwin/arm64"} {
		system, processor, _ := strings.Cut(platform, "/")
		var complaint bytes.Buffer
		list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", command)
		list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor)
		list.Stderr = &complaint
		out, err := list.Output()
		if err != nil {
			t.Fatalf("list what %s links on %s: %v\n%s", command, platform, err, complaint.String())
		}
		modules = append(modules, strings.Fields(string(out))...)
	}
	slices.Sort(modules)
	return slices.DeleteFunc(slices.Compact(modules), func(m string) bool { return m == house })
}

// TestLinkedModules shows a new dependency in review: it is a line in a golden
// file.
func TestLinkedModules(t *testing.T) {
	for _, name := range []string{"stoke", "stoke-trainer"} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(linked(t, "./cmd/"+name), "\n") + "\n"
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
