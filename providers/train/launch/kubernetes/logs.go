package kubernetes

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	connected "github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// maxLine bounds one line of a log.
const maxLine = 1 << 20

// streamOf separates the two streams, which Kubernetes merges into one log:
// standard output has only the coordinator's events, which have a known form.
func streamOf(text string) string {
	if strings.HasPrefix(text, `{"n":`) || strings.HasPrefix(text, `{"role":`) {
		return launch.Stdout
	}
	return launch.Stderr
}

// Logs gives the lines of pods: of a run that was collected from this machine,
// else from the cluster, those of ended containers first. The log of a container that
// runs is followed by one request.
func (l *Launcher) Logs(ctx context.Context, id string, o launch.LogOptions, line func(launch.Line) error) error {
	c, err := l.cluster(ctx)
	if err != nil {
		return err
	}
	line = rankLines(&o, line)
	into := newTranscript(o.Stream, line)
	f := newFollowed(ctx, c, id, o.Follow)
	defer f.end()
	var live *tails
	if o.Follow {
		live = newTails(ctx, c)
		defer live.end()
	}
	for {
		s, err := f.look(ctx)
		if err != nil {
			return err
		}
		if len(s.pods) == 0 {
			if found, err := collectedLogs(run.Folder(filepath.Join(l.folder, id)), o, line); found || err != nil {
				return err
			}
		}
		for _, p := range byAge(s.pods) {
			if o.Role != "" && roleName(&p) != o.Role {
				continue
			}
			if err := c.podLog(ctx, &p, into, live); err != nil {
				return err
			}
		}
		if state, ok := s.recorded(); !o.Follow || ok && state.Phase.Final() || s.isOver() {
			return nil
		}
		if err := live.wait(ctx, f, into); ctx.Err() != nil {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// isOver reports whether no pod of the run is running or will start.
func (s *sight) isOver() bool {
	status := s.derived()
	_, ended := s.outcome()
	return running(s.pods) == nil && (ended || status.Phase != spec.Pending)
}

func byAge(pods []core.Pod) []core.Pod {
	all := slices.Clone(pods)
	slices.SortStableFunc(all, func(a, b core.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return all
}

// transcript gives the lines of containers, each once.
type transcript struct {
	stream string // "" for both
	line   func(launch.Line) error
	given  map[string]time.Time // the last line of each container, by its ID
	whole  map[string]bool      // containers that have ended, and of which all is given
}

func newTranscript(stream string, line func(launch.Line) error) *transcript {
	return &transcript{stream, line, make(map[string]time.Time), make(map[string]bool)}
}

// add gives a line that was not given yet.
func (s *transcript) add(p *core.Pod, id, text string) error {
	at, rest := stamped(text)
	if text == "" || !at.After(s.given[id]) {
		return nil
	}
	s.given[id] = at
	stream := streamOf(rest)
	if s.stream != "" && s.stream != stream {
		return nil
	}
	return s.line(launch.Line{Role: roleName(p), Stream: stream, Time: at, Text: rest})
}

// podLog gives the lines of a pod's containers that were not given yet, the
// previous container's first. Containers that run are left to tails, where there are
// any.
func (c *cluster) podLog(ctx context.Context, p *core.Pod, into *transcript, live *tails) error {
	for _, st := range p.Status.ContainerStatuses {
		if st.Name != container {
			continue
		}
		for n, attempt := range []*core.ContainerState{&st.LastTerminationState, &st.State} {
			switch {
			case attempt.Running != nil && live != nil:
				live.follow(p, st.ContainerID, into.given[st.ContainerID])
			case attempt.Running != nil:
				if err := c.containerLog(ctx, p, st.ContainerID, n == 0, into); err != nil {
					return err
				}
			case attempt.Terminated != nil && !into.whole[attempt.Terminated.ContainerID]:
				id := attempt.Terminated.ContainerID
				if err := c.containerLog(ctx, p, id, n == 0, into); err != nil {
					return err
				}
				into.whole[id] = true
			}
		}
	}
	return nil
}

func (c *cluster) containerLog(ctx context.Context, p *core.Pod, id string, previous bool, into *transcript) error {
	if id == "" {
		return nil
	}
	body, err := c.PodLog(ctx, p.Namespace, p.Name, connected.LogOptions{Container: container, Previous: previous, Timestamps: true, Since: into.given[id]})
	if apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) {
		return nil // it is gone by now, or has not begun
	}
	if err != nil {
		return fmt.Errorf("log of pod %s: %w", p.Name, err)
	}
	defer body.Close()
	lines := bufio.NewReaderSize(body, 64<<10)
	for {
		text, err := readLine(lines)
		if failed := into.add(p, id, text); failed != nil {
			return failed
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("log of pod %s: %w", p.Name, err)
		}
	}
}

// readLine reads a line without its end, cut where it is too long.
func readLine(r *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		part, more, err := r.ReadLine()
		if b.Len() < maxLine {
			b.Write(part)
		}
		if err != nil || !more {
			return b.String(), err
		}
	}
}

// stamped splits the time off that a kubelet puts before a line.
func stamped(text string) (time.Time, string) {
	before, rest, _ := strings.Cut(text, " ")
	at, err := time.Parse(time.RFC3339Nano, before)
	if err != nil {
		return time.Time{}, text
	}
	return at, rest
}

// collectLogs writes what each role has said to a file of its own.
func (c *cluster) collectLogs(ctx context.Context, s *sight, at run.Folder) (err error) {
	folder, err := os.OpenRoot(at.Logs()) // which no name that a cluster gives leads out of
	if err != nil {
		return err
	}
	defer folder.Close()
	files := make(map[string]*os.File)
	defer func() {
		for _, f := range files {
			err = errors.Join(err, f.Close())
		}
	}()
	// The events are the metrics, which have a file of their own.
	into := newTranscript(launch.Stderr, func(l launch.Line) error {
		f := files[l.Role]
		if f == nil {
			var err error
			if f, err = folder.OpenFile(l.Role+".log", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
				return err
			}
			files[l.Role] = f
		}
		_, err := fmt.Fprintln(f, l.Text)
		return err
	})
	for _, p := range byAge(s.pods) {
		if err := c.podLog(ctx, &p, into, nil); err != nil {
			return err
		}
	}
	return nil
}

// collectedLogs gives the lines that were collected on this machine; false:
// nothing was.
func collectedLogs(at run.Folder, o launch.LogOptions, line func(launch.Line) error) (bool, error) {
	entries, err := os.ReadDir(at.Logs())
	if err != nil {
		return false, nil
	}
	folder, err := os.OpenRoot(at.Logs())
	if err != nil {
		return true, err
	}
	defer folder.Close()
	for _, e := range entries {
		role, ok := strings.CutSuffix(e.Name(), ".log")
		if !ok || o.Role != "" && role != o.Role || o.Stream == launch.Stdout {
			continue
		}
		if err := fileLog(folder, e.Name(), role, line); err != nil {
			return true, err
		}
	}
	return true, nil
}

func fileLog(folder *os.Root, name, role string, line func(launch.Line) error) error {
	file, err := folder.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, 64<<10)
	for {
		text, err := readLine(lines)
		if text != "" {
			if err := line(launch.Line{Role: role, Stream: launch.Stderr, Text: text}); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
