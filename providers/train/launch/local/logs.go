package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// maxLine bounds a line: a longer one is given in parts.
const maxLine = 1 << 20

// source is a file that grows, read line by line.
type source struct {
	role, stream string
	file         *os.File
	reader       *bufio.Reader
	part         []byte       // of a line whose end is not there yet
	next         *launch.Line // read, not given yet
	at           time.Time    // of the newest line that has one
}

func open(path, role, stream string) (*source, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return &source{role: role, stream: stream, file: file, reader: bufio.NewReaderSize(file, 64<<10)}, nil
}

// close closes a source; nil is none.
func (s *source) close() {
	if s != nil {
		s.file.Close()
	}
}

// replaced reports whether the source's path has another file: each term of a
// coordinator writes metrics.jsonl from its beginning, with the events so far.
func (s *source) replaced(path string) bool {
	if s == nil {
		return false
	}
	there, err := os.Stat(path)
	if err != nil {
		return false // the run was removed: what is open can be read to its end
	}
	have, err := s.file.Stat()
	return err == nil && !os.SameFile(have, there)
}

// peek reads the next line that is whole, or with last what there is of one;
// nil where there is none now.
func (s *source) peek(last bool) (*launch.Line, error) {
	for s.next == nil {
		data, err := s.reader.ReadSlice('\n')
		s.part = append(s.part, data...)
		switch {
		case err == nil || len(s.part) >= maxLine || err == io.EOF && last && len(s.part) > 0:
			text := strings.TrimRight(string(s.part), "\r\n")
			s.part = s.part[:0]
			s.next = &launch.Line{Role: s.role, Stream: s.stream, Text: text, Time: stamp(text)}
			if !s.next.Time.IsZero() {
				s.at = s.next.Time
			}
		case errors.Is(err, bufio.ErrBufferFull):
		case err == io.EOF:
			return nil, nil
		default:
			return nil, err
		}
	}
	return s.next, nil
}

// stamp is the time with which our own programs begin a line.
func stamp(text string) time.Time {
	rest, ok := strings.CutPrefix(text, "time=")
	if !ok {
		return time.Time{}
	}
	word, _, _ := strings.Cut(rest, " ")
	t, err := time.Parse(time.RFC3339Nano, word)
	if err != nil {
		return time.Time{}
	}
	return t
}

// sources are the files of a run's logs that were opened so far, by their names.
type sources struct {
	folder run.Folder
	want   launch.LogOptions
	files  map[string]*source
	begun  bool // the older parts of ranks' logs were opened, if there are any
}

func (s *sources) close() {
	for _, f := range s.files {
		f.close()
	}
}

// look opens the files that are new: of roles, and of the ranks of a program in
// folders of their agents.
func (s *sources) look() error {
	entries, err := s.list("")
	for _, e := range entries {
		if e.IsDir() && err == nil {
			err = s.lookForRanks(e.Name())
			continue
		}
		if role, stream := meaning(e.Name()); role != "" && err == nil && s.isWanted(stream, role) {
			err = s.open(e.Name(), e.Name(), role, stream)
		}
	}
	s.begun = true
	return err
}

// list lists a folder of logs: nothing where it does not exist.
func (s *sources) list(name string) ([]os.DirEntry, error) {
	entries, err := os.ReadDir(filepath.Join(s.folder.Logs(), name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

// isWanted reports whether the caller wants a stream of one of these roles.
func (s *sources) isWanted(stream string, roles ...string) bool {
	return (s.want.Role == "" || slices.Contains(roles, s.want.Role)) && (s.want.Stream == "" || s.want.Stream == stream)
}

// The ends of the names of a rank's log and of its older part, which has been renamed.
const (
	rankLog   = ".log"
	olderPart = ".log.1"
)

// lookForRanks opens the logs of an agent's ranks. Both outputs of a rank are in one
// log. The names of its parts sort by age.
func (s *sources) lookForRanks(agent string) error {
	entries, err := s.list(agent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		path := filepath.Join(agent, e.Name())
		if rank, ok := strings.CutSuffix(e.Name(), olderPart); ok && !s.begun && s.isWanted(launch.Stdout, rank, agent) {
			err = s.open(filepath.Join(agent, rank)+" 1", path, rank, launch.Stdout)
		}
		rank, ok := strings.CutSuffix(e.Name(), rankLog)
		if !ok || err != nil || !s.isWanted(launch.Stdout, rank, agent) {
			continue
		}
		key := filepath.Join(agent, rank) + " 3"
		if old := s.files[key]; old.replaced(filepath.Join(s.folder.Logs(), path)) {
			s.files[fmt.Sprintf("%s 2 %d", filepath.Join(agent, rank), len(s.files))] = old // its last lines come first
			delete(s.files, key)
		}
		err = s.open(key, path, rank, launch.Stdout)
	}
	return err
}

// open opens a file, unless it is open or does not exist.
func (s *sources) open(key, path, role, stream string) error {
	if s.files[key] != nil {
		return nil
	}
	f, err := open(filepath.Join(s.folder.Logs(), path), role, stream)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		s.files[key] = f
	}
	return err
}

// meaning tells whose log a file is; "" is none.
func meaning(name string) (role, stream string) {
	role, ok := strings.CutSuffix(name, ".log")
	stream = launch.Stderr
	if !ok {
		if role, ok = strings.CutSuffix(name, ".out"); !ok {
			return "", ""
		}
		stream = launch.Stdout
	}
	kind, index, ok := strings.Cut(role, "-")
	if !ok || !slices.Contains([]string{"coordinator", "ps", "worker", "supervisor"}, kind) {
		return "", ""
	}
	if kind == "coordinator" || kind == "supervisor" {
		return kind, stream
	}
	return kind + "-" + index, stream
}

// drain gives the lines that are there, all files' in the order of time: a line
// without a time follows the one before it in its file.
func (s *sources) drain(ctx context.Context, last bool, give func(launch.Line) error) error {
	for ctx.Err() == nil {
		var first *source
		for _, name := range names(s.files) {
			f := s.files[name]
			line, err := f.peek(last)
			if err != nil {
				return err
			}
			if line != nil && (first == nil || f.at.Before(first.at)) {
				first = f
			}
		}
		if first == nil {
			return nil
		}
		line := *first.next
		first.next = nil
		if err := give(line); err != nil {
			return err
		}
	}
	return nil
}

func names(files map[string]*source) []string {
	all := make([]string, 0, len(files))
	for name := range files {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// Logs merges the files of the run's processes by the time of their lines.
func (l *Launcher) Logs(ctx context.Context, id string, o launch.LogOptions, give func(launch.Line) error) error {
	f, err := l.find(id)
	if err != nil {
		return err
	}
	s := &sources{folder: f, want: o, files: make(map[string]*source)}
	defer s.close()
	return l.follow(ctx, id, o.Follow, func(last bool) error {
		if err := s.look(); err != nil {
			return fmt.Errorf("read logs: %w", err)
		}
		return s.drain(ctx, last, give)
	})
}

// looksPerStatus is how many times the files of a run are read for each time that its
// status is: a status has the usage of all roles.
const looksPerStatus = 5

// phase returns the phase of a run, without the rest of Status.
func (l *Launcher) phase(id string) (spec.Phase, error) {
	f, err := l.find(id)
	if err != nil {
		return "", err
	}
	s, err := f.Status()
	if err == nil && s.Phase == spec.Pending && !Alive(f) {
		return spec.Lost, nil
	}
	return s.Phase, err
}

// follow calls read until the run is over, or once; last tells that there is
// nothing to come.
func (l *Launcher) follow(ctx context.Context, id string, on bool, read func(last bool) error) error {
	for n := 0; ; n++ {
		over := !on
		if on && n%looksPerStatus == 0 {
			// Asked before reading: what it says last is there then.
			s, err := l.phase(id)
			if errors.Is(err, launch.ErrNoRun) {
				return nil // it was removed meanwhile
			}
			over = err == nil && (s.Final() && !l.alive(id) || s == spec.Lost)
		}
		if err := read(over); err != nil || over {
			return err
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return nil
		}
	}
}

// alive reports whether a supervisor still owns the run.
func (l *Launcher) alive(id string) bool { return Alive(l.place.Folder(id)) }

// Metrics reads the run's own record of events.
func (l *Launcher) Metrics(ctx context.Context, id string, want run.EventFilter, follow bool, give func(spec.Event) error) error {
	f, err := l.find(id)
	if err != nil {
		return err
	}
	var events *run.Events
	defer func() {
		if events != nil {
			events.Close() //nolint:errcheck // it was only read
		}
	}()
	return l.follow(ctx, id, follow, func(bool) error {
		// Events that a superseded coordinator still writes to the old file do
		// not belong to the run.
		if events != nil && events.IsReplaced(f.Metrics()) {
			events.Close() //nolint:errcheck // it was only read
			events = nil
		}
		if events == nil {
			if events, err = run.OpenEvents(f.Metrics(), want); errors.Is(err, fs.ErrNotExist) {
				return nil
			} else if err != nil {
				return fmt.Errorf("read metrics: %w", err)
			}
		}
		for ctx.Err() == nil {
			e, ok, err := events.Next()
			if err != nil {
				return fmt.Errorf("read metrics: %w", err)
			}
			if !ok {
				return nil
			}
			want.After = e.Number
			if err := give(e); err != nil {
				return err
			}
		}
		return nil
	})
}
