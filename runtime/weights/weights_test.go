package weights

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/model/zoo"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/safetensors"
	"github.com/stokehq/stoke/runtime/spec"
)

// network returns a model with running moments, its variables and a vector of
// different values.
func network(t *testing.T) (*model.Model, []model.Var, []float32) {
	t.Helper()
	m, err := zoo.Model("resnet20", model.Data{Input: model.Features{Type: model.U8, Shape: []int{8, 8, 3}}, Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	vars, _, err := m.Layout()
	if err != nil {
		t.Fatal(err)
	}
	v := make([]float32, model.Length(vars))
	for i := range v {
		v[i] = float32(i%1009) / 64
	}
	return m, vars, v
}

// folder makes the folder of a run.
func folder(t *testing.T) run.Folder {
	t.Helper()
	f := run.Folder(filepath.Join(t.TempDir(), "run-1"))
	s := spec.Default()
	s.Name, s.Model, s.Dataset = "base", "resnet20", spec.Dataset{Path: "/data", Hash: "sha256:1"}
	if err := f.Create(s); err != nil {
		t.Fatal(err)
	}
	return f
}

// save writes a checkpoint with one slot, in two parts.
func save(t *testing.T, f run.Folder, name string, step int64, m *model.Model, vars []model.Var, v []float32) string {
	t.Helper()
	place := checkpoint.Folder(f.Checkpoints())
	cut := len(v) / 3
	var parts []checkpoint.Part
	for i, span := range [][2]int{{0, cut}, {cut, len(v)}} {
		slot := make([]float32, span[1]-span[0])
		for i := range slot {
			slot[i] = -7
		}
		p, err := place.Save(t.Context(), name, []string{"server-0.f32", "server-1.f32"}[i], span[0], [][]float32{v[span[0]:span[1]], slot})
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, p)
	}
	is := checkpoint.Manifest{Step: step, Run: "sha256:1", Model: m, Vars: vars, Records: 9, Parts: parts, Metrics: map[string]float64{"accuracy": 0.5}}
	if err := place.Finish(t.Context(), name, &is); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(f.Checkpoints(), name)
}

func open(t *testing.T, path string) *Weights {
	t.Helper()
	w, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

func hash(t *testing.T, path string) string {
	t.Helper()
	h, err := open(t, path).Hash(t.Context())
	if err != nil || len(h) != 71 {
		t.Fatalf("%q, %v", h, err)
	}
	return h
}

// What was saved is what a run begins from: by the run, by the checkpoint, by an
// exported file, and by a file whose tensors have another order.
func TestFill(t *testing.T) {
	m, vars, v := network(t)
	f := folder(t)
	final := save(t, f, spec.FinalName(1), 70, m, vars, v)
	exported, other := filepath.Join(t.TempDir(), "a.safetensors"), filepath.Join(t.TempDir(), "b.safetensors")
	out, err := os.Create(exported)
	if err != nil {
		t.Fatal(err)
	}
	is, err := Export(t.Context(), f, Latest, out)
	if err = errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(exported)
	want := Exported{Name: "base", Step: 70, Tensors: len(vars), Parameters: int64(len(v)), Bytes: info.Size()}
	if diff := cmp.Diff(want, is); err != nil || diff != "" {
		t.Error(diff, err)
	}
	reversed(t, exported, other)
	for _, path := range []string{string(f), final, exported, other} {
		got := make([]float32, len(v))
		if err := open(t, path).Fill(t.Context(), vars, nil, got); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, v) {
			t.Errorf("%s gives other values", path)
		}
	}
	if hash(t, string(f)) != hash(t, final) || hash(t, exported) == hash(t, other) {
		t.Error("hashes are wrong")
	}
	w := open(t, exported)
	var graph model.Model
	if meta := w.source.(*file).tensors.Metadata; json.Unmarshal([]byte(meta["model"]), &graph) != nil || !cmp.Equal(&graph, m) ||
		meta["name"] != "base" || meta["step"] != "70" || meta["metrics"] != `{"accuracy":0.5}` {
		t.Errorf("metadata are %.300q", meta)
	}
}

// reversed writes a file with the tensors of another one in reverse order.
func reversed(t *testing.T, from, to string) {
	t.Helper()
	f := open(t, from).source.(*file).tensors
	all := slices.Clone(f.Tensors)
	slices.Reverse(all)
	var text bytes.Buffer
	out, err := safetensors.NewWriter(&text, all, nil)
	for _, of := range all {
		err = errors.Join(err, f.Read(of, out.Write))
	}
	if err = errors.Join(err, os.WriteFile(to, text.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// Checkpoints are chosen by their step; the newest finished model counts.
func TestExportedStep(t *testing.T) {
	m, vars, v := network(t)
	f := folder(t)
	export := func(step int64) (Exported, error) { return Export(t.Context(), f, step, io.Discard) }
	if _, err := export(Latest); !errors.Is(err, ErrUnfinished) {
		t.Errorf("a run without a model is exported: %v", err)
	}
	save(t, f, spec.StepName(10, 1), 10, m, vars, v)
	save(t, f, spec.StepName(20, 2), 20, m, vars, v)
	if _, err := export(Latest); !errors.Is(err, ErrUnfinished) || !strings.Contains(err.Error(), "[10 20]") {
		t.Errorf("an unfinished run is exported: %v", err)
	}
	if is, err := export(10); err != nil || is.Step != 10 {
		t.Errorf("%+v, %v", is, err)
	}
	if _, err := export(15); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "[10 20]") {
		t.Errorf("there is no checkpoint of step 15: %v", err)
	}
	save(t, f, spec.FinalName(2), 30, m, vars, v)
	final := save(t, f, spec.FinalName(3), 40, m, vars, v)
	for _, step := range []int64{Latest, 40} {
		if is, err := export(step); err != nil || is.Step != 40 {
			t.Errorf("%+v, %v", is, err)
		}
	}
	if err := os.WriteFile(filepath.Join(final, "server-1.f32"), make([]byte, 8*(len(v)-len(v)/3)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := export(Latest); !errors.Is(err, checkpoint.ErrDamaged) {
		t.Errorf("a damaged model is exported: %v", err)
	}
}

func TestMisfits(t *testing.T) {
	m, vars, v := network(t)
	f := folder(t)
	save(t, f, spec.FinalName(1), 70, m, vars, v)
	w := open(t, string(f))
	smaller, err := zoo.Model("resnet20", model.Data{Input: m.Input, Classes: 7})
	if err != nil {
		t.Fatal(err)
	}
	others, _, err := smaller.Layout()
	if err != nil {
		t.Fatal(err)
	}
	last := smaller.Layers[len(smaller.Layers)-1].Name
	into := make([]float32, model.Length(others))
	for i := range into {
		into[i] = -1
	}
	err = w.Fill(t.Context(), others, nil, into)
	if !errors.Is(err, ErrMisfit) || !strings.Contains(err.Error(), `"`+last+`/weight" has the shape [64 10]`) || !strings.Contains(err.Error(), "[64 7] in the model") {
		t.Errorf("another number of classes: %v", err)
	}
	if err := w.Fill(t.Context(), others, []string{last + "/*"}, into); err != nil {
		t.Fatal(err)
	}
	for _, o := range others {
		i := slices.IndexFunc(vars, func(is model.Var) bool { return is.Name == o.Name })
		got := into[o.Offset : o.Offset+o.Len]
		if kept := strings.HasPrefix(o.Name, last+"/"); kept && got[0] != -1 || !kept && !slices.Equal(got, v[vars[i].Offset:vars[i].Offset+o.Len]) {
			t.Errorf("%s is wrong", o.Name)
		}
	}
	if err := w.Check(vars[1:], nil); !errors.Is(err, ErrMisfit) || !strings.Contains(err.Error(), vars[0].Name) {
		t.Errorf("a variable too many: %v", err)
	}
	more := append(slices.Clone(vars), model.Var{Name: "more/bias", Shape: []int{3}})
	if err := w.Check(more, nil); !errors.Is(err, ErrMisfit) || !strings.Contains(err.Error(), `no variable "more/bias"`) {
		t.Errorf("a variable too few: %v", err)
	}
	v[5] = float32(math.NaN())
	save(t, f, spec.FinalName(2), 70, m, vars, v)
	err = open(t, string(f)).Fill(t.Context(), vars, nil, make([]float32, len(v)))
	if !errors.Is(err, ErrMisfit) || !strings.Contains(err.Error(), vars[0].Name) {
		t.Errorf("NaN is filled in: %v", err)
	}
}

func TestOpenFaults(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("not tensors at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		filepath.Join(dir, "nothing"): fs.ErrNotExist, text: safetensors.ErrFormat, dir: fs.ErrNotExist, string(folder(t)): ErrUnfinished,
	} {
		if _, err := Open(context.Background(), path); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
}
