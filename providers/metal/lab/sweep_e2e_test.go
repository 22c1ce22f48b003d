//go:build e2e && linux

package lab_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/metal/lab"
)

// TestSweep kills a process with a lab: its machines die with it, and the next
// lab takes away what it left.
func TestSweep(t *testing.T) {
	if os.Getenv("STOKE_LAB_VICTIM") != "" {
		m := lab.Alone(t).Machine("victim")
		os.Stdout.WriteString("up " + m.Address + "\n")
		time.Sleep(time.Hour)
	}
	lab.Alone(t) // skips where there cannot be one
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSweep$")
	cmd.Env = append(os.Environ(), "STOKE_LAB_VICTIM=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var slot string
	for lines := bufio.NewScanner(out); slot == "" && lines.Scan(); {
		if address, ok := strings.CutPrefix(lines.Text(), "up "); ok {
			slot = strings.Split(address, ".")[2]
		}
	}
	if slot == "" {
		t.Fatalf("the victim has no machine: %v", cmd.Wait())
	}
	root := "/run/stoke-lab/" + slot
	if _, err := os.Stat(root + "/victim"); err != nil {
		t.Fatalf("there is nothing to sweep: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	alive := func() (pids []string) {
		links, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, name := range links {
			if line, _ := os.ReadFile(name); strings.Contains(string(line), root+"/victim/root") {
				pids = append(pids, name)
			}
		}
		return pids
	}
	for end := time.Now().Add(20 * time.Second); len(alive()) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the machine survives its process: %v", alive())
		}
	}
	lab.Alone(t)
	// A lab of another process may have come first, and is at it still.
	left := func() (all []string) {
		if mounts, err := os.ReadFile("/proc/self/mountinfo"); err != nil || strings.Contains(string(mounts), root+"/victim") {
			all = append(all, "mounts")
		}
		for _, path := range []string{root + "/victim", "/run/netns/stoke-lab-" + slot + "-victim"} {
			if _, err := os.Stat(path); err == nil {
				all = append(all, path)
			}
		}
		return all
	}
	for end := time.Now().Add(20 * time.Second); len(left()) > 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("what the dead lab left is there: %v", left())
		}
	}
}
