package filetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

const fileType = "test_file"

type vals = map[string]cty.Value

var str = cty.StringVal

// world is one provider and the folder that it works in.
type world struct {
	t   testing.TB
	p   providers.Provider
	dir string
	ty  cty.Type
}

func newWorld(t testing.TB) *world {
	t.Helper()
	p, err := Entry().New()
	if err != nil {
		t.Fatal(err)
	}
	schema, diags := p.Schema(t.Context())
	if diags.HasErrors() || !schema.Marks {
		t.Fatal(diags, schema)
	}
	return &world{t: t, p: p, dir: filepath.Join(t.TempDir(), "files"), ty: schema.Resources[fileType].Block.ImpliedType()}
}

// config is a configured test_file of the folder.
func (w *world) config(v vals) cty.Value {
	full := vals{}
	for name, ty := range w.ty.AttributeTypes() {
		full[name] = cty.NullVal(ty)
	}
	full["directory"], full["name"] = str(w.dir), str("a")
	for name, val := range v {
		full[name] = val
	}
	return cty.ObjectVal(full)
}

func (w *world) null() cty.Value { return cty.NullVal(w.ty) }

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// apply plans and applies a change as the engine does.
func (w *world) apply(ctx context.Context, prior, config cty.Value) providers.ApplyResponse {
	w.t.Helper()
	proposed := config
	if !prior.IsNull() && !config.IsNull() {
		m := config.AsValueMap()
		for _, name := range []string{"id", "path", "sha256", "mark"} {
			m[name] = prior.GetAttr(name)
		}
		proposed = cty.ObjectVal(m)
	}
	plan := w.p.Plan(ctx, providers.PlanRequest{Type: fileType, Prior: prior, Proposed: proposed, Config: config})
	if plan.Diagnostics.HasErrors() {
		return providers.ApplyResponse{State: prior, Diagnostics: plan.Diagnostics}
	}
	return w.p.Apply(ctx, providers.ApplyRequest{Type: fileType, Prior: prior, Planned: plan.Planned, Config: config, Private: plan.Private})
}

// make creates an object that has to come about.
func (w *world) make(op string, v vals) cty.Value {
	w.t.Helper()
	r := w.apply(call(w.t, op), w.null(), w.config(v))
	if r.Diagnostics != nil {
		w.t.Fatal(r.Diagnostics)
	}
	return r.State
}

func (w *world) read(ctx context.Context, state cty.Value) providers.ReadResponse {
	return w.p.Read(ctx, providers.ReadRequest{Type: fileType, State: state})
}

func (w *world) log() []string {
	w.t.Helper()
	text, err := os.ReadFile(w.path(logName))
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(text), w.dir+"/", ""), "\n"), "\n")
}

// files lists the folder but for the log.
func (w *world) files() []string {
	entries, _ := os.ReadDir(w.dir)
	var names []string
	for _, e := range entries {
		if e.Name() != logName {
			names = append(names, e.Name())
		}
	}
	return names
}

func call(t testing.TB, op string) context.Context {
	return providers.WithCall(t.Context(), &providers.Call{Operation: op, Address: `test_file.x["a"]`})
}

func settling(t testing.TB, op string) context.Context {
	return providers.WithCall(t.Context(), &providers.Call{Operation: op, Settling: true})
}

func get(v cty.Value, name string) string {
	if v.IsNull() || v.GetAttr(name).IsNull() {
		return ""
	}
	return v.GetAttr(name).AsString()
}

func TestLifecycle(t *testing.T) {
	w := newWorld(t)
	config := w.config(vals{"content": str("one\ntwo")})
	plan := w.p.Plan(t.Context(), providers.PlanRequest{Type: fileType, Prior: w.null(), Proposed: config, Config: config})
	for name, known := range map[string]bool{"id": false, "path": false, "mark": false, "sha256": true} {
		if plan.Planned.GetAttr(name).IsKnown() != known {
			t.Errorf("planned %s: %#v", name, plan.Planned.GetAttr(name))
		}
	}
	unknown := w.config(vals{"content": cty.UnknownVal(cty.String)})
	if plan := w.p.Plan(t.Context(), providers.PlanRequest{Type: fileType, Prior: w.null(), Proposed: unknown, Config: unknown}); plan.Planned.GetAttr("sha256").IsKnown() {
		t.Error("the checksum of unknown content is known")
	}

	state := w.make("op-1", vals{"content": str("one\ntwo")})
	if get(state, "path") != w.path("a") || get(state, "id") != w.path("a") || get(state, "mark") != "op-1" {
		t.Errorf("created %#v", state)
	}
	text, err := os.ReadFile(w.path("a"))
	if err != nil || string(text) != "stoke-mark op-1\none\ntwo" {
		t.Errorf("file: %q %v", text, err)
	}
	if r := w.read(t.Context(), state); !r.State.RawEquals(state) || r.Diagnostics != nil {
		t.Errorf("read %#v %v", r.State, r.Diagnostics)
	}
	same := w.p.Plan(t.Context(), providers.PlanRequest{Type: fileType, Prior: state, Proposed: state, Config: config})
	if !same.Planned.RawEquals(state) || len(same.Replace) > 0 {
		t.Errorf("planned again: %#v", same)
	}

	updated := w.apply(call(t, "op-2"), state, w.config(vals{"content": str("three")}))
	if updated.Diagnostics != nil || get(updated.State, "mark") != "op-1" || get(updated.State, "sha256") != contentHash("three") {
		t.Errorf("updated: %+v", updated)
	}
	moved := w.config(vals{"content": str("three"), "name": str("b")})
	replace := w.p.Plan(t.Context(), providers.PlanRequest{Type: fileType, Prior: updated.State, Proposed: with(updated.State, vals{"name": str("b")}), Config: moved})
	if len(replace.Replace) != 1 || providers.PathString(replace.Replace[0]) != "name" {
		t.Errorf("replace: %v", replace.Replace)
	}
	if gone := w.apply(call(t, "op-3"), updated.State, w.null()); !gone.State.IsNull() || gone.Diagnostics != nil {
		t.Errorf("deleted: %+v", gone)
	}
	if d := cmp.Diff([]string{"create op-1 a", "update op-1 a", "delete op-1 a"}, w.log()); d != "" {
		t.Error(d)
	}
	if f := w.files(); len(f) > 0 {
		t.Errorf("left behind: %v", f)
	}
}

func with(v cty.Value, change vals) cty.Value {
	m := v.AsValueMap()
	for name, val := range change {
		m[name] = val
	}
	return cty.ObjectVal(m)
}

func TestOnlyOurMarkIsTakenOver(t *testing.T) {
	w := newWorld(t)
	first := w.make("op-1", vals{"content": str("mine")})
	r := w.apply(call(t, "op-2"), w.null(), w.config(vals{"content": str("other")}))
	if !r.State.IsNull() || len(r.Diagnostics) != 1 || r.Diagnostics[0].Summary != "File already exists" {
		t.Fatalf("%+v", r)
	}
	want := `Remove the file, or give test_file.x["a"] another name.`
	if !strings.Contains(r.Diagnostics[0].Detail, want) {
		t.Errorf("detail:\n%s", r.Diagnostics[0].Detail)
	}
	if text, _ := os.ReadFile(w.path("a")); string(text) != "stoke-mark op-1\nmine" {
		t.Errorf("the other's file now holds %q", text)
	}
	// The same operation may come back.
	again := w.apply(call(t, "op-1"), w.null(), w.config(vals{"content": str("mine")}))
	if again.Diagnostics != nil || !again.State.RawEquals(first) {
		t.Errorf("%+v", again)
	}
	// Without operations nothing is ever taken over.
	w.apply(t.Context(), w.null(), w.config(vals{"name": str("b")}))
	if r := w.apply(t.Context(), w.null(), w.config(vals{"name": str("b")})); !r.Diagnostics.HasErrors() {
		t.Error("an unmarked file was taken over")
	}
	if d := cmp.Diff([]string{"a", "b"}, w.files()); d != "" {
		t.Error(d)
	}
}

// A create of unknown outcome is settled by reading its planned state.
func TestSettling(t *testing.T) {
	w := newWorld(t)
	state := w.make("op-1", vals{"content": str("c")})
	planned := w.config(vals{"content": str("c"), "delay": str("0s")})
	if r := w.read(settling(t, "op-1"), planned); get(r.State, "path") != w.path("a") || get(r.State, "delay") != "0s" || r.Diagnostics != nil {
		t.Errorf("own: %+v", r)
	}
	for _, op := range []string{"op-2", ""} {
		if r := w.read(settling(t, op), planned); !r.State.IsNull() || r.Diagnostics != nil {
			t.Errorf("other operation %q: %+v", op, r)
		}
	}
	if r := w.read(settling(t, "op-1"), w.config(vals{"name": str("none")})); !r.State.IsNull() || r.Diagnostics != nil {
		t.Errorf("nothing there: %+v", r)
	}
	// Killed before the log line: settling adds it, once.
	write(t, w.path(logName), "")
	for range 2 {
		w.read(settling(t, "op-1"), planned)
	}
	if d := cmp.Diff([]string{"create op-1 a"}, w.log()); d != "" {
		t.Error(d)
	}
	// Killed between removing the file and logging it.
	if err := os.Remove(w.path("a")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if r := w.read(t.Context(), state); !r.State.IsNull() || r.Diagnostics != nil {
			t.Errorf("gone: %+v", r)
		}
	}
	if d := cmp.Diff([]string{"create op-1 a", "delete op-1 a"}, w.log()); d != "" {
		t.Error(d)
	}
	// Killed while writing: the temporary file goes.
	write(t, w.path(".a.op-9.tmp"), "stoke-mark op-9\nc")
	if r := w.read(settling(t, "op-9"), planned); !r.State.IsNull() || len(w.files()) != 0 {
		t.Errorf("%+v, left %v", r, w.files())
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestFailures(t *testing.T) {
	w := newWorld(t)
	ctx := call(t, "op")
	fail := func(how string, more vals) cty.Value {
		return w.config(with(cty.ObjectVal(vals{"name": str(how), "fail": str(how), "content": str("abcdef")}), more).AsValueMap())
	}
	for _, tt := range []struct {
		how        string
		keep       bool
		wantHeld   string // what the file holds after a failed create
		wantExists bool
	}{
		{how: "plan"},
		{how: "create"},
		{how: "create-partial", wantHeld: "abc", wantExists: true},
		{how: "create-partial", keep: true, wantHeld: "abc", wantExists: true},
	} {
		t.Run(fmt.Sprint(tt.how, tt.keep), func(t *testing.T) {
			more := vals{}
			if tt.keep {
				more = vals{"keep": cty.True, "name": str("kept")}
			}
			r := w.apply(ctx, w.null(), fail(tt.how, more))
			if !r.Diagnostics.HasErrors() || r.State.IsNull() == tt.wantExists || r.Keep != tt.keep {
				t.Fatalf("%+v", r)
			}
			if get(r.State, "content") != tt.wantHeld {
				t.Errorf("state: %#v", r.State)
			}
			if !tt.wantExists {
				return
			}
			if read := w.read(ctx, r.State); !read.State.RawEquals(r.State) {
				t.Errorf("read: %#v", read.State)
			}
			finished := w.apply(ctx, r.State, fail(tt.how, more))
			if finished.Diagnostics != nil || get(finished.State, "content") != "abcdef" {
				t.Errorf("finished: %+v", finished)
			}
		})
	}
	for _, how := range []string{"update", "delete", "read"} {
		t.Run(how, func(t *testing.T) {
			made := w.apply(ctx, w.null(), fail(how, nil))
			if made.Diagnostics != nil {
				t.Fatal(made.Diagnostics)
			}
			var diags providers.Diagnostics
			var after cty.Value
			switch how {
			case "update":
				r := w.apply(ctx, made.State, fail(how, vals{"content": str("new")}))
				diags, after = r.Diagnostics, r.State
			case "delete":
				r := w.apply(ctx, made.State, w.null())
				diags, after = r.Diagnostics, r.State
			case "read":
				r := w.read(ctx, made.State)
				diags, after = r.Diagnostics, r.State
			}
			if !diags.HasErrors() || !after.RawEquals(made.State) {
				t.Errorf("%v %#v", diags, after)
			}
			if text, _ := os.ReadFile(w.path(how)); !strings.HasSuffix(string(text), "abcdef") {
				t.Errorf("file: %q", text)
			}
		})
	}
}

// The first Ctrl-C lets a working call finish, the second ends it.
func TestInterrupts(t *testing.T) {
	w := newWorld(t)
	stopping := make(chan struct{})
	close(stopping)
	var steps []providers.Progress
	ctx := providers.WithCall(t.Context(), &providers.Call{Operation: "op-1", Stopping: stopping, Progress: func(p providers.Progress) { steps = append(steps, p) }})
	if r := w.apply(ctx, w.null(), w.config(vals{"delay": str("20ms")})); r.Diagnostics != nil || r.State.IsNull() {
		t.Errorf("stopping: %+v", r)
	}
	if len(steps) == 0 || steps[0].Step != "making the file" || !slices.IsSortedFunc(steps, func(a, b providers.Progress) int {
		return int(a.Percent - b.Percent)
	}) {
		t.Errorf("progress: %v", steps)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ctx = providers.WithCall(ctx, &providers.Call{Operation: "op-2", Progress: func(providers.Progress) { cancel() }})
	r := w.apply(ctx, w.null(), w.config(vals{"name": str("b"), "delay": str("1h")}))
	if !r.Diagnostics.HasErrors() || !r.State.IsNull() || slices.Contains(w.files(), "b") {
		t.Errorf("cancelled: %+v, files %v", r, w.files())
	}
}

func TestImportAndForeignFiles(t *testing.T) {
	w := newWorld(t)
	write(t, w.path("a"), "by hand")
	r := w.p.Import(t.Context(), providers.ImportRequest{Type: fileType, ID: w.path("a")})
	if r.Diagnostics != nil || len(r.Objects) != 1 {
		t.Fatalf("%+v", r)
	}
	state := w.read(t.Context(), r.Objects[0].State).State
	if get(state, "content") != "by hand" || get(state, "mark") != "" || get(state, "directory") != w.dir {
		t.Errorf("imported: %#v", state)
	}
	updated := w.apply(call(t, "op-1"), state, w.config(vals{"content": str("by stoke")}))
	if read := w.read(t.Context(), updated.State); updated.Diagnostics != nil || !read.State.RawEquals(updated.State) {
		t.Errorf("updated: %#v, read %#v", updated, read.State)
	}
	if r := w.p.Import(t.Context(), providers.ImportRequest{Type: fileType, ID: ""}); !r.Diagnostics.HasErrors() {
		t.Error("imported nothing")
	}
	for id, want := range map[string]string{"./out/f": "./out", "/f": "/", "f": ".", "a/b/f": "a/b"} {
		r := w.p.Import(t.Context(), providers.ImportRequest{Type: fileType, ID: id})
		if len(r.Objects) != 1 || get(r.Objects[0].State, "directory") != want || get(r.Objects[0].State, "name") != "f" {
			t.Errorf("import %s: %+v", id, r)
		}
	}
	missing := w.p.Import(t.Context(), providers.ImportRequest{Type: fileType, ID: w.path("none")})
	if r := w.read(t.Context(), missing.Objects[0].State); !r.State.IsNull() {
		t.Errorf("imported what is not there: %#v", r.State)
	}

	// A file that another object made in the meantime is left alone.
	mine := w.make("op-2", vals{"name": str("b")})
	write(t, w.path("b"), "stoke-mark op-3\nyours")
	if r := w.read(t.Context(), mine); !r.State.IsNull() || len(r.Diagnostics) != 1 {
		t.Errorf("read: %+v", r)
	}
	if r := w.apply(call(t, "op-4"), mine, w.config(vals{"name": str("b"), "content": str("mine")})); !r.Diagnostics.HasErrors() {
		t.Errorf("update: %+v", r)
	}
	w.apply(call(t, "op-5"), mine, w.null())
	if text, _ := os.ReadFile(w.path("b")); string(text) != "stoke-mark op-3\nyours" {
		t.Errorf("the other's file: %q", text)
	}
}

func TestValidate(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		v    vals
		want string // the path at fault
	}{
		{vals{"delay": str("1m30s"), "fail": str("read")}, ""},
		{vals{"name": cty.UnknownVal(cty.String), "delay": cty.UnknownVal(cty.String), "directory": cty.UnknownVal(cty.String), "fail": cty.UnknownVal(cty.String)}, ""},
		{vals{"name": str("")}, "name"},
		{vals{"name": str("a/b")}, "name"},
		{vals{"name": str("..")}, "name"},
		{vals{"name": str(".a")}, "name"},
		{vals{"name": str(logName)}, "name"},
		{vals{"name": str("a\nb")}, "name"},
		{vals{"directory": str("")}, "directory"},
		{vals{"directory": str("/x\n")}, "directory"},
		{vals{"delay": str("soon")}, "delay"},
		{vals{"delay": str("-1s")}, "delay"},
		{vals{"fail": str("badly")}, "fail"},
	} {
		d := w.p.ValidateResource(t.Context(), fileType, w.config(tt.v))
		got := ""
		if len(d) > 0 {
			got = providers.PathString(d[0].Path)
		}
		if got != tt.want || len(d) > 1 {
			t.Errorf("%#v: %v", tt.v, d)
		}
	}
}

func TestData(t *testing.T) {
	w := newWorld(t)
	w.make("op-1", vals{"content": str("c")})
	null := cty.NullVal(cty.String)
	config := cty.ObjectVal(vals{"directory": str(w.dir), "name": str("a"), "content": null, "path": null, "sha256": null, "mark": null})
	r := w.p.ReadData(t.Context(), providers.ReadDataRequest{Type: fileType, Config: config})
	if r.Diagnostics != nil || get(r.State, "content") != "c" || get(r.State, "mark") != "op-1" {
		t.Errorf("%+v", r)
	}
	if r := w.p.ReadData(t.Context(), providers.ReadDataRequest{Type: fileType, Config: with(config, vals{"name": str("b")})}); !r.Diagnostics.HasErrors() {
		t.Errorf("%+v", r)
	}
}

func TestManyAtOnce(t *testing.T) {
	w := newWorld(t)
	const n = 100
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			w.apply(call(t, fmt.Sprint("op-", i)), w.null(), w.config(vals{"name": str(fmt.Sprint("f", i))}))
		})
	}
	group.Wait()
	lines := w.log()
	slices.Sort(lines)
	if len(slices.Compact(lines)) != n || len(w.files()) != n {
		t.Errorf("%d lines, %d files, want %d", len(lines), len(w.files()), n)
	}
	for _, line := range lines {
		var op, file int
		if _, err := fmt.Sscanf(line, "create op-%d f%d", &op, &file); err != nil || op != file {
			t.Errorf("line %q", line)
		}
	}
}
