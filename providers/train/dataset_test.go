package train

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/runtime/spec"
)

func (b *bench) digits(given values) cty.Value {
	all := values{"format": cty.StringVal(spec.FormatSynthetic)}
	for k, v := range given {
		all[k] = v
	}
	return object(b.t, b.schema("train_dataset").ImpliedType(), all)
}

// files makes a folder of the user's with one data file.
func (b *bench) files(content string) (string, cty.Value) {
	b.t.Helper()
	dir := b.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "data"), []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
	return dir, b.digits(values{"format": cty.StringVal("idx"), "path": cty.StringVal(dir)})
}

func TestDatasetIsKnownWhilePlanningAndStays(t *testing.T) {
	b := newBench(t)
	config := b.digits(values{"name": cty.StringVal("digits"), "train": cty.NumberIntVal(1000)})
	th := b.new("train_dataset")
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	for _, name := range []string{"uri", "hash", "train_records", "test_records", "classes", "shape"} {
		if !p.Planned.GetAttr(name).IsWhollyKnown() {
			t.Errorf("%s is not known while planning", name)
		}
	}
	if _, err := os.Stat(b.data); err == nil {
		t.Error("planning wrote to the datasets folder")
	}
	noErrors(t, b.apply(context.Background(), b.call("op-1"), th, config, p))
	folder, err := datasetFolder(th.state.GetAttr("uri").AsString())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "train.rio")); err != nil {
		t.Error(err)
	}
	inspected := b.logged("inspect.log")
	b.unchanged(th, config)
	if b.logged("inspect.log") != inspected {
		t.Error("an unchanged dataset was read again")
	}
	// The name is only recorded.
	renamed := b.digits(values{"name": cty.StringVal("drawn"), "train": cty.NumberIntVal(1000)})
	p = b.plan(th, renamed)
	if len(p.Replace) > 0 || !p.Planned.GetAttr("uri").RawEquals(th.state.GetAttr("uri")) {
		t.Errorf("a new name replaces the dataset: %v", p.Replace)
	}
	noErrors(t, b.apply(context.Background(), b.call(""), th, renamed, p))
	b.unchanged(th, renamed)
}

func TestDatasetFollowsItsFiles(t *testing.T) {
	b := newBench(t)
	dir, config := b.files("one")
	th := b.make("train_dataset", "op-1", config)
	b.unchanged(th, config)

	// Same contents, other times: read once, then known again.
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(dir, "data"), later, later); err != nil {
		t.Fatal(err)
	}
	inspected := b.logged("inspect.log")
	b.unchanged(th, config)
	b.unchanged(th, config)
	if n := b.logged("inspect.log") - inspected; n != 1 {
		t.Errorf("touched files were read %d times, want 1", n)
	}

	if err := os.WriteFile(filepath.Join(dir, "data"), []byte("two, longer"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.restart()
	noErrors(t, b.read(th))
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	if len(p.Replace) != 1 || !p.Replace[0].Equals(cty.GetAttrPath("hash")) {
		t.Errorf("changed files replace by %#v, want hash", p.Replace)
	}
	if p.Planned.GetAttr("hash").RawEquals(th.state.GetAttr("hash")) {
		t.Error("changed files have the same hash")
	}

	// Files that are gone do not take what was made from them along.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	b.restart()
	noErrors(t, b.read(th))
	p = b.plan(th, config)
	noErrors(t, p.Diagnostics)
	if !p.Planned.RawEquals(th.state) {
		t.Error("a prepared dataset depends on its source")
	}
}

func TestDatasetMistakesAreOneErrorEach(t *testing.T) {
	b := newBench(t)
	truncated, _ := b.files("truncated")
	empty := t.TempDir()
	str, num := cty.StringVal, cty.NumberIntVal
	tests := []struct {
		name    string
		config  values
		summary string
		at      cty.Path
	}{
		{"unknown format", values{"format": str("tfrecord")}, "Unknown dataset format", cty.GetAttrPath("format")},
		{"no path", values{"format": str("idx")}, "No path given", cty.GetAttrPath("path")},
		{"zero byte", values{"format": str("idx"), "path": str("/a\x00b")}, "Path is malformed", cty.GetAttrPath("path")},
		{"missing folder", values{"format": str("idx"), "path": str("/nonexistent/stoke")}, "Dataset cannot be read", cty.GetAttrPath("path")},
		{"missing pictures", values{"format": str("images"), "path": str("/nonexistent/stoke")}, "Dataset cannot be read", cty.GetAttrPath("path")},
		{"pictures without path", values{"format": str("images")}, "No path given", cty.GetAttrPath("path")},
		{"missing cifar", values{"format": str("cifar"), "path": str("/nonexistent/stoke")}, "Dataset cannot be read", cty.GetAttrPath("path")},
		{"csv for cifar", values{"format": str("cifar"), "path": str(empty), "csv": cty.ObjectVal(values{"type": str("u8")})}, "Block csv has no use", cty.GetAttrPath("csv")},
		{"missing file", values{"format": str("idx"), "path": str(empty)}, "File of the dataset is missing", cty.GetAttrPath("path")},
		{"truncated", values{"format": str("idx"), "path": str(truncated)}, "File is truncated", cty.GetAttrPath("path")},
		{"drawn from a path", values{"path": str(empty)}, "Synthetic digits have no path", cty.GetAttrPath("path")},
		{"negative", values{"train": num(-1)}, "Value out of range", cty.GetAttrPath("train")},
		{"not whole", values{"test": cty.NumberFloatVal(2.5)}, "Value out of range", cty.GetAttrPath("test")},
		{"huge", values{"train": cty.MustParseNumberVal("1e400")}, "Value out of range", cty.GetAttrPath("train")},
		{"csv without use", values{"csv": cty.ObjectVal(values{"type": str("u8")})}, "Block csv has no use", cty.GetAttrPath("csv")},
		{"csv type", values{"format": str("csv"), "path": str(empty), "csv": cty.ObjectVal(values{"type": str("u9")})}, "Unknown value", cty.GetAttrPath("csv").GetAttr("type")},
		{"example for text", values{"format": str("text"), "path": str(empty), "example": cty.ObjectVal(values{"image": str("x")})}, "Block example has no use", cty.GetAttrPath("example")},
		{"type of examples", values{"format": str("tf-examples"), "path": str(empty), "example": cty.ObjectVal(values{"type": str("i8")})}, "Unknown value", cty.GetAttrPath("example").GetAttr("type")},
		{"text for csv", values{"format": str("csv"), "path": str(empty), "text": cty.ObjectVal(values{"length": num(8)})}, "Block text has no use", cty.GetAttrPath("text")},
		{"length of a text", values{"format": str("text"), "path": str(empty), "text": cty.ObjectVal(values{"length": num(0)})}, "Value out of range", cty.GetAttrPath("text").GetAttr("length")},
		{"share of a text", values{"format": str("text"), "path": str(empty), "text": cty.ObjectVal(values{"test_share": num(-1)})}, "Value out of range", cty.GetAttrPath("text").GetAttr("test_share")},
		{"csv label type", values{"format": str("csv"), "path": str(empty), "csv": cty.ObjectVal(values{"label_type": str("text")})}, "Unknown value", cty.GetAttrPath("csv").GetAttr("label_type")},
		{"csv share", values{"format": str("csv"), "path": str(empty), "csv": cty.ObjectVal(values{"test_share": num(1)})}, "Value out of range", cty.GetAttrPath("csv").GetAttr("test_share")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := b.plan(b.new("train_dataset"), b.digits(test.config))
			if d := oneError(t, p.Diagnostics, test.summary); !d.Path.Equals(test.at) {
				t.Errorf("error is at %#v, want %#v", d.Path, test.at)
			}
		})
	}
	if _, err := os.Stat(b.data); err == nil {
		t.Error("mistakes left something in the datasets folder")
	}
}

func TestEqualDatasetsAreStoredOnceUntilTheLastOwnerGoes(t *testing.T) {
	b := newBench(t)
	_, first := b.files("same")
	_, second := b.files("same")
	one, two := b.make("train_dataset", "op-1", first), b.make("train_dataset", "op-2", second)
	if !one.state.GetAttr("uri").RawEquals(two.state.GetAttr("uri")) {
		t.Fatal("equal records are stored twice")
	}
	if n := b.logged("prepare.log"); n != 1 {
		t.Errorf("prepared %d times, want 1", n)
	}
	folder, _ := datasetFolder(one.state.GetAttr("uri").AsString())
	b.destroy(one)
	if _, err := os.Stat(filepath.Join(folder, "train.rio")); err != nil {
		t.Errorf("the other owner's records are gone: %v", err)
	}
	b.unchanged(two, second)
	b.destroy(two)
	if _, err := os.Lstat(folder); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
	if data, err := os.ReadFile(filepath.Join(second.GetAttr("path").AsString(), "data")); err != nil || string(data) != "same" {
		t.Errorf("the user's file: %q, %v", data, err)
	}
}

func (b *bench) destroy(th *thing) {
	b.t.Helper()
	null := cty.NullVal(th.state.Type())
	state := th.state
	noErrors(b.t, b.apply(context.Background(), b.call(""), th, null, providers.PlanResponse{Planned: null, Private: th.private}))
	if !th.state.IsNull() {
		b.t.Error("a destroyed object is still there")
	}
	again := &thing{typ: th.typ, state: state}
	noErrors(b.t, b.apply(context.Background(), b.call(""), again, null, providers.PlanResponse{Planned: null}))
}

func TestDatasetThatIsDamagedIsMadeAnew(t *testing.T) {
	b := newBench(t)
	config := b.digits(nil)
	th := b.make("train_dataset", "op-1", config)
	folder, _ := datasetFolder(th.state.GetAttr("uri").AsString())
	if err := os.WriteFile(filepath.Join(folder, "manifest.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.restart()
	noErrors(t, b.read(th))
	if !th.state.IsNull() {
		t.Fatal("a damaged dataset counts as there")
	}
	b.unchanged(b.make("train_dataset", "op-2", config), config)
}

func TestDatasetNeverRemovesWhatItDidNotMake(t *testing.T) {
	b := newBench(t)
	config := b.digits(nil)
	th := b.make("train_dataset", "op-1", config)
	folder, _ := datasetFolder(th.state.GetAttr("uri").AsString())

	// Somebody puts a link to their own folder in its place.
	theirs := t.TempDir()
	if err := os.MkdirAll(filepath.Join(theirs, "owners"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(theirs, "owners", th.state.GetAttr("id").AsString()), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(folder, folder+".moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(theirs, folder); err != nil {
		t.Fatal(err)
	}
	null := cty.NullVal(th.state.Type())
	b.apply(context.Background(), b.call(""), th, null, providers.PlanResponse{Planned: null})
	if _, err := os.Stat(filepath.Join(theirs, "owners")); err != nil {
		t.Errorf("a folder behind a link was touched: %v", err)
	}

	for _, bad := range []struct{ id, hash string }{{"../../etc", "sha256:x"}, {"data-0123456789abcdef", "sha256:../.."}, {"", ""}} {
		if err := store(b.data).remove(context.Background(), bad.id, bad.hash); err == nil {
			t.Errorf("removing %q of %q is no error", bad.hash, bad.id)
		}
	}
}

func TestInterruptedDatasetIsSettled(t *testing.T) {
	b := newBench(t)
	config := b.digits(nil)
	th := b.new("train_dataset")
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)

	if got := b.settle("train_dataset", "op-1", p.Planned); !got.state.IsNull() {
		t.Error("a create that never happened was found")
	}
	raw := filepath.Join(b.data, ".new-"+datasetID("op-1"))
	if err := os.MkdirAll(raw, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := b.settle("train_dataset", "op-1", p.Planned); !got.state.IsNull() {
		t.Error("a half-made dataset was found")
	}
	if _, err := os.Stat(raw); !os.IsNotExist(err) {
		t.Error("what was half made is still there")
	}
	noErrors(t, b.apply(context.Background(), b.call("op-1"), th, config, p))
	got := b.settle("train_dataset", "op-1", p.Planned)
	if !got.state.RawEquals(th.state) {
		t.Errorf("settled as\n%s\nwant\n%s", show(got.state), show(th.state))
	}
	if got := b.settle("train_dataset", "op-2", p.Planned); !got.state.IsNull() {
		t.Error("somebody else's dataset was taken over")
	}
}

func TestFailedPreparationLeavesNothing(t *testing.T) {
	b := newBench(t)
	b.behave(behaviour{PrepErr: "Disk is full"})
	config := b.digits(nil)
	th := b.new("train_dataset")
	p := b.plan(th, config)
	noErrors(t, p.Diagnostics)
	oneError(t, b.apply(context.Background(), b.call("op-1"), th, config, p), "Disk is full")
	if !th.state.IsNull() {
		t.Error("a failed preparation left a state")
	}
	entries, _ := os.ReadDir(b.data)
	for _, e := range entries {
		if e.Name() != ".lock" {
			t.Errorf("a failed preparation left %s", e.Name())
		}
	}
	b.behave(behaviour{})
	b.restart()
	p = b.plan(th, config)
	noErrors(t, p.Diagnostics)
	if p.Planned.IsNull() || p.Planned.RawEquals(th.state) {
		t.Fatal("the next plan has nothing to do")
	}
	noErrors(t, b.apply(context.Background(), b.call("op-2"), th, config, p))
	b.unchanged(th, config)
}
