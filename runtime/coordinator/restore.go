package coordinator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"time"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/ledger"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// checkpoints lists the folders of checkpoints, the oldest first; final is not
// among them.
func (c *coordinator) checkpoints() []string {
	found, err := filepath.Glob(filepath.Join(c.Folder.Checkpoints(), "step-*"))
	if err != nil {
		return nil
	}
	sort.Strings(found)
	return found
}

// readManifest reads and checks one checkpoint against the run.
func (c *coordinator) readManifest(folder string) (Manifest, *ledger.Book, error) {
	var m Manifest
	if err := run.ReadJSON(filepath.Join(folder, manifestName), &m); err != nil {
		return m, nil, err
	}
	sum, err := m.sum()
	if err != nil {
		return m, nil, err
	}
	if sum != m.Checksum {
		return m, nil, fmt.Errorf("%s is damaged: its checksum does not match", manifestName)
	}
	if m.Run != c.hash || m.Records != c.records() {
		return m, nil, errors.New("it belongs to another run")
	}
	if !same(m.Model, c.Workload.Model) || !same(m.Vars, c.Workload.Vars) {
		return m, nil, errOtherModel
	}
	if c.void(m) {
		return m, nil, errors.New("the run went back behind it: it is not of its history")
	}
	book, err := ledger.Load(m.Records, m.Whole, m.Ledger)
	return m, book, err
}

// errOtherModel is about a checkpoint that the trainer's model cannot go on
// from.
var errOtherModel = errors.New("its model has other layers than this stoke-trainer's")

// same reports whether two values are the same as data.
func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// void reports whether the run has gone back behind a checkpoint since it was
// cut: then its updates are no part of the run's history.
func (c *coordinator) void(m Manifest) bool {
	for _, r := range c.journal.restores {
		if r.generation > m.Generation && r.step < m.Step {
			return true
		}
	}
	return false
}

// finished looks for the final model of a run whose end nobody was told.
func (c *coordinator) finished() bool {
	m, book, err := c.readManifest(c.Folder.Final())
	if err != nil || !c.whole(c.Folder.Final()) {
		return false
	}
	return book.Epochs() >= c.Spec.Epochs || c.Spec.MaxSteps > 0 && m.Step >= int64(c.Spec.MaxSteps)
}

// conclude makes the final model's cut the run's own state, and its end.
func (c *coordinator) conclude(m Manifest) error {
	book, err := ledger.Load(m.Records, m.Whole, m.Ledger)
	if err != nil {
		return err
	}
	c.note(spec.Event{Type: spec.EventCheckpoint, Epoch: book.Epochs(), Message: fmt.Sprintf("step %d", m.Step)})
	if m.Generation != c.generation || c.book == nil {
		c.adopt(m, book)
	}
	c.updates, c.saved, c.done = nil, m.Step, true
	return nil
}

// restore brings all servers to the newest checkpoint that is whole, or to
// the start, and begins a generation.
func (c *coordinator) restore(ctx context.Context) error {
	c.clock.pause()
	c.message = "connecting to the parameter servers"
	c.publish(spec.Running)
	folders := append(c.checkpoints(), "") // "" = the start
	for i, j := 0, len(folders)-2; i < j; i, j = i+1, j-1 {
		folders[i], folders[j] = folders[j], folders[i]
	}
	for _, folder := range folders {
		m := Manifest{Evaluated: -1}
		book := ledger.NewBook(c.records())
		if folder != "" {
			var err error
			if m, book, err = c.readManifest(folder); errors.Is(err, errOtherModel) {
				// To begin anew would throw away what was trained.
				return stopped{spec.CauseTrainer, fmt.Sprintf("checkpoint %s cannot be used: %v; use the one that it was trained with", filepath.Base(folder), err)}
			} else if err != nil {
				c.Log.Error("checkpoint is not usable", "folder", folder, "error", err)
				continue
			}
		}
		err := c.restoreServers(ctx, folder, m)
		if errors.As(err, new(damaged)) {
			c.damaged[folder] = m.Checksum
			c.Log.Error("checkpoint is not usable", "folder", folder, "error", err)
			continue
		}
		if err != nil {
			return err
		}
		c.rewind(m, book)
		return nil
	}
	return fail("the parameter servers could not be initialised; see their logs")
}

// damaged is a server's error about a checkpoint's files.
type damaged struct{ error }

// restoreServers sends every server its span, again and again while servers
// are lost on the way.
func (c *coordinator) restoreServers(ctx context.Context, folder string, m Manifest) error {
	for {
		if err := c.servers.connect(ctx); err != nil {
			return err
		}
		c.generation++
		c.version = m.Step
		c.note(spec.Event{Type: spec.EventRestore, Message: folder})
		if err := c.journal.sync(); err != nil { // a generation is never used twice
			return full(err)
		}
		err := c.restoreOnce(folder, m)
		if !errors.Is(err, errServers) {
			return err
		}
		c.Log.Warn("server lost while restoring", "error", err)
	}
}

func (c *coordinator) restoreOnce(folder string, m Manifest) error {
	n := engine.Length(c.Workload.Vars)
	var initial []float32
	if folder == "" {
		initial = make([]float32, n)
		if err := c.Workload.Model.Init(c.Spec.Seed, initial); err != nil {
			return err
		}
	}
	for i := range c.Servers {
		from, to := span(n, i, len(c.Servers))
		r := wire.Restore{
			Generation: c.generation, Version: m.Step, From: from, To: to,
			Vars: engine.Cut(c.Workload.Vars, from, to), Recipe: c.recipe(c.Spec.Worker.Replicas),
			Files: m.Files, Folder: folder,
		}
		var values []float32
		if initial != nil {
			values = initial[from:to]
		}
		if _, err := c.servers.askOne(i, wire.TypeRestore, r, values); err != nil {
			if folder != "" && !errors.Is(err, errServers) {
				return damaged{err}
			}
			return err
		}
	}
	return nil
}

// span is the part of n values that server i of k holds.
func span(n, i, k int) (from, to int) { return n * i / k, n * (i + 1) / k }

// rewind sets the run's own state to the cut that the servers are at.
func (c *coordinator) rewind(m Manifest, book *ledger.Book) {
	c.adopt(m, book)
	for _, member := range c.members {
		clear(member.held)
		if c.Spec.Asynchronous { // one may wait for what is not going to come
			c.applied(member)
		}
	}
	c.saved, c.cut, c.cutAt = m.Step, m.Step, time.Now()
	c.forecast()
	c.publish(spec.Running)
	// What a killed process left half written.
	if junk, err := filepath.Glob(filepath.Join(c.Folder.Checkpoints(), ".new-*")); err == nil && !c.saving {
		for _, j := range junk {
			if err := os.RemoveAll(j); err != nil && !errors.Is(err, fs.ErrNotExist) {
				c.Log.Warn("cannot remove", "error", err)
			}
		}
	}
}

// adopt takes over what a manifest says of the run.
func (c *coordinator) adopt(m Manifest, book *ledger.Book) {
	c.version, c.book, c.queue = m.Step, book, newQueue(book, c.Spec.Epochs)
	c.steps = m.Step
	c.updates, c.evaluation, c.discard = nil, nil, nil
	c.leases = make(map[int64]*lease)
	c.final = false
	c.evaluated, c.loss = m.Evaluated, float64(m.Loss)
	c.skipped, c.skips = m.Skipped, 0
	c.metrics = make(map[string]float64)
	for _, name := range append([]string{"loss"}, c.Workload.Model.Metrics...) {
		if v, ok := m.Metrics[name]; ok {
			c.metrics[name] = v
		}
	}
	if c.clock.total == 0 {
		c.clock.total = time.Duration(m.Training * float64(time.Second))
	}
	c.message = ""
}
