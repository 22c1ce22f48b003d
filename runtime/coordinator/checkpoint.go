package coordinator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// Manifest is one checkpoint: a cut of the whole run. The random state needs
// no place of its own: everything drawn is a function of the seed, the epoch
// and the record.
type Manifest struct {
	Step       int64              `json:"step"`
	Generation int64              `json:"generation"`
	Run        string             `json:"run"` // the spec's hash
	Seed       uint64             `json:"seed"`
	Model      *engine.Model      `json:"model"`
	Vars       []engine.Var       `json:"vars"`
	Recipe     engine.Recipe      `json:"recipe"`
	Records    int64              `json:"records"` // in the training set
	Ledger     []spec.EpochLedger `json:"ledger"`
	Skipped    int64              `json:"skipped"`
	Training   float64            `json:"training_seconds"`
	Metrics    map[string]float64 `json:"metrics"`
	Evaluated  int64              `json:"evaluated"`
	Loss       spec.Number        `json:"loss"`
	Files      []wire.File        `json:"files"`
	Saved      time.Time          `json:"saved"`
	Checksum   string             `json:"checksum"` // of this file with an empty checksum
}

func (m Manifest) sum() (string, error) {
	m.Checksum = ""
	data, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:]), nil
}

const (
	manifestName = "manifest.json"
	writeTime    = 10 * time.Minute // the longest that writing may take
)

// saving is a checkpoint that is being written.
type saving struct {
	manifest Manifest
	final    bool
}

// written is the event of its end.
type written struct {
	manifest Manifest
	final    bool
	err      error
}

// checkpoint cuts the servers at the present version; they write the files
// while training goes on.
func (c *coordinator) checkpoint(ctx context.Context, final bool) error {
	if _, err := c.servers.ask(wire.TypeCut, wire.Cut{Generation: c.generation, Version: c.version}); err != nil {
		return err
	}
	c.saved, c.saving, c.final = c.version, true, c.final || final
	s := &saving{final: final, manifest: Manifest{
		Step: c.version, Generation: c.generation, Run: c.hash, Seed: c.Spec.Seed,
		Model: c.Task.Model, Vars: c.Task.Vars, Recipe: c.recipe(c.Spec.Worker.Replicas),
		Records: c.records(), Ledger: c.book.Save(), Skipped: c.skipped, Training: c.clock.read().Seconds(),
		Metrics: c.status.Load().Metrics, Evaluated: c.evaluated, Loss: spec.Number(c.loss), Saved: time.Now(),
	}}
	c.saves.Go(func() {
		err := c.write(ctx, s)
		c.post(ctx, written{s.manifest, s.final, err})
	})
	return nil
}

// write lets every server write its file into a folder that gets its name
// only once it is whole.
func (c *coordinator) write(ctx context.Context, s *saving) error {
	name := stepName(s.manifest.Step)
	if s.final {
		name = filepath.Base(c.Folder.Final())
	}
	temporary, err := os.MkdirTemp(c.Folder.Checkpoints(), ".new-*")
	if err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	defer os.RemoveAll(temporary)
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	for i, address := range c.Servers {
		file, err := writeOne(ctx, address, c.Token, wire.Write{Folder: temporary, Name: fmt.Sprintf("server-%d-of-%d.f32", i, len(c.Servers))})
		if err != nil {
			return fmt.Errorf("write checkpoint: server %d: %w", i, err)
		}
		s.manifest.Files = append(s.manifest.Files, file)
	}
	if s.manifest.Checksum, err = s.manifest.sum(); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	if err := spec.WriteJSON(filepath.Join(temporary, manifestName), s.manifest); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	to := filepath.Join(c.Folder.Checkpoints(), name)
	if err := os.RemoveAll(to); err != nil { // of an earlier generation
		return fmt.Errorf("write checkpoint: %w", err)
	}
	if err := os.Rename(temporary, to); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	return spec.SyncDir(c.Folder.Checkpoints())
}

func stepName(step int64) string { return fmt.Sprintf("step-%012d", step) }

// writeOne asks one server over a connection of its own, so that commits need
// not wait.
func writeOne(ctx context.Context, address, token string, w wire.Write) (wire.File, error) {
	conn, err := wire.Dial(ctx, address, wire.Hello{Token: token, Role: "coordinator", PID: os.Getpid()})
	if err != nil {
		return wire.File{}, err
	}
	defer conn.Close()
	if err := conn.Send(wire.TypeWrite, w, nil); err != nil {
		return wire.File{}, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	m, err := conn.Receive(writeTime)
	if err != nil {
		return wire.File{}, err
	}
	var a wire.Answer
	if err := m.Decode(&a); err != nil {
		return wire.File{}, err
	}
	if a.Error != "" {
		return wire.File{}, errors.New(a.Error)
	}
	return a.File, nil
}

// checkpointed notes that a checkpoint is on disk and lets old ones go.
func (c *coordinator) checkpointed(w written) error {
	c.saving = false
	if w.manifest.Generation != c.generation && !w.final {
		// The run went back behind it meanwhile: it is of a past that is void.
		if err := os.RemoveAll(filepath.Join(c.Folder.Checkpoints(), stepName(w.manifest.Step))); err != nil {
			c.Log.Warn("cannot remove a void checkpoint", "error", err)
		}
		return nil
	}
	if w.err != nil {
		if w.final {
			return fail("the final model could not be saved: %v", w.err)
		}
		c.Log.Error("checkpoint failed; training goes on", "error", w.err)
		c.note(spec.Event{Type: spec.EventCheckpoint, Message: w.err.Error()})
		return nil
	}
	c.note(spec.Event{Type: spec.EventCheckpoint, Epoch: c.epoch(), Message: fmt.Sprintf("step %d", w.manifest.Step)})
	c.Log.Info("checkpoint saved", "step", w.manifest.Step, "final", w.final)
	found := c.checkpoints()
	for _, old := range found[:max(0, len(found)-c.Spec.Checkpoint.Keep)] {
		if err := os.RemoveAll(old); err != nil {
			c.Log.Warn("cannot remove an old checkpoint", "error", err)
		}
	}
	return nil
}

// checkpoints lists the folders of whole checkpoints, the oldest first; final
// is not among them.
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
	if err := spec.ReadJSON(filepath.Join(folder, manifestName), &m); err != nil {
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
	book, err := ledger.Load(m.Records, m.Ledger)
	return m, book, err
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
			if m, book, err = c.readManifest(folder); err != nil {
				c.Log.Error("checkpoint is not usable", "folder", folder, "error", err)
				continue
			}
		}
		err := c.restoreServers(ctx, folder, m)
		if errors.As(err, new(damaged)) {
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
			return fmt.Errorf("write metrics: %w", err)
		}
		err := c.restoreOnce(folder, m)
		if !errors.Is(err, errServers) {
			return err
		}
		c.Log.Warn("server lost while restoring", "error", err)
	}
}

func (c *coordinator) restoreOnce(folder string, m Manifest) error {
	n := engine.Length(c.Task.Vars)
	var initial []float32
	if folder == "" {
		initial = make([]float32, n)
		if err := c.Task.Model.Init(c.Spec.Seed, initial); err != nil {
			return err
		}
	}
	for i := range c.Servers {
		from, to := span(n, i, len(c.Servers))
		r := wire.Restore{
			Generation: c.generation, Version: m.Step, From: from, To: to,
			Vars: engine.Cut(c.Task.Vars, from, to), Recipe: c.recipe(c.Spec.Worker.Replicas),
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

// rewind sets the run's own state to the cut.
func (c *coordinator) rewind(m Manifest, book *ledger.Book) {
	c.version, c.book, c.queue = m.Step, book, newQueue(book, c.Spec.Epochs)
	c.updates, c.evaluation, c.discard = nil, nil, nil
	c.leases = make(map[int64]*lease)
	for _, member := range c.members {
		clear(member.held)
		if c.Spec.Asynchronous { // one may wait for what is not going to come
			c.applied(member)
		}
	}
	c.final = false
	c.saved, c.evaluated, c.loss = -1, m.Evaluated, float64(m.Loss)
	if m.Step > 0 {
		c.saved = m.Step
	}
	c.skipped, c.skips = m.Skipped, 0
	c.metrics = make(map[string]float64)
	for _, name := range append([]string{"loss"}, c.Task.Model.Metrics...) {
		if v, ok := m.Metrics[name]; ok {
			c.metrics[name] = v
		}
	}
	if c.clock.total == 0 {
		c.clock.total = time.Duration(m.Training * float64(time.Second))
	}
	c.message = ""
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
