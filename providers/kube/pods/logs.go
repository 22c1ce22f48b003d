package pods

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stokehq/stoke/providers"
)

// atOnce is how many logs are read at the same time: the lines of so many
// containers come in the order of time.
const atOnce = 64

// Logs calls line for the lines of all containers, in the order of time, and
// with o.Follow for new lines, also of later pods. Following ends when all of
// the objects are Jobs and pods that have ended. o.Role names a pod, one of its
// containers ("web-1/main"), or an object ("web", "Deployment/web").
func (s *Set) Logs(ctx context.Context, o providers.RunLogs, line func(providers.RunLine) error) error {
	if o.Stream != "" {
		return &providers.RunError{Summary: "Streams of pods are one", Detail: "A cluster keeps what a container writes to stdout and to stderr in one log. Leave -stream out."}
	}
	f, err := s.find(ctx)
	if err != nil {
		return err
	}
	l := &logs{s: s, o: o, line: line, told: make(map[string]string)}
	sources := l.sources(f)
	if len(f.pods) == 0 {
		l.wait("", explainNoPods(f))
	}
	cursors := make([]cursor, len(sources))
	for begin := 0; begin < len(sources); begin += atOnce {
		end := min(begin+atOnce, len(sources))
		if err := l.merge(ctx, sources[begin:end], cursors[begin:end]); err != nil {
			return stopped(ctx, err)
		}
	}
	if !o.Follow || o.Previous {
		return nil
	}
	return stopped(ctx, l.follow(ctx, f, sources, cursors))
}

// stopped drops an error that follows from the end of ctx: the caller has
// stopped.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// explainNoPods returns the reason why a role has no pods.
func explainNoPods(f *objectSet) string {
	for _, r := range f.roots {
		if said := condition(r.u); said != "" {
			return "there are no pods: " + said
		}
	}
	return "there are no pods"
}

// logs is one call of Logs.
type logs struct {
	s *Set
	o providers.RunLogs

	mu   sync.Mutex // guards what follows, and calls of both callbacks
	line func(providers.RunLine) error
	told map[string]string // reasons of waiting roles, as last reported
}

// emit hands a line out.
func (l *logs) emit(line providers.RunLine) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.line(line); err != nil {
		return fmt.Errorf("%w: %w", errUnwanted, err)
	}
	return nil
}

// errUnwanted: the receiver of the lines does not want more.
var errUnwanted = errors.New("lines cannot be handed out")

// wait reports why a role has no log yet, once for each reason.
func (l *logs) wait(role, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.o.Waiting != nil && l.told[role] != why {
		l.told[role] = why
		l.o.Waiting(role, why)
	}
}

// sources are the logs that there are now of the containers that are wanted.
func (l *logs) sources(f *objectSet) (all []source) {
	for _, p := range f.pods {
		for _, c := range l.s.containers(p) {
			if !wants(l.o.Role, f, p, c) {
				continue
			}
			present, before := attempts(p, c.name)
			switch {
			case l.o.Previous:
				if before.id == "" {
					l.wait(c.role, "it has not been started again")
					continue
				}
			case present.id == "":
				l.wait(c.role, waiting(p))
				continue
			}
			all = append(all, source{p, c, l.o.Previous})
		}
	}
	return all
}

// wants reports whether a role includes a container. "" is all.
func wants(role string, f *objectSet, p *core.Pod, c container) bool {
	pod, _, several := strings.Cut(c.role, "/")
	if role == "" || role == c.role || role == pod || !several && role == c.role+"/"+c.name {
		return true
	}
	r := f.owner(p)
	return r != nil && (role == r.Name || role == r.Kind+"/"+r.Name)
}

// merge reads logs to their present ends, in the order of time.
func (l *logs) merge(ctx context.Context, sources []source, cursors []cursor) error {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	defer done.Wait()
	defer cancel()
	heads := make([]head, 0, len(sources))
	for i, of := range sources {
		lines, ended := make(chan providers.RunLine, 64), make(chan error, 1)
		done.Go(func() {
			defer close(lines)
			ended <- l.s.read(ctx, of, false, !l.o.Follow || l.o.Previous, &cursors[i], func(line providers.RunLine) error {
				select {
				case lines <- line:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			})
		})
		heads = append(heads, head{source: of, lines: lines, ended: ended})
	}
	for i := range heads {
		if err := heads[i].next(); err != nil {
			return err
		}
	}
	for {
		first := -1
		for i := range heads {
			if heads[i].there && (first < 0 || heads[i].line.Time.Before(heads[first].line.Time)) {
				first = i
			}
		}
		if first < 0 {
			return nil
		}
		if err := l.emit(heads[first].line); err != nil {
			return err
		}
		if err := heads[first].next(); err != nil {
			return err
		}
	}
}

// head is the first line of a log that was not handed out yet.
type head struct {
	source
	lines chan providers.RunLine
	ended chan error
	line  providers.RunLine
	there bool
}

func (h *head) next() error {
	before := h.line.Time
	if h.line, h.there = <-h.lines; !h.there {
		return unreadable(h.source, <-h.ended)
	}
	if h.line.Time.IsZero() { // it belongs to the line before it
		h.line.Time = before
	}
	return nil
}

// unreadable is an error of reading a log, nil for none and for a pod that has
// gone since.
func unreadable(of source, err error) error {
	switch {
	case err == nil, apierrors.IsNotFound(err):
		return nil
	case errors.Is(err, errUnwanted):
		return err
	}
	return fmt.Errorf("read the log of %s: %w", of.role, err)
}

// Names lists what may be given as a role, of the present pods.
func (s *Set) Names(ctx context.Context) ([]string, error) {
	f, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, r := range f.roots {
		all = append(all, r.Name, r.Kind+"/"+r.Name)
	}
	for _, p := range f.pods {
		all = append(all, s.role(p))
		for _, c := range s.containers(p) {
			all = append(all, s.role(p)+"/"+c.name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
