package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// patience has the times that the supervisor waits before it acts by itself.
type patience struct {
	look     time.Duration // between two looks at the coordinator and at the folder
	beat     time.Duration // without a beat, the coordinator hangs
	first    time.Duration // for its first beat: on a busy machine a program takes long to start
	farewell time.Duration // from the run's end to SIGTERM, for roles that know of it
}

func usualPatience() patience {
	return patience{look: time.Second, beat: 20 * time.Second, first: time.Minute, farewell: 5 * time.Second}
}

// pulse is what the supervisor knows of a coordinator's life since its start.
type pulse struct {
	beats     int
	silent    time.Duration // since the last beat
	idle      time.Duration // of its loop, at the last beat
	committed bool          // an update
	asked     bool          // to stop the run
}

// take notes what a line of the coordinator says of its life.
func (p *pulse) take(line spec.Control) {
	if line.Beat != nil {
		p.beats++
		p.silent, p.idle = 0, time.Duration(line.Beat.Idle*float64(time.Second))
	}
	p.committed = p.committed || line.Committed
}

// hung returns the reason why a coordinator counts as hung, or "". passed is the
// time since the last look. Of a longer time, two looks' time counts: the
// supervisor, and perhaps the whole machine, stood still as well.
func (p *pulse) hung(passed time.Duration, o patience) string {
	p.silent += min(passed, 2*o.look)
	switch {
	case p.beats > 0 && p.silent >= o.beat, p.silent >= o.first:
		return fmt.Sprintf("no sign of life for %v", p.silent.Round(time.Second))
	case p.idle > spec.StuckTime:
		return fmt.Sprintf("it has been at one thing for %v", p.idle.Round(time.Second))
	}
	return ""
}

// endHungCoordinator kills a coordinator that hangs. The supervisor then starts
// the coordinator again, as after any other end.
func (c *processes) endHungCoordinator(passed time.Duration) {
	r := c.roles[0]
	if r.process == nil {
		return
	}
	if why := r.pulse.hung(passed, c.patience); why != "" {
		c.Log.Warn("the coordinator hangs", "pid", r.process.Pid, "why", why)
		r.pulse = pulse{}
		r.process.Kill()
	}
}

// askToStop asks the coordinator to stop the run, once: it answers with the
// outcome. A process that has not sent a beat would die of the signal.
func (c *processes) askToStop() {
	if r := c.roles[0]; r.process != nil && r.pulse.beats > 0 && !r.pulse.asked {
		r.pulse.asked = true
		r.process.Signal(syscall.SIGTERM)
	}
}

// ErrFolderGone means that the run's folder has vanished, or another one is in its
// place. All processes of the run have been killed, and nothing was written.
var ErrFolderGone = errors.New("the run's folder is gone")

// home is the run's folder as it was when the supervisor began.
type home struct {
	path   string
	opened *os.File // so that no other folder gets its number
	is     fs.FileInfo
	missed int // looks in a row that did not find it
}

func openHome(f run.Folder) (*home, error) {
	opened, err := os.Open(string(f))
	if err != nil {
		return nil, err
	}
	is, err := opened.Stat()
	if err != nil {
		opened.Close()
		return nil, err
	}
	return &home{path: string(f), opened: opened, is: is}, nil
}

func (h *home) close() { h.opened.Close() }

// maxMissed is how many looks in a row have to miss the folder: another program
// may be moving it away and back.
const maxMissed = 3

// hasVanished reports whether the folder has vanished or been replaced. Other errors are
// no evidence: a file server may not answer for a while.
func (h *home) hasVanished() bool {
	away, replaced := h.find()
	if h.missed++; !away {
		h.missed = 0
	}
	return replaced || h.missed >= maxMissed
}

// isMissing reports whether the folder is not there right now.
func (h *home) isMissing() bool {
	away, replaced := h.find()
	return away || replaced
}

func (h *home) find() (away, replaced bool) {
	now, err := os.Stat(h.path)
	return errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(now, h.is)
}

// killAll kills and reaps every process.
func (c *processes) killAll() {
	running := 0
	for _, r := range c.roles {
		if r.process != nil {
			running++
			r.process.Kill()
		}
	}
	for running > 0 {
		if e, ok := (<-c.events).(processEnd); ok {
			e.role.process = nil
			running--
		}
	}
	c.readers.Wait()
}
