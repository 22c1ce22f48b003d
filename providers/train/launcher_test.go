package train

import (
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestOneFileKnowsWhereRunsAre: everything else speaks to launch.Launcher.
func TestOneFileKnowsWhereRunsAre(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	knows := 0
	for _, e := range entries {
		name := e.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, imported := range file.Imports {
			if strings.Contains(imported.Path.Value, "providers/train/launch/") {
				knows++
				if name != "launcher.go" {
					t.Errorf("%s imports %s: go through launch.Launcher", name, imported.Path.Value)
				}
			}
		}
	}
	if knows == 0 {
		t.Error("nobody imports a launcher: the test does not see the package")
	}
}
