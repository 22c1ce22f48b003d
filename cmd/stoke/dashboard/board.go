package dashboard

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stokehq/stoke/providers"
)

// Bounds of reading statuses.
const (
	atOnce     = 16 // statuses that are read at the same time
	patience   = 15 * time.Second
	freshLive  = time.Second // for so long a status is not read again
	freshEnded = 20 * time.Second
)

// row is one run as the board knows it.
type row struct {
	Entry
	run    providers.Run // nil: none was found
	status providers.RunStatus
	err    error
	read   time.Time // zero: it was not read yet
}

// isLive reports whether the run may still change.
func (r *row) isLive() bool {
	return r.run != nil && r.err == nil && r.status.Ended.IsZero()
}

// board keeps the newest status of every run. Reading one may take a round trip to a
// cluster, so that all are read together, and several viewers share what was read.
type board struct {
	source Source
	ctx    context.Context // of reading: it outlives a request that asked for it
	cancel context.CancelFunc
	slots  chan struct{}
	work   sync.WaitGroup

	mu    sync.Mutex
	cells map[string]*cell
}

// cell is a row that is read again when it is old.
type cell struct {
	row  row
	busy chan struct{} // closed when the reading ends; nil: none is under way
}

func newBoard(source Source) *board {
	b := &board{source: source, slots: make(chan struct{}, atOnce), cells: make(map[string]*cell)}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b
}

// close ends all reading and waits for it.
func (b *board) close() {
	b.cancel()
	b.work.Wait()
}

// rows returns all runs. It waits at most so long for statuses that are old; a
// run whose status takes longer keeps its old one, or has none.
func (b *board) rows(ctx context.Context, wait time.Duration) ([]row, error) {
	entries, err := b.source.Runs(ctx)
	if err != nil {
		return nil, err
	}
	cells := b.refresh(entries)
	await(ctx, cells, wait)
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make([]row, len(cells))
	for i, w := range cells {
		all[i] = w.cell.row
	}
	return all, nil
}

// waited is a cell, and the end of its reading.
type waited struct {
	cell *cell
	busy chan struct{}
}

// refresh begins to read all old statuses.
func (b *board) refresh(entries []Entry) []waited {
	b.mu.Lock()
	defer b.mu.Unlock()
	cells := make(map[string]*cell, len(entries))
	all := make([]waited, len(entries))
	for i, e := range entries {
		all[i] = b.look(e)
		cells[e.Address] = all[i].cell
	}
	b.cells = cells
	return all
}

// isOld reports whether the status has to be read again.
func (c *cell) isOld() bool {
	fresh := freshEnded
	if c.row.isLive() || c.row.err != nil {
		fresh = freshLive
	}
	return time.Since(c.row.read) > fresh
}

// read reads the status of one run, whose row was copied when the reading began.
func (b *board) read(c *cell, r row) {
	defer b.work.Done()
	select {
	case b.slots <- struct{}{}:
		defer func() { <-b.slots }()
	case <-b.ctx.Done():
	}
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	run, status, err := r.run, providers.RunStatus{}, error(nil)
	if run == nil {
		run, err = r.Run(ctx)
	}
	if err == nil {
		status, err = run.Status(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c.row.read, c.row.err = time.Now(), err
	switch {
	case err == nil:
		c.row.run, c.row.status = run, status
	case errors.Is(err, providers.ErrNoRun):
		c.row.run = nil
	}
	close(c.busy)
	c.busy = nil
}

// await waits for readings, at most so long.
func await(ctx context.Context, cells []waited, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for _, w := range cells {
		if w.busy == nil {
			continue
		}
		select {
		case <-w.busy:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// find returns the run with a key, with a status that is not old; ok is false
// where the source has no such run.
func (b *board) find(ctx context.Context, key string) (r row, ok bool, err error) {
	entries, err := b.source.Runs(ctx)
	if err != nil {
		return row{}, false, err
	}
	for i := range entries {
		if keyOf(entries[i].Address) != key {
			continue
		}
		w := b.refreshOne(entries[i])
		await(ctx, []waited{w}, patience)
		b.mu.Lock()
		defer b.mu.Unlock()
		return w.cell.row, true, nil
	}
	return row{}, false, nil
}

// refreshOne begins to read one old status, and keeps the others.
func (b *board) refreshOne(e Entry) waited {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := b.look(e)
	b.cells[e.Address] = w.cell
	return w
}

// look begins to read the status of an entry if it is old. Called with mu held.
func (b *board) look(e Entry) waited {
	c := b.cells[e.Address]
	if c == nil || c.row.ID != e.ID {
		c = &cell{row: row{Entry: e}}
	}
	c.row.Configuration, c.row.Run = e.Configuration, e.Run
	if c.busy == nil && c.isOld() && b.ctx.Err() == nil {
		c.busy = make(chan struct{})
		b.work.Add(1)
		go b.read(c, c.row)
	}
	return waited{c, c.busy}
}

// isGone reports whether nothing is left of the run, or it has not begun.
func (r *row) isGone() bool { return errors.Is(r.err, providers.ErrNoRun) }
