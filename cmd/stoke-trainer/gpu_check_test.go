package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checkParts runs a script of parts in a folder, as gpu-check does with LONG=1, and returns
// its output and exit status.
func checkParts(t *testing.T, folder, script string) (string, int) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	parts, err := filepath.Abs("../../tools/gpu-check/parts.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bash, "-c", "set -u\n. "+parts+"\n"+script)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), asTrainer+"=1", "TRAINER="+os.Args[0])
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// A long check goes on where its last call ended, does no unit twice, and does not repeat a
// part that has failed. The script's clock is set by hand.
func TestLongCheckGoesOn(t *testing.T) {
	folder := t.TempDir()
	const script = `
		LIMIT=100
		unit() { echo "$1 $2 of $3" >>done; SECONDS=$((SECONDS + 40)); made=1; }
		bulk() { echo "bulk $1 of $2" >>done; SECONDS=$((SECONDS + 90)); made=$((200 - $1 < 90 ? 200 - $1 : 90)); }
		broken() { echo "broken" >>done; }
		unset SECONDS # it is a plain number from then on
		SECONDS=0
		part models 3 40 unit models
		part kills 200 80 bulk
		part bad 1 10 broken
		part last 1 10 unit last
		finish`
	for i, want := range []struct {
		code int
		done string // by this call
		says string
	}{
		{3, "models 0 of 100\nmodels 1 of 60\n", "models                             2 of 3"},
		{3, "models 2 of 100\n", "kills                              0 of 200"},
		{3, "bulk 0 of 100\n", "kills                              90 of 200"},
		{3, "bulk 90 of 100\n", "run the same command again"},
		{1, "bulk 180 of 100\nbroken\nlast 0 of 10\n", "bad                                FAILED"},
		{1, "", "kills                              200 of 200"},
	} {
		os.Remove(filepath.Join(folder, "done")) //nolint:errcheck // the first call finds none
		out, code := checkParts(t, folder, script)
		done, _ := os.ReadFile(filepath.Join(folder, "done"))
		if code != want.code || string(done) != want.done || !strings.Contains(out, want.says) {
			t.Errorf("call %d: status %d, want %d; done\n%swant\n%s\n%s", i, code, want.code, done, want.done, out)
		}
	}
}

// The helpers of gpu-check read what the trainer and the machine print.
func TestCheckHelpers(t *testing.T) {
	out, code := checkParts(t, t.TempDir(), `
		n=$("$TRAINER" bench mlp --engine cpu --shape 4x4 --batch 4 --mode lease --seconds 0.01 | steps)
		awk -v n="$n" 'BEGIN { exit !(n > 0) }' || echo "steps: $n"
		[ "$(rss $$)" -gt 500 ] || echo "rss: $(rss $$)"
		[ -z "$(rss 0)" ] || echo "rss of no process"
		grows 1000 1030 3 && echo "3 % are not more than 3 %"
		grows 1000 1031 3 || echo "3.1 % are more"
		grows 0 5 3 || echo "no first number"
		same() { echo "bits mlp 1f"; echo "took $RANDOM"; }
		other() { echo "bits mlp $RANDOM$RANDOM"; }
		same_bits same || echo "the same bits"
		same_bits other && echo "other bits"
		same_bits true && echo "no bits"
		unset SECONDS; STATE=x; LIMIT=10; SECONDS=0
		half() { exit 9; }
		note a 1 2
		(part a 2 5 half)
		[ "$(done_of a)" = 1 ] || echo "killed: $(cat x)"
		true`)
	if out = strings.TrimSpace(out); code != 0 || out != "1 models have the same bits in two processes" {
		t.Errorf("status %d: %s", code, out)
	}
}
