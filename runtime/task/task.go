package task

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/stokehq/stoke/runtime/dataset"
	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/engine/zoo"
	"github.com/stokehq/stoke/runtime/spec"
)

// Task is what a run trains.
type Task struct {
	Model       *engine.Model
	Vars        []engine.Var // the layout of its flat vector
	Train, Test dataset.Source
}

// Open opens the spec's data and builds its model. Close releases the data.
func Open(s *spec.Spec) (*Task, error) {
	var m dataset.Manifest
	if err := spec.ReadJSON(filepath.Join(s.Dataset.Path, "manifest.json"), &m); err != nil {
		return nil, fmt.Errorf("open dataset: %w", err)
	}
	if m.Hash != s.Dataset.Hash {
		return nil, fmt.Errorf("open dataset: %s holds other data than planned: its hash is %s, not %s", s.Dataset.Path, m.Hash, s.Dataset.Hash)
	}
	t := new(Task)
	var err error
	if t.Train, err = dataset.Open(s.Dataset.Path, dataset.Train); err != nil {
		return nil, fmt.Errorf("open training data: %w", err)
	}
	if t.Test, err = dataset.Open(s.Dataset.Path, dataset.Test); err != nil {
		t.Close()
		return nil, fmt.Errorf("open test data: %w", err)
	}
	if err := t.build(s); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *Task) build(s *spec.Spec) error {
	info := t.Train.Info()
	if info.Records == 0 {
		return errors.New("open training data: it has no records")
	}
	var err error
	t.Model, err = zoo.Model(s.Model, engine.Features{Type: info.Type, Shape: info.Shape}, info.Classes)
	if err != nil {
		return fmt.Errorf("build model: %w", err)
	}
	if t.Model.Loss != s.Loss {
		return fmt.Errorf("build model: %s has loss %s, not %s", s.Model, t.Model.Loss, s.Loss)
	}
	if t.Vars, _, err = t.Model.Layout(); err != nil {
		return fmt.Errorf("build model: %w", err)
	}
	return nil
}

// Close closes what Open opened.
func (t *Task) Close() error {
	var errs []error
	for _, s := range []dataset.Source{t.Train, t.Test} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}
