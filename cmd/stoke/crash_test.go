package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKilledCommand lets a configuration live a random life: objects are
// made, changed, replaced in both orders, deleted, imported, moved, taken out
// of the state; and at a random moment of each of these, and now and then of
// the run after it too, stoke is killed with SIGKILL. The next run finishes
// the work. Then files, state and the provider's own log agree one to one.
func TestKilledCommand(t *testing.T) {
	t.Parallel()
	if underRace {
		t.Skip("processes that are killed tell the race detector nothing")
	}
	stoke, err := exec.LookPath("stoke") // this binary: see TestMain
	if err != nil {
		t.Fatal(err)
	}
	for _, where := range []string{"local", "http"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			l := newLife(t, stoke, where, rand.New(rand.NewPCG(seed, 0)))
			l.live(crashMoments / 2)
			t.Logf("seed %d: %d runs killed, and %d of those that were to mend it, with about %d objects: %s",
				seed, l.killed, l.killedAgain, crashObjects, l.tally())
		})
	}
}

// chapter is one thing that happens in a life: a command that is killed, and
// what has to be true in the end.
type chapter struct {
	name    string
	args    []string    // of the command to kill
	arrange func()      // changes configuration and wishes before it
	settled func()      // after the next whole run of it: what there is to tidy up
	again   func() bool // reports whether the command's work is there already, so that it need not succeed
}

// life is a folder with a configuration, and what is wished of it.
type life struct {
	t     *testing.T
	rng   *rand.Rand
	stoke string
	dir   string
	where string

	model
	unlock              func() // takes the lock of a killed run away
	counts              map[string]int
	killed, killedAgain int
	took                map[string]time.Duration // how long a whole run of each chapter takes
}

func newLife(t *testing.T, stoke, where string, rng *rand.Rand) *life {
	l := &life{
		t: t, rng: rng, stoke: stoke, dir: t.TempDir(), where: where,
		counts: map[string]int{}, took: map[string]time.Duration{},
		model: newModel(),
	}
	l.keep(t)
	l.write()
	l.must("init", "-input=false")
	l.must("apply", "-auto-approve", "-input=false")
	return l
}

func (l *life) live(moments int) {
	chapters := l.chapters()
	for l.killed < moments {
		c := chapters[l.rng.IntN(len(chapters))]
		if c.arrange != nil {
			c.arrange()
		}
		l.write()
		took := l.took[c.name]
		if took == 0 {
			took = 60 * time.Millisecond
		}
		delay := time.Duration(l.rng.Int64N(int64(took)))
		if l.kill(c.args, delay) {
			l.killed++
			l.counts[c.name]++
		} else {
			l.took[c.name] = took * 3 / 4 // it ended first: aim earlier
		}
		if l.rng.IntN(4) == 0 && l.kill(c.args, time.Duration(l.rng.Int64N(int64(took)))) {
			l.killedAgain++
		}
		began := time.Now()
		l.finish(c)
		l.took[c.name] = max(l.took[c.name], time.Since(began))
		if c.settled != nil {
			c.settled()
		}
		l.write()
		l.must("apply", "-auto-approve", "-input=false")
		l.check()
		if l.t.Failed() {
			l.t.Fatalf("after %s, killed after %s", c.name, delay)
		}
	}
}

// finish runs the chapter's command to its end. A command whose work the
// killed run has already done may say so.
func (l *life) finish(c chapter) {
	out, err := l.command(c.args...).CombinedOutput()
	if err != nil && (c.again == nil || !c.again()) {
		l.t.Fatalf("%s: %v\n%s", strings.Join(c.args, " "), err, tail(out))
	}
}

func (l *life) command(args ...string) *exec.Cmd {
	cmd := exec.Command(l.stoke, append([]string{"-chdir=" + l.dir}, args...)...)
	cmd.Env = append(os.Environ(), "TF_IN_AUTOMATION=1", "NO_COLOR=1", "TF_INPUT=0")
	return cmd
}

// kill starts a run and kills it after the delay; false when it ended before.
func (l *life) kill(args []string, delay time.Duration) bool {
	cmd := l.command(args...)
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	time.Sleep(delay)
	cmd.Process.Kill()
	cmd.Wait()
	l.unlock()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

func (l *life) must(args ...string) []byte {
	l.t.Helper()
	cmd := l.command(args...)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		l.t.Fatalf("%s: %v\n%s%s", strings.Join(args, " "), err, tail(out), complaint.String())
	}
	return out
}

func (l *life) tally() string {
	var parts []string
	for _, c := range l.chapters() {
		parts = append(parts, fmt.Sprintf("%s %d", c.name, l.counts[c.name]))
	}
	return strings.Join(parts, ", ")
}

func tail(b []byte) []byte { return b[max(0, len(b)-4000):] }

// pick draws up to n keys of a map.
func pick(rng *rand.Rand, from map[string]file, n int) []string {
	keys := slices.Sorted(maps.Keys(from)) // so that the seed decides
	rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	return keys[:min(n, len(keys))]
}
