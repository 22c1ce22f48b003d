package program

import (
	"os/exec"
	"testing"
)

// With Spec.Sole, a child that is not the program's stays.
func TestForeignChildStays(t *testing.T) {
	other := exec.Command("sleep", "1000")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer other.Wait()
	defer other.Process.Kill()
	s := newSpec(t, "forks", 1)
	s.Sole, s.Grace, s.Foreign = true, 0, func(pid int) bool { return pid == other.Process.Pid }
	g, _ := launch(t, s)
	if r := g.Wait(); len(r.Leftovers) > 0 {
		t.Errorf("left: %v", r.Leftovers)
	}
	if p, err := readProcess(other.Process.Pid); err != nil || p.zombie {
		t.Errorf("the child has ended: %+v, %v", p, err)
	}
}
