package run_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stokehq/stoke/modules"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/run"
	"github.com/stokehq/stoke/plan/seal"
)

// TestKilled stops the world at every call that a life of a configuration
// makes, before and after its effect: what is on disk then is all that the
// next run has. After it, shelf and state agree and nothing was made twice.
func TestKilled(t *testing.T) {
	const before = `
resource "shelf_thing" "a" {
  count = 3
  name  = "a${count.index}"
}
resource "shelf_thing" "b" {
  name = "b"
  value = shelf_thing.a[0].id
}
resource "shelf_thing" "c" {
  name = "c"
  value = shelf_thing.b.id
  lifecycle { create_before_destroy = true }
}
`
	lives := []struct {
		name, first, second string
		mode                plan.Mode
	}{
		{"create", "", before, plan.Normal},
		{"update", before, strings.ReplaceAll(before, "value =", "tags = { new = 1 }\n  value ="), plan.Normal},
		{"replace", before, strings.NewReplacer(`"a$`, `"new-a$`, `"b"`+"\n", `"new-b"`+"\n", `"c"`+"\n", `"new-c"`+"\n").Replace(before), plan.Normal},
		{"destroy", before, before, plan.Destroy},
	}
	for _, life := range lives {
		for _, when := range []string{"before", "after"} {
			for n := 1; ; n++ {
				name := fmt.Sprintf("%s/%s call %d", life.name, when, n)
				if !killed(t, name, life.first, life.second, life.mode, when, n) {
					if n < 3 {
						t.Errorf("%s: only %d calls were made", life.name, n-1)
					}
					break
				}
			}
		}
	}
}

// killed reports whether the n-th call was reached.
func killed(t *testing.T, name, first, second string, mode plan.Mode, when string, n int) bool {
	t.Helper()
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", first))
	w.applied(plan.Normal)

	dir, calls := t.TempDir(), 0
	kill := func() {
		if calls++; calls == n {
			copyFolder(t, filepath.Dir(w.state), dir)
			s.dead = true
		}
	}
	if when == "before" {
		s.hook = func(string, string) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			kill()
			return nil
		}
	} else {
		s.after = func(string, string) { kill() }
	}
	w.must(w.config("main.tf", second))
	w.apply(mode)
	if !s.dead {
		return false
	}
	s.hook, s.after, s.dead = nil, nil, false
	w.state = filepath.Join(dir, filepath.Base(w.state))
	if _, _, diags := w.apply(mode); diags.HasErrors() {
		t.Fatalf("%s: the next run: %s", name, text(diags))
	}
	s.agrees(t, name, w)
	if mode == plan.Normal {
		p, diags := w.plan(plan.Normal)
		w.must(diags)
		if p.Changed() {
			t.Errorf("%s: the plan after it is not empty:\n%s", name, summary(p))
		}
	}
	return true
}

// agrees compares shelf, state and log: nothing lost, doubled or forgotten.
func (s *shelf) agrees(t *testing.T, name string, w *world) {
	t.Helper()
	inState := 0
	st := w.open().State()
	for _, addr := range st.Instances() {
		if len(st.Deposed(addr)) > 0 {
			t.Errorf("%s: %s is still deposed", name, addr)
		}
		o := st.Current(addr)
		v, err := o.Value(shelfBlock.ImpliedType())
		if err != nil {
			t.Fatal(err)
		}
		if s.things[v.GetAttr("id").AsString()] == nil {
			t.Errorf("%s: %s is in the state but not on the shelf", name, addr)
		}
		inState++
	}
	if inState != len(s.things) {
		t.Errorf("%s: %d objects in the state, %d on the shelf", name, inState, len(s.things))
	}
	made := map[string]int{}
	for _, line := range s.log {
		if what, thing, _ := strings.Cut(line, " "); what == "create" {
			made[thing]++
		}
	}
	for thing, n := range made {
		if n > 1 {
			t.Errorf("%s: %s was made %d times", name, thing, n)
		}
	}
}

func copyFolder(t *testing.T, from, to string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || strings.Contains(e.Name(), ".lock") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPlanFile applies what was written to a file and read back, with a
// configuration that comes from the file alone.
func TestPlanFile(t *testing.T) {
	ctx := context.Background()
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", thing("a", `secret = "s"`)+thing("b", "value = shelf_thing.a.id")+`
module "m" {
  source = "./m"
  v      = shelf_thing.b.id
}
data "shelf_thing" "d" { id = shelf_thing.a.id }
output "o" { value = data.shelf_thing.d.id }
`, "m/main.tf", "variable \"v\" {}\n"+thing("in", "value = var.v")))
	p, diags := w.plan(plan.Normal)
	w.must(diags)
	key := fileKey()
	var file bytes.Buffer
	if err := plan.Encode(&file, p, key); err != nil {
		t.Fatal(err)
	}
	read, err := plan.Decode(bytes.NewReader(file.Bytes()), int64(file.Len()), key)
	if err != nil {
		t.Fatal(err)
	}
	w.must(read.Bind(ctx, w.catalogue))
	if summary(read) != summary(p) {
		t.Errorf("read back\n%s\nwant\n%s", summary(read), summary(p))
	}
	root, _, diags := modules.Load(modules.InMemory(read.Files), read.Dir)
	w.must(diags)
	f := w.open()
	if err := read.Stale(f.State()); err != nil {
		t.Fatal(err)
	}
	j, err := f.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	_, diags = run.Apply(ctx, run.Request{Plan: read, Root: root, Journal: j, Catalogue: w.catalogue})
	w.must(diags)
	if err := j.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := read.Stale(w.open().State()); err == nil {
		t.Error("the plan can be applied a second time")
	}
	again, diags := w.plan(plan.Normal)
	w.must(diags)
	if again.Changed() {
		t.Errorf("the next plan:\n%s", summary(again))
	}
	for cut := 0; cut < file.Len(); cut += 97 {
		if _, err := plan.Decode(bytes.NewReader(file.Bytes()[:cut]), int64(cut), key); err == nil {
			t.Fatalf("a plan file cut at %d bytes was read", cut)
		}
	}
}

// fileKey seals plan files in tests.
func fileKey() *plan.Key { return &plan.Key{Random: make([]byte, seal.SecretLen)} }
