package state

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"sync"
	"testing"
)

// memory is a Store that can die: after a number of steps nothing works any
// more, and what it then holds is what a disk would.
type memory struct {
	mu       sync.Mutex
	snapshot []byte
	version  int
	journal  []byte // nil: none
	synced   int    // how much of journal survives a power failure
	backup   []byte
	own      bool // journal is nobody else's
	appends  int
	syncs    int

	steps int // left before death; negative: immortal
	how   death
	rand  *rand.Rand
	log   []string
}

// death says what becomes of the step that it strikes.
type death int

const (
	before  death = iota // nothing was done
	halfway              // an append was done in part, everything else not at all
	after                // it was done, but nobody was told
	power                // as before, and what was not synced is gone in part
	deaths
)

var errDead = errors.New("the process is dead")

func newMemory() *memory { return &memory{steps: -1, rand: rand.New(rand.NewSource(1))} }

// revive is the store as the next process finds it.
func (m *memory) revive() *memory {
	n := newMemory()
	n.snapshot, n.version, n.journal, n.synced, n.backup = m.snapshot, m.version, m.journal, len(m.journal), m.backup
	return n
}

// step does one step of work, or dies of it.
func (m *memory) step(name string, do func(), half func()) error {
	if m.steps >= 0 || len(m.log) < 100 {
		m.log = append(m.log, name)
	}
	if m.steps < 0 {
		do()
		return nil
	}
	if m.steps == 0 {
		return errDead
	}
	if m.steps--; m.steps > 0 {
		do()
		return nil
	}
	switch m.how {
	case halfway:
		if half != nil {
			half()
		}
	case after:
		do()
	case power:
		if rest := len(m.journal) - m.synced; rest > 0 {
			m.journal = m.journal[:m.synced+m.rand.Intn(rest+1)]
		}
	}
	return errDead
}

func (m *memory) Names() (string, string) { return "memory", "memory.journal" }

func (m *memory) ReadSnapshot(context.Context) ([]byte, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.snapshot == nil {
		return nil, "", nil
	}
	return m.snapshot, fmt.Sprint(m.version), nil
}

func (m *memory) WriteSnapshot(_ context.Context, data []byte, ifVersion string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v := fmt.Sprint(m.version); m.snapshot != nil && v != ifVersion || m.snapshot == nil && ifVersion != "" {
		return "", &ConflictError{"memory"}
	}
	err := m.step("write snapshot", func() { m.snapshot = data; m.version++ }, nil)
	return fmt.Sprint(m.version), err
}

func (m *memory) Backup(_ context.Context, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.step("backup", func() { m.backup = data }, nil)
}

func (m *memory) ReadJournal(context.Context) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.journal, nil
}

func (m *memory) Append(_ context.Context, at int64, b []byte, durable bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at == 0 && len(m.journal) > 0 || int(at) > len(m.journal) {
		return fmt.Errorf("append at %d of %d", at, len(m.journal))
	}
	put := func(b []byte) {
		if !m.own { // others may look at the bytes
			m.journal, m.own = append([]byte{}, m.journal...), true
		}
		m.journal = append(m.journal[:at], b...)
		m.synced = min(m.synced, int(at))
	}
	if err := m.step("append", func() { put(b) }, func() { put(b[:m.rand.Intn(len(b)+1)]) }); err != nil {
		return err
	}
	m.appends++
	if !durable {
		return nil
	}
	m.syncs++
	return m.step("sync", func() { m.synced = len(m.journal) }, nil)
}

func (m *memory) DropJournal(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.step("drop journal", func() { m.journal = nil; m.synced = 0; m.own = false }, nil)
}

func (m *memory) Lock(context.Context, LockInfo) (Lock, error) { return nil, errors.ErrUnsupported }

// open opens a store and fails the test if that does not work.
func open(t testing.TB, s Store) *File {
	t.Helper()
	f, err := Open(context.Background(), s)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return f
}

func begin(t testing.TB, f *File) *Journal {
	t.Helper()
	j, err := f.Begin(context.Background())
	if err != nil {
		t.Fatalf("begin: %v", err)
	}
	return j
}

func closeJournal(t testing.TB, j *Journal) {
	t.Helper()
	if err := j.Close(context.Background()); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func (m *memory) ForceUnlock(context.Context, string) error { return errors.ErrUnsupported }
