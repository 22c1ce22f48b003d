package coordinator

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	Term       int64              `json:"term,omitempty"` // in which it was cut; see spec.TermOf
	Generation int64              `json:"generation"`     // of the memberships
	Run        string             `json:"run"`            // the spec's hash
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
	unfinished   = ".new-*" // folders that have no name yet
)

// store is where the run's checkpoints lie: each a folder of one file per
// server and a manifest, complete or absent. When there is one, and which of
// them the run goes back to, it does not know.
type store struct{ folder string }

// stepName is the name of a checkpoint. The term is a part of it, so that
// nobody who was superseded can write into the place of a later one's.
func stepName(step, term int64) string { return fmt.Sprintf("step-%012d-term-%06d", step, term) }

func (s store) finalName() string { return "final" }

func (s store) path(name string) string { return filepath.Join(s.folder, name) }

// names lists the checkpoints, the oldest first; the final model is not among
// them. Those of earlier versions are named by their step alone.
func (s store) names() []string {
	found, err := filepath.Glob(s.path("step-*"))
	if err != nil {
		return nil
	}
	for i, f := range found {
		found[i] = filepath.Base(f)
	}
	slices.Sort(found)
	return found
}

// read reads a manifest that is as it was written.
func (s store) read(name string) (Manifest, error) {
	var m Manifest
	if err := run.ReadJSON(filepath.Join(s.path(name), manifestName), &m); err != nil {
		return m, err
	}
	sum, err := m.sum()
	if err != nil {
		return m, err
	}
	if sum != m.Checksum {
		return m, fmt.Errorf("%s is damaged: its checksum does not match", manifestName)
	}
	return m, nil
}

// complete reports whether all files of a checkpoint are there and as long as
// they should be; their hashes are checked when they are restored.
func (s store) complete(name string, m Manifest) bool {
	for _, f := range m.Files {
		info, err := os.Stat(filepath.Join(s.path(name), filepath.Base(f.Name)))
		if err != nil || info.Size() != 4*int64(f.To-f.From)*int64(f.Vectors) {
			return false
		}
	}
	return true
}

// write makes a checkpoint: files fills a folder that gets its name only once
// all of it is durable and check is content.
func (s store) write(name string, m *Manifest, files func(folder string) ([]wire.File, error), check func() error) error {
	temporary, err := os.MkdirTemp(s.folder, unfinished)
	if err != nil {
		return fmt.Errorf("%w: %w", errStorage, err)
	}
	defer os.RemoveAll(temporary) // of no effect once renamed
	if m.Files, err = files(temporary); err != nil {
		return err
	}
	if m.Checksum, err = m.sum(); err != nil {
		return err
	}
	if err := run.WriteJSON(filepath.Join(temporary, manifestName), m); err != nil {
		return fmt.Errorf("%w: %w", errStorage, err)
	}
	// Only the final model can be there already: one that was not of the run's
	// history.
	if old, err := s.read(name); err == nil && spec.TermOf(old.Term, old.Generation) > m.Term {
		return superseded(m.Term, old.Term)
	}
	if err := check(); err != nil {
		return err
	}
	err = os.RemoveAll(s.path(name))
	if err == nil {
		err = os.Rename(temporary, s.path(name)) // which fails where another one was faster
	}
	if err == nil {
		err = run.SyncDir(s.folder)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errStorage, err)
	}
	return nil
}

func (s store) remove(name string) error { return os.RemoveAll(s.path(name)) }

// clean removes what a killed process left half written.
func (s store) clean() error {
	junk, err := filepath.Glob(s.path(unfinished))
	for _, j := range junk {
		if rerr := os.RemoveAll(j); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}
	return err
}
