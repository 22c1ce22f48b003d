package usage

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stokehq/stoke/runtime/process"
)

// tick is the unit of times in /proc: USER_HZ is 100 on all architectures that Go
// runs on.
const tick = 10 * time.Millisecond

// searchReads is the mean number of files that the search for new processes may
// read in one sample.
const searchReads = 256

// counts has the numbers of one process.
type counts struct {
	parent  int
	start   uint64 // with the number of the process, this is unique
	cpu     time.Duration
	memory  int64 // pages
	read    int64 // bytes
	written int64 // bytes
}

// sampleProcesses sums the processes of the tree, and adds the processes that have ended.
func (m *Meter) sampleProcesses(s *Sample) error {
	tree, err := m.tree()
	if err != nil {
		return err
	}
	now := make(map[int]counts, len(tree))
	refused := 0
	for _, pid := range tree {
		p, err := m.readStat(pid)
		if err != nil {
			continue // it has ended since
		}
		if err := m.readDisk(pid, &p); err != nil {
			if was := m.known[pid]; was.start == p.start { // it is ending: its files are closed first
				p.read, p.written = was.read, was.written
			}
			if errors.Is(err, fs.ErrPermission) {
				refused++
			}
		}
		now[pid] = p
	}
	for pid, p := range m.known {
		if now[pid].start != p.start {
			m.ended.cpu += p.cpu
			m.ended.read += p.read
			m.ended.written += p.written
		}
	}
	m.known = now
	s.CPU, s.Read, s.Written, s.Processes = m.ended.cpu, m.ended.read, m.ended.written, len(now)
	for _, p := range now {
		s.CPU += p.cpu
		s.Memory += p.memory * m.page
		s.Read += p.read
		s.Written += p.written
	}
	if refused > 0 {
		s.Partly = fmt.Sprintf("the disk bytes of %d processes may not be read", refused)
	}
	return nil
}

// tree returns the roots and their descendants. On a machine with many processes
// it looks for new ones less often.
func (m *Meter) tree() ([]int, error) {
	roots := m.roots()
	if m.rest > 0 {
		m.rest--
		known := slices.Collect(maps.Keys(m.known))
		for _, pid := range roots {
			if !slices.Contains(known, pid) {
				known = append(known, pid)
			}
		}
		return known, nil
	}
	names, err := m.list(m.proc)
	if err != nil {
		return nil, err
	}
	children, read := make(map[int][]int), 0
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		read++
		if p, err := m.readStat(pid); err == nil {
			children[p.parent] = append(children[p.parent], pid)
		}
	}
	m.rest = read / searchReads
	all, seen := slices.Clone(roots), make(map[int]bool)
	for _, pid := range roots {
		seen[pid] = true
	}
	for i := 0; i < len(all); i++ {
		for _, pid := range children[all[i]] {
			if !seen[pid] {
				seen[pid] = true
				all = append(all, pid)
			}
		}
	}
	return all, nil
}

// readStat reads the state of a process. The time of reaped children is left out:
// most were measured when they ran.
func (m *Meter) readStat(pid int) (counts, error) {
	text, err := m.read(filepath.Join(m.proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return counts{}, err
	}
	s, err := process.ParseStat(pid, text)
	return counts{parent: s.Parent, start: s.Start, cpu: time.Duration(s.CPU) * tick, memory: s.Pages}, err
}

// readDisk reads /proc/PID/io, which only the owner of a process may.
func (m *Meter) readDisk(pid int, p *counts) error {
	text, err := m.read(filepath.Join(m.proc, strconv.Itoa(pid), "io"))
	if errors.Is(err, syscall.EACCES) {
		return fs.ErrPermission
	}
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), ": "); key {
		case "read_bytes":
			p.read = number(value)
		case "write_bytes":
			p.written = number(value)
		}
	}
	return nil
}
