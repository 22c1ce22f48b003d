package program

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"
)

// orphans finds the processes of a generation that are not ranks: descendants of
// this process in a rank's group, with the generation's mark, or children of such.
// Where the process starts nothing else (Spec.Sole), all descendants are. A
// process that has left its group, cleared its environment and lost its parent is
// found only there.
type orphans struct {
	spec *Spec

	mu    sync.Mutex
	ranks map[int]bool // numbers of the ranks' processes, which are the numbers of their groups
	seen  map[process]bool
}

// identity is the process without what changes in its life.
func (p process) identity() process { return process{pid: p.pid, start: p.start} }

func (o *orphans) grouped(p process) bool { return o.ranks[p.group] }

// isOurs reports whether a descendant of this process belongs to the generation,
// whatever its parent is.
func (o *orphans) isOurs(p process) bool {
	return o.spec.Sole || o.grouped(p) || o.seen[p.identity()] || !p.zombie && isMarked(p.pid, o.spec.Member.mark())
}

// list returns the processes that have not ended, and reaps children of this process
// that have.
func (o *orphans) list() []process {
	o.mu.Lock()
	defer o.mu.Unlock()
	all, err := listProcesses()
	if err != nil {
		return nil
	}
	children := make(map[int][]process)
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
	}
	var living []process
	self := os.Getpid()
	seen := make(map[process]bool)
	var visit func(parent int, ours bool)
	visit = func(parent int, ours bool) {
		for _, p := range children[parent] {
			isRank := parent == self && o.ranks[p.pid]
			if parent == self && !isRank && o.spec.Foreign != nil && o.spec.Foreign(p.pid) {
				continue
			}
			mine := ours || isRank || o.isOurs(p)
			if mine {
				seen[p.identity()] = true
			}
			switch {
			case isRank:
			case mine && p.zombie && (parent != self || p.reap()):
			case mine:
				living = append(living, p)
			}
			visit(p.pid, mine)
		}
	}
	visit(self, false)
	o.seen = seen
	return living
}

// reap removes orphans that have ended, so that a long run collects no zombies.
func (o *orphans) reap() { o.list() }

// EndMarked ends all processes of the machine that carry a mark, except this one:
// SIGTERM, after the grace time SIGKILL. A supervisor calls it after the end of an
// agent that could not end its program itself. It returns the numbers of the
// processes that it found.
func EndMarked(ctx context.Context, mark Mark, grace time.Duration) ([]int, error) {
	deadline := time.Now().Add(grace)
	found := make(map[process]bool)
	var pids []int
	for pause := 2 * time.Millisecond; ; pause = min(2*pause, 200*time.Millisecond) {
		all, err := listProcesses()
		if err != nil {
			return pids, err
		}
		left := 0
		for _, p := range all {
			if p.zombie || p.pid == os.Getpid() || !isMarked(p.pid, mark) {
				continue
			}
			left++
			switch id := p.identity(); {
			case !found[id]:
				found[id], pids = true, append(pids, p.pid)
				p.signal(syscall.SIGTERM)
			case !time.Now().Before(deadline):
				p.signal(syscall.SIGKILL)
			}
		}
		if left == 0 {
			return pids, nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return pids, ctx.Err()
		}
	}
}

// AdoptOrphans makes this process the parent of all descendants whose parent ends, as
// Start does.
func AdoptOrphans() error { return adoptOrphans() }

// EndChildren ends the children of this process and their descendants by SIGKILL,
// except children that keep names, and reaps them. It returns the numbers of the
// processes that it found. Orphans that this process has adopted are among them.
func EndChildren(ctx context.Context, keep func(pid int) bool) ([]int, error) {
	found := make(map[process]bool)
	var pids []int
	for pause := time.Millisecond; ; pause = min(2*pause, 100*time.Millisecond) {
		all, err := listProcesses()
		if err != nil {
			return pids, err
		}
		left := 0
		for _, p := range descendants(all, keep) {
			if p.zombie && (p.parent != os.Getpid() || p.reap()) {
				continue
			}
			left++
			if id := p.identity(); !found[id] {
				found[id], pids = true, append(pids, p.pid)
			}
			p.signal(syscall.SIGKILL)
		}
		if left == 0 {
			return pids, nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return pids, ctx.Err()
		}
	}
}

// descendants returns the descendants of this process, without children that keep
// names and the descendants of these.
func descendants(all []process, keep func(pid int) bool) (found []process) {
	children := make(map[int][]process)
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
	}
	self := os.Getpid()
	var visit func(parent int)
	visit = func(parent int) {
		for _, p := range children[parent] {
			if parent == self && keep(p.pid) {
				continue
			}
			found = append(found, p)
			visit(p.pid)
		}
	}
	visit(self)
	return found
}
