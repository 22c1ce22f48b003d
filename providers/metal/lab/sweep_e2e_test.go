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
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	root := "/run/stoke-lab/" + slot
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
	if _, err := os.Stat(root); err != nil {
		t.Fatalf("there is nothing to sweep: %v", err)
	}
	lab.Alone(t)
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(mounts), root+"/victim") {
		t.Error("mounts are left")
	}
	for _, left := range []string{root + "/victim", "/run/netns/stoke-lab-" + slot + "-victim"} {
		if _, err := os.Stat(left); err == nil {
			t.Errorf("%s is left", left)
		}
	}
}
