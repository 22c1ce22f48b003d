package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
	"github.com/stokehq/stoke/runtime/spec"
)

// Manifest is one checkpoint: a cut of the whole run. The random state needs
// no place of its own: everything drawn is a function of the seed, the epoch
// and the record.
type Manifest struct {
	Format     int                `json:"format,omitempty"` // see format; 0: the first
	Step       int64              `json:"step"`
	Term       int64              `json:"term,omitempty"` // in which it was cut; see spec.TermOf
	Generation int64              `json:"generation"`     // of the memberships
	Run        string             `json:"run"`            // the spec's hash
	Seed       uint64             `json:"seed"`
	Model      *model.Model       `json:"model"`
	Vars       []model.Var        `json:"vars"`
	Recipe     optimizer.Recipe   `json:"recipe"`
	Class      string             `json:"class,omitempty"` // of the machines that a deterministic run was computed on
	Records    int64              `json:"records"`         // in the training set
	Whole      int                `json:"whole,omitempty"` // epochs that are committed, before those in Ledger
	Ledger     []spec.EpochLedger `json:"ledger"`
	Skipped    int64              `json:"skipped"`
	Training   float64            `json:"training_seconds"`
	Metrics    map[string]float64 `json:"metrics"`
	Evaluated  int64              `json:"evaluated"`
	Loss       spec.Number        `json:"loss"`
	Parts      []Part             `json:"files"`
	Saved      time.Time          `json:"saved"`
	Checksum   string             `json:"checksum"` // of this file's bytes before it; see decode
}

// maxManifest bounds what is read of a manifest.
const maxManifest = 16 << 20

// parse reads a manifest that is as it was written.
func parse(text []byte) (Manifest, error) {
	var m Manifest
	if err := m.decode(text); err != nil {
		return m, err
	}
	at := 0
	for _, p := range m.Parts {
		if err := valid(p.Name); err != nil {
			return m, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		if p.From != at || p.To <= p.From || p.To > model.MaxParameters || p.Vectors < 1 || p.Vectors > maxVectors {
			return m, fmt.Errorf("%w: part %s holds %d vectors of [%d, %d), and the one before it ends at %d", ErrDamaged, p.Name, p.Vectors, p.From, p.To, at)
		}
		at = p.To
	}
	if m.Step < 0 || m.Records < 0 || len(m.Parts) == 0 {
		return m, fmt.Errorf("%w: step %d of a run over %d records in %d parts", ErrDamaged, m.Step, m.Records, len(m.Parts))
	}
	return m, nil
}

// maxVectors is more than any optimizer's parameters and slots.
const maxVectors = 16

// Names lists the complete checkpoints whose names begin with prefix, in the
// order of their names.
func (p *Place) Names(ctx context.Context, prefix string) ([]string, error) {
	found, err := p.list(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("list checkpoints in %s: %w", p, err)
	}
	var complete []string
	for key := range found {
		if name, ok := strings.CutSuffix(key, "/"+spec.ManifestFile); ok && valid(name) == nil {
			complete = append(complete, name)
		}
	}
	slices.Sort(complete)
	return complete, nil
}

// Manifest reads a checkpoint's. The error is fs.ErrNotExist where there is no
// such checkpoint.
func (p *Place) Manifest(ctx context.Context, name string) (Manifest, error) {
	m, err := p.manifest(ctx, name)
	if err != nil {
		err = fmt.Errorf("checkpoint %s: %s: %w", name, spec.ManifestFile, err)
	}
	return m, err
}

func (p *Place) manifest(ctx context.Context, name string) (Manifest, error) {
	text, err := p.text(ctx, name)
	if err != nil {
		return Manifest{}, err
	}
	return parse(text)
}

// text is a checkpoint's manifest as it lies there.
func (p *Place) text(ctx context.Context, name string) ([]byte, error) {
	if err := valid(name); err != nil {
		return nil, err
	}
	in, size, err := p.open(ctx, name+"/"+spec.ManifestFile)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if size > maxManifest {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrDamaged, size)
	}
	return io.ReadAll(io.LimitReader(in, maxManifest))
}

// Complete reports whether all parts of a checkpoint are there and as long as
// they should be; their hashes are checked when they are read.
func (p *Place) Complete(ctx context.Context, name string, m Manifest) (bool, error) {
	found, err := p.list(ctx, name+"/")
	if err != nil {
		return false, fmt.Errorf("look at checkpoint %s: %w", name, err)
	}
	for _, part := range m.Parts {
		if size, ok := found[name+"/"+part.Name]; !ok || size != part.Bytes() {
			return false, nil
		}
	}
	return true, nil
}

// Finish makes a checkpoint exist whose parts are all written. One of the same
// name is replaced; its parts are removed where they are not this one's.
func (p *Place) Finish(ctx context.Context, name string, m *Manifest) error {
	if err := p.finish(ctx, name, m); err != nil {
		return fmt.Errorf("write checkpoint %s: %w", name, err)
	}
	return nil
}

func (p *Place) finish(ctx context.Context, name string, m *Manifest) error {
	if err := valid(name); err != nil {
		return err
	}
	text, err := m.encode()
	if err != nil {
		return err
	}
	if _, err := parse(text); err != nil { // before anybody depends on it
		return err
	}
	out, err := p.put(ctx, name+"/"+spec.ManifestFile)
	if err != nil {
		return err
	}
	defer out.abort()
	if _, err := out.Write(text); err != nil {
		return err
	}
	if err := out.commit(); err != nil {
		return err
	}
	ours := map[string]bool{name + "/" + spec.ManifestFile: true}
	for _, part := range m.Parts {
		ours[name+"/"+part.Name] = true
	}
	// It exists: what is left of an earlier one is only in the way.
	return p.removeAll(ctx, name+"/", func(key string) bool { return !ours[key] })
}

// Remove makes a checkpoint absent, then removes its parts.
func (p *Place) Remove(ctx context.Context, name string) error {
	err := valid(name)
	if err == nil {
		err = p.remove(ctx, name+"/"+spec.ManifestFile)
	}
	if err == nil {
		err = p.removeAll(ctx, name+"/", func(string) bool { return true })
	}
	if err != nil {
		return fmt.Errorf("remove checkpoint %s: %w", name, err)
	}
	return nil
}

// Clean removes what was left half written: parts without a manifest, of
// checkpoints whose names begin with prefix. Nobody may be writing one.
func (p *Place) Clean(ctx context.Context, prefix string) error {
	found, err := p.list(ctx, "")
	if err != nil {
		return fmt.Errorf("look for half-written files in %s: %w", p, err)
	}
	for _, key := range slices.Sorted(maps.Keys(found)) {
		name, part, _ := strings.Cut(key, "/")
		_, complete := found[name+"/"+spec.ManifestFile]
		if strings.HasPrefix(name, scratch) || strings.HasPrefix(part, scratch) || strings.HasPrefix(name, prefix) && !complete {
			if rerr := p.remove(ctx, key); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
				err = errors.Join(err, fmt.Errorf("remove what was left half written: %w", rerr))
			}
		}
	}
	return err
}

func (p *Place) removeAll(ctx context.Context, prefix string, what func(key string) bool) error {
	found, err := p.list(ctx, prefix)
	for _, key := range slices.Sorted(maps.Keys(found)) {
		if what(key) {
			err = errors.Join(err, p.remove(ctx, key))
		}
	}
	return err
}
