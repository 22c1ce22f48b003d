package weights

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/safetensors"
	"github.com/stokehq/stoke/runtime/spec"
)

// Weights are the parameters of one model.
type Weights struct {
	Path    string // of the file or of the checkpoint's folder
	Tensors []Tensor
	source
}

// Tensor is one variable.
type Tensor struct {
	Name  string `json:"name"`
	Shape []int  `json:"shape"`
	Type  string `json:"type"` // of a safetensors file; F32 of a checkpoint
}

// source is the content of weights. read passes on all values of the tensors with a
// place, which is the number of the first value in the vector that they are written to.
type source interface {
	hash(ctx context.Context) (string, error)
	read(ctx context.Context, places map[string]int, take func(at int, values []float32) error) error
	close() error
}

var (
	// ErrUnfinished means that a run has no finished model yet.
	ErrUnfinished = errors.New("the run has no finished model")
	// ErrMisfit means that the weights belong to another model.
	ErrMisfit = errors.New("other model")
)

// misfitError is an ErrMisfit that says what does not fit.
type misfitError string

func misfit(format string, args ...any) error { return misfitError(fmt.Sprintf(format, args...)) }

func (e misfitError) Error() string { return string(e) }

// Is implements errors.Is.
func (e misfitError) Is(target error) bool { return target == ErrMisfit }

// Open opens the weights at a path: a safetensors file, a checkpoint's folder, or the
// folder of a run, whose finished model it takes.
func Open(ctx context.Context, path string) (*Weights, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir() && !info.Mode().IsRegular():
		return nil, fmt.Errorf("open %s: not a file", path)
	case !info.IsDir():
		return openFile(path)
	}
	if _, err := os.Stat(filepath.Join(path, spec.ManifestFile)); err == nil {
		return openCheckpoint(ctx, path)
	}
	folder, err := finished(ctx, run.Folder(path))
	if err != nil {
		return nil, err
	}
	return openCheckpoint(ctx, folder)
}

// finished returns the folder of a run's newest finished model that is whole.
func finished(ctx context.Context, f run.Folder) (string, error) {
	if _, err := os.Stat(f.Spec()); err != nil {
		return "", fmt.Errorf("%s is neither a safetensors file nor the folder of a run or a checkpoint: %w", f, err)
	}
	found, err := f.Finals()
	for _, folder := range found {
		place, name := checkpointAt(folder)
		m, merr := place.Manifest(ctx, name)
		if merr == nil {
			var ok bool
			if ok, merr = place.Complete(ctx, name, m); ok {
				return folder, nil
			}
		}
		err = errors.Join(err, merr)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnfinished, err)
	}
	return "", fmt.Errorf("%w: %s", ErrUnfinished, f)
}

// checkpointAt splits a checkpoint's folder into place and name.
func checkpointAt(folder string) (*checkpoint.Place, string) {
	return checkpoint.Folder(filepath.Dir(folder)), filepath.Base(folder)
}

// Hash returns what identifies the weights: "sha256:" and the digits.
func (w *Weights) Hash(ctx context.Context) (string, error) {
	digits, err := w.hash(ctx)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", w.Path, err)
	}
	return "sha256:" + digits, nil
}

// Close releases the file.
func (w *Weights) Close() error { return w.close() }

// Fill writes the weights into a model's whole vector. Variables whose names match one
// of the patterns of skip, as path.Match does, keep their values. Every other one needs
// its tensor of the same name and shape, and every other tensor its variable: else the
// error is ErrMisfit, and the vector is as it was. After other errors it is undefined.
func (w *Weights) Fill(ctx context.Context, vars []model.Var, skip []string, vector []float32) error {
	if err := w.Check(vars, skip); err != nil {
		return err
	}
	places := make(map[string]int)
	for _, v := range vars {
		if !skips(skip, v.Name) {
			places[v.Name] = v.Offset
		}
	}
	err := w.read(ctx, places, func(at int, values []float32) error {
		for _, v := range values {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return misfit("%s has a value that is not finite", nameAt(vars, at))
			}
		}
		copy(vector[at:], values)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", w.Path, err)
	}
	return nil
}

// nameAt returns the name of the variable at a place of the vector.
func nameAt(vars []model.Var, at int) string {
	i := slices.IndexFunc(vars, func(v model.Var) bool { return at < v.Offset+v.Len })
	return vars[max(i, 0)].Name
}

// Check reports the first variable, in the order of the vector, or else the first
// tensor that does not fit, as Fill does.
func (w *Weights) Check(vars []model.Var, skip []string) error {
	left := make(map[string]Tensor, len(w.Tensors))
	for _, t := range w.Tensors {
		left[t.Name] = t
	}
	for _, v := range vars {
		t, ok := left[v.Name]
		delete(left, v.Name)
		switch {
		case skips(skip, v.Name):
		case !ok:
			return misfit("%s has no variable %q of the shape %v", w.Path, v.Name, v.Shape)
		case !slices.Equal(t.Shape, v.Shape):
			return misfit("variable %q has the shape %v in %s, and %v in the model", v.Name, t.Shape, w.Path, v.Shape)
		case !safetensors.Reads(t.Type):
			return misfit("variable %q has values of type %s in %s: want F32, F16, BF16 or F64", v.Name, t.Type, w.Path)
		}
	}
	for _, t := range w.Tensors {
		if _, ok := left[t.Name]; ok && !skips(skip, t.Name) {
			return misfit("%s has a variable %q, and the model has none of that name", w.Path, t.Name)
		}
	}
	return nil
}
