package supervisor

import (
	"bytes"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stokehq/stoke/runtime/process"
)

// Roles inherit the settings of the thread that starts them, which no other
// goroutine gets to run on.
func TestSleepsOfRolesMayBePutOff(t *testing.T) {
	const file = "/proc/self/timerslack_ns"
	s := process.NewThread(beginStarting)
	slackOf := func(start func(*exec.Cmd) error) int64 {
		t.Helper()
		var out bytes.Buffer
		cmd := exec.Command("cat", file)
		cmd.Stdout = &out
		if err := start(cmd); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Skipf("%s: %v", file, err)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(out.String()), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for range 2 {
		if got := slackOf(func(cmd *exec.Cmd) error { return s.Do(cmd.Start) }); got != slack.Nanoseconds() {
			t.Errorf("a role's sleeps may be put off by %d ns, want %d", got, slack.Nanoseconds())
		}
	}
	s.Close()
	if got := slackOf((*exec.Cmd).Start); got == slack.Nanoseconds() {
		t.Error("the supervisor's own thread has the roles' settings")
	}
}
