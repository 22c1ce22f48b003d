package coordinator

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/run"
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
	Records    int64              `json:"records"`         // in the training set
	Whole      int                `json:"whole,omitempty"` // epochs that are committed, before those in Ledger
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

// written is the event of a checkpoint's end.
type written struct {
	manifest Manifest
	final    bool
	err      error
}

// due reports whether a checkpoint is to be made for the time that has passed.
func (c *coordinator) due() bool {
	every := time.Duration(c.Spec.Checkpoint.EverySeconds) * time.Second
	return every > 0 && !c.saving && c.version > max(c.cut, 0) && time.Since(c.cutAt) >= every
}

// checkpoint cuts the servers at the present version; they write the files
// while training goes on.
func (c *coordinator) checkpoint(ctx context.Context, final bool) error {
	if _, err := c.servers.ask(wire.TypeCut, wire.Cut{Generation: c.generation, Version: c.version}); err != nil {
		return err
	}
	c.cut, c.cutAt, c.saving, c.final = c.version, time.Now(), true, c.final || final
	whole, open := c.book.Save()
	m := Manifest{
		Step: c.version, Generation: c.generation, Run: c.hash, Seed: c.Spec.Seed,
		Model: c.Workload.Model, Vars: c.Workload.Vars, Recipe: c.recipe(c.Spec.Worker.Replicas),
		Records: c.records(), Whole: whole, Ledger: open, Skipped: c.skipped, Training: c.clock.read().Seconds(),
		Metrics: c.status.Load().Metrics, Evaluated: c.evaluated, Loss: spec.Number(c.loss), Saved: time.Now(),
	}
	c.saves.Go(func() {
		err := c.write(ctx, &m, final)
		c.post(ctx, written{m, final, err})
	})
	return nil
}

// write lets every server write its file into a folder that gets its name
// only once it is whole.
func (c *coordinator) write(ctx context.Context, m *Manifest, final bool) error {
	name := stepName(m.Step)
	if final {
		name = filepath.Base(c.Folder.Final())
	}
	temporary, err := os.MkdirTemp(c.Folder.Checkpoints(), ".new-*")
	if err != nil {
		return fmt.Errorf("write checkpoint: %w: %w", errStorage, err)
	}
	defer os.RemoveAll(temporary)
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	for i, address := range c.Servers {
		file, err := writeOne(ctx, c.Credentials, address, wire.Write{Folder: temporary, Name: fmt.Sprintf("server-%d-of-%d.f32", i, len(c.Servers))})
		if err != nil {
			return fmt.Errorf("write checkpoint: server %d: %w", i, err)
		}
		m.Files = append(m.Files, file)
	}
	if m.Checksum, err = m.sum(); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	if err := run.WriteJSON(filepath.Join(temporary, manifestName), m); err != nil {
		return fmt.Errorf("write checkpoint: %w: %w", errStorage, err)
	}
	to := filepath.Join(c.Folder.Checkpoints(), name)
	err = os.RemoveAll(to) // of an earlier generation
	if err == nil {
		err = os.Rename(temporary, to)
	}
	if err == nil {
		err = run.SyncDir(c.Folder.Checkpoints())
	}
	if err != nil {
		return fmt.Errorf("write checkpoint: %w: %w", errStorage, err)
	}
	return nil
}

func stepName(step int64) string { return fmt.Sprintf("step-%012d", step) }

// writeOne asks one server over a connection of its own, so that commits need
// not wait.
func writeOne(ctx context.Context, credentials wire.Credentials, address string, w wire.Write) (wire.File, error) {
	conn, err := credentials.Dial(ctx, address, wire.Hello{Role: "coordinator", PID: os.Getpid()})
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
	switch {
	case a.Error != "":
		return wire.File{}, fmt.Errorf("%w: %s", errStorage, a.Error)
	case a.Refused != "":
		return wire.File{}, fmt.Errorf("%w: %s", errServers, a.Refused)
	}
	return a.File, nil
}

// checkpointed notes that a checkpoint is on disk and lets old ones go.
func (c *coordinator) checkpointed(w written) error {
	c.saving = false
	switch {
	case w.err != nil && w.final:
		return c.finalFailed(w.err)
	case w.err != nil:
		c.Log.Error("checkpoint failed; training goes on", "error", w.err)
		c.note(spec.Event{Type: spec.EventCheckpoint, Message: w.err.Error()})
		return nil
	case w.final:
		// Whatever has become of the servers meanwhile: the run is done.
		c.Log.Info("final model saved", "step", w.manifest.Step)
		return c.conclude(w.manifest)
	case c.void(w.manifest):
		if err := os.RemoveAll(filepath.Join(c.Folder.Checkpoints(), stepName(w.manifest.Step))); err != nil {
			c.Log.Warn("cannot remove a void checkpoint", "error", err)
		}
		return nil
	}
	c.saved = w.manifest.Step
	c.note(spec.Event{Type: spec.EventCheckpoint, Epoch: c.epoch(), Message: fmt.Sprintf("step %d", w.manifest.Step)})
	c.Log.Info("checkpoint saved", "step", w.manifest.Step)
	c.prune()
	return nil
}

// maxFinals is how often the final model is tried to be saved.
const maxFinals = 10

// finalFailed decides what follows when the final model could not be saved: a
// lost server costs the way from the newest checkpoint, a full disk the run's
// rest until there is room.
func (c *coordinator) finalFailed(err error) error {
	c.Log.Error("final model not saved", "error", err)
	if c.finals++; errors.Is(err, errStorage) || c.finals >= maxFinals {
		return stopped{spec.CauseDisk, fmt.Sprintf("the final model could not be saved: %v", err)}
	}
	c.final = false
	return nil
}

// prune removes old checkpoints. Damaged ones do not count among those to keep.
func (c *coordinator) prune() {
	found := c.checkpoints()
	for i, kept := len(found)-1, 0; i >= 0; i-- {
		if kept < c.Spec.Checkpoint.Keep {
			if c.whole(found[i]) {
				kept++
			}
			continue
		}
		if err := os.RemoveAll(found[i]); err != nil {
			c.Log.Warn("cannot remove an old checkpoint", "error", err)
		}
	}
}

// whole reports whether a checkpoint looks complete; its hashes are checked
// when it is restored.
func (c *coordinator) whole(folder string) bool {
	m, _, err := c.readManifest(folder)
	if err != nil || c.damaged[folder] == m.Checksum {
		return false
	}
	for _, f := range m.Files {
		info, err := os.Stat(filepath.Join(folder, filepath.Base(f.Name)))
		if err != nil || info.Size() != 4*int64(f.To-f.From)*int64(f.Vectors) {
			return false
		}
	}
	return true
}
