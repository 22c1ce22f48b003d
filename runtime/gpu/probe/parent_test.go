package probe

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// startParent runs TestEndsWithItsParent in a process of its own, kills that, and
// returns the number of its child.
func startParent(t *testing.T, path string) (pid int) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("children end with their parent's death on Linux only")
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestEndsWithItsParent$", "-test.v")
	cmd.Env = append(os.Environ(), "PROBE_PARENT="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		fmt.Sscanf(lines.Text(), "child %d", &pid) //nolint:errcheck // another line
	}
	cmd.Process.Kill() //nolint:errcheck // it may have failed
	cmd.Wait()         //nolint:errcheck // it was killed
	if pid == 0 {
		t.Fatal("the process started no child")
	}
	return pid
}
