package hosttest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/host"
)

// Checks is a part of the golden list of all that plans say of machines: what
// is wrong, what would change and what that interrupts. A change of the code
// that is to change nothing for users leaves the list as it is.
type Checks struct{ text strings.Builder }

// NewChecks begins a part of the list, which the end of the test compares with
// providers/metal/testdata/checks/PART.txt, or writes there with -update.
func NewChecks(t testing.TB, part string) *Checks {
	t.Helper()
	file := filepath.Join(checksFolder(t), part+".txt")
	c := &Checks{}
	t.Cleanup(func() {
		got := strings.TrimPrefix(c.text.String(), "\n")
		if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" && !t.Failed() {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Error(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			return
		}
		if string(want) != got {
			is := strings.Split(got, "\n")
			for i, line := range strings.Split(string(want), "\n") {
				if i >= len(is) || is[i] != line {
					t.Errorf("%s:%d is\n%s\nand now it would be\n%s", file, i+1, line, strings.Join(is[min(i, len(is)):min(i+1, len(is))], ""))
					return
				}
			}
			t.Errorf("%s: there is more now:\n%s", file, strings.TrimPrefix(got, string(want)))
		}
	})
	return c
}

// checksFolder finds the folder above the working folder of a test, which is at or
// below providers/metal: with -trimpath a program does not know its sources.
func checksFolder(t testing.TB) string {
	t.Helper()
	for dir, tries := ".", 0; tries < 4; dir, tries = filepath.Join(dir, ".."), tries+1 {
		folder := filepath.Join(dir, "testdata", "checks")
		if found, err := os.Stat(folder); err == nil && found.IsDir() {
			return folder
		}
	}
	t.Fatal("providers/metal/testdata/checks is not found from the folder of this test")
	return ""
}

// Case begins what is said in one case.
func (c *Checks) Case(format string, args ...any) { fmt.Fprintf(&c.text, "\n## "+format+"\n", args...) }

// Say adds a line; what is of several lines is indented.
func (c *Checks) Say(format string, args ...any) {
	c.text.WriteString(strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "\n    ") + "\n")
}

// Changes adds changes with what they interrupt.
func (c *Checks) Changes(changes []host.Change) {
	for _, x := range changes {
		reloads := ""
		if x.Reloads {
			reloads = ", and reloads systemd"
		}
		c.Say("change %s [%s]: %q -> %q (%s%s)", x.Fact, strings.Join(x.Path, " "), x.Have, x.Want, x.Disruption, reloads)
	}
}
