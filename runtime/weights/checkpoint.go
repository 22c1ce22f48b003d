package weights

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/safetensors"
)

// savedModel has weights in a checkpoint.
type savedModel struct {
	place    *checkpoint.Place
	name     string
	manifest checkpoint.Manifest
}

func openCheckpoint(ctx context.Context, folder string) (*Weights, error) {
	s := &savedModel{}
	s.place, s.name = checkpointAt(folder)
	var err error
	if s.manifest, err = s.place.Manifest(ctx, s.name); err != nil {
		return nil, err
	}
	if s.manifest.Model == nil {
		return nil, fmt.Errorf("checkpoint %s: %w: it has no model", s.name, checkpoint.ErrDamaged)
	}
	w := &Weights{Path: folder, source: s}
	at := 0
	for _, v := range s.manifest.Vars {
		if v.Offset != at || v.Len != lengthOf(v.Shape) {
			return nil, fmt.Errorf("checkpoint %s: %w: variable %q of shape %v has %d values at %d",
				s.name, checkpoint.ErrDamaged, v.Name, v.Shape, v.Len, v.Offset)
		}
		at += v.Len
		w.Tensors = append(w.Tensors, Tensor{v.Name, v.Shape, "F32"})
	}
	last := s.manifest.Parts[len(s.manifest.Parts)-1] // there is one
	return w, checkpoint.Covers(s.name, last.To, model.Length(s.manifest.Vars))
}

func lengthOf(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= max(0, d)
	}
	return n
}

// hash covers the names, the shapes and the hashes of the parts, which cover the
// values.
func (s *savedModel) hash(context.Context) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, "stoke weights 1")
	for _, v := range s.manifest.Vars {
		fmt.Fprintf(h, "%q %v %d\n", v.Name, v.Shape, v.Offset)
	}
	for _, p := range s.manifest.Parts {
		fmt.Fprintf(h, "%d %d %d %s\n", p.From, p.To, p.Vectors, p.SHA256)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// values passes on the whole vector of parameters, in order.
func (s *savedModel) values(ctx context.Context, take func(at int, values []float32) error) error {
	n := model.Length(s.manifest.Vars)
	for _, p := range s.manifest.Parts {
		_, err := s.place.Read(ctx, s.name, p, 0, n, 1, func(_, offset int, values []float32) error { return take(offset, values) })
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *savedModel) read(ctx context.Context, places map[string]int, take func(at int, values []float32) error) error {
	vars := s.manifest.Vars
	return s.values(ctx, func(at int, values []float32) error {
		for len(values) > 0 {
			for at >= vars[0].Offset+vars[0].Len { // the whole vector is covered by them
				vars = vars[1:]
			}
			n := min(len(values), vars[0].Offset+vars[0].Len-at)
			if to, ok := places[vars[0].Name]; ok {
				if err := take(to+at-vars[0].Offset, values[:n]); err != nil {
					return err
				}
			}
			at, values = at+n, values[n:]
		}
		return nil
	})
}

func (s *savedModel) close() error { return s.place.Close() }

// Exported describes a file that Export has written.
type Exported struct {
	Name       string `json:"name"`
	Step       int64  `json:"step"`
	Tensors    int    `json:"tensors"`
	Parameters int64  `json:"parameters"`
	Bytes      int64  `json:"bytes"`
}

// Latest, as the step of Export, means the finished model.
const Latest = -1

// Export writes the model of a run as a safetensors file: the finished one, or the one
// of a checkpoint of that step. Metadata have the model's graph as JSON (model), the
// run's name, the step, and the metrics as JSON. After an error the output is
// incomplete.
func Export(ctx context.Context, f run.Folder, step int64, out io.Writer) (e Exported, err error) {
	folder, err := chosen(ctx, f, step)
	if err != nil {
		return e, err
	}
	w, err := openCheckpoint(ctx, folder)
	if err != nil {
		return e, err
	}
	defer w.Close() //nolint:errcheck // it is only read
	s := w.source.(*savedModel)
	n := int64(model.Length(s.manifest.Vars))
	e = Exported{Name: s.manifest.Model.Name, Step: s.manifest.Step, Tensors: len(w.Tensors), Parameters: n}
	if of, err := f.ReadSpec(); err == nil && of.Name != "" {
		e.Name = of.Name
	}
	metadata, err := s.metadata(e.Name)
	if err != nil {
		return e, err
	}
	tensors := make([]safetensors.Tensor, len(w.Tensors))
	for i, t := range w.Tensors {
		tensors[i] = safetensors.Tensor{Name: t.Name, Shape: t.Shape}
	}
	to, err := safetensors.NewWriter(out, tensors, metadata)
	if err != nil {
		return e, err
	}
	if err := s.values(ctx, func(_ int, values []float32) error { return to.Write(values) }); err != nil {
		return e, err
	}
	e.Bytes, err = to.Close()
	return e, err
}

func (s *savedModel) metadata(name string) (map[string]string, error) {
	graph, err := json.Marshal(s.manifest.Model)
	if err != nil {
		return nil, err
	}
	metrics := s.manifest.Metrics
	if metrics == nil {
		metrics = make(map[string]float64)
	}
	measured, err := json.Marshal(metrics)
	if err != nil {
		return nil, err
	}
	return map[string]string{
		"format": "pt", "model": string(graph), "name": name, "step": strconv.FormatInt(s.manifest.Step, 10), "metrics": string(measured),
	}, nil
}

// chosen returns the folder of the finished model, or of the newest checkpoint of a
// step.
func chosen(ctx context.Context, f run.Folder, step int64) (string, error) {
	all, err := f.SavedSteps()
	if err != nil {
		return "", err
	}
	if step == Latest {
		folder, err := finished(ctx, f)
		if errors.Is(err, ErrUnfinished) && len(all) > 0 {
			return "", fmt.Errorf("%w; it has checkpoints of the steps %v", err, slices.Sorted(maps.Values(all)))
		}
		return folder, err
	}
	finals, err := f.Finals()
	if err != nil {
		return "", err
	}
	for _, folder := range finals {
		place, name := checkpointAt(folder)
		if m, err := place.Manifest(ctx, name); err == nil {
			all[folder] = m.Step
		}
	}
	for _, folder := range slices.Backward(slices.Sorted(maps.Keys(all))) { // names sort by age
		if all[folder] == step {
			return folder, nil
		}
	}
	if _, err := os.Stat(f.Spec()); err != nil {
		return "", err
	}
	return "", fmt.Errorf("%w: the run has no checkpoint of step %d, only of %v", fs.ErrNotExist, step, slices.Sorted(maps.Values(all)))
}
