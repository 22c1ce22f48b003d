package workload

import (
	"errors"
	"fmt"

	"github.com/stokehq/stoke/runtime/dataset"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/model/zoo"
	"github.com/stokehq/stoke/runtime/spec"
)

// Workload is what a run trains.
type Workload struct {
	Model       *model.Model
	Vars        []model.Var // the layout of its flat vector
	Train, Test dataset.Source
	Augmenter   *dataset.Augmenter // of training records; nil: they stay as they are
}

// DataError is an error about the data of a run, not about its model.
type DataError struct {
	Fault spec.Fault // FaultData or FaultChecksum
	Err   error
}

func (e DataError) Error() string { return e.Err.Error() }

// Unwrap returns the error itself.
func (e DataError) Unwrap() error { return e.Err }

func unreadable(format string, args ...any) error {
	return DataError{spec.FaultData, fmt.Errorf(format, args...)}
}

func otherData(format string, args ...any) error {
	return DataError{spec.FaultChecksum, fmt.Errorf(format, args...)}
}

// Open opens the spec's data and builds its model. Close releases the data.
// Errors about the data are of type DataError.
func Open(s *spec.Spec) (*Workload, error) {
	m, err := dataset.ReadManifest(s.Dataset.Path)
	if err != nil {
		return nil, unreadable("open dataset: %w", err)
	}
	if m.Hash != s.Dataset.Hash {
		return nil, otherData("open dataset: %s holds other data than planned: its hash is %s, not %s", s.Dataset.Path, m.Hash, s.Dataset.Hash)
	}
	w := new(Workload)
	if w.Train, err = dataset.Open(s.Dataset.Path, dataset.Train); err != nil {
		return nil, unreadable("open training data: %w", err)
	}
	if w.Test, err = dataset.Open(s.Dataset.Path, dataset.Test); err != nil {
		w.Close()
		return nil, unreadable("open test data: %w", err)
	}
	// The manifest says what should be there, the files what is.
	for split, is := range map[dataset.Split][2]string{
		dataset.Train: {w.Train.Info().Hash, m.Train.Hash}, dataset.Test: {w.Test.Info().Hash, m.Test.Hash},
	} {
		if is[0] != is[1] {
			w.Close()
			return nil, otherData("open dataset: %s.rio in %s holds other data than its manifest says: prepare it again", split, s.Dataset.Path)
		}
	}
	if err := w.build(s); err != nil {
		w.Close()
		return nil, err
	}
	if w.Augmenter, err = dataset.NewAugmenter(s, w.Train.Info()); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (w *Workload) build(s *spec.Spec) error {
	info := w.Train.Info()
	if info.Records == 0 {
		return errors.New("open training data: it has no records")
	}
	var err error
	data := model.Data{Input: model.Features{Type: info.Type, Shape: info.Shape}, Classes: info.Classes,
		Target: model.Features{Type: info.Target.Type, Shape: info.Target.Shape}}
	if w.Model, err = newModel(s, data); err != nil {
		return fmt.Errorf("build model: %w", err)
	}
	if w.Vars, _, err = w.Model.Layout(); err != nil {
		return fmt.Errorf("build model: %w", err)
	}
	return nil
}

// newModel returns the model that the spec describes or names.
func newModel(s *spec.Spec, of model.Data) (*model.Model, error) {
	if s.Graph != "" {
		d, err := model.Describe([]byte(s.Graph))
		if err != nil {
			return nil, err
		}
		return d.Model(of), nil
	}
	layers, err := zoo.Layers(s.Model)
	if err == nil && s.Layers != "" && s.Layers != layers {
		return nil, fmt.Errorf("the layers of %s in this stoke-trainer differ from the plan: use the stoke-trainer that planned it, or plan again", s.Model)
	}
	return zoo.Model(s.Model, of)
}

// Close closes what Open opened.
func (w *Workload) Close() error {
	var errs []error
	for _, s := range []dataset.Source{w.Train, w.Test} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}
