package run_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/store/local"
)

// dying is a store that takes down what is on disk at its n-th write: before
// it, after it, or in the middle of an append. What is written later is as if
// it had never been.
type dying struct {
	*local.Store
	when   string
	n, at  int
	freeze func(cut int64) // cut: bytes of the journal that got to the disk; -1: all of them
}

func (d *dying) write(do func() error, half int64) error {
	d.at++
	if d.at == d.n && d.when == "before" {
		d.freeze(-1)
	}
	err := do()
	if d.at == d.n && d.when != "before" {
		if d.when != "torn" {
			half = -1
		}
		d.freeze(half)
	}
	return err
}

func (d *dying) WriteSnapshot(ctx context.Context, data []byte, ifVersion string) (version string, err error) {
	err = d.write(func() error {
		version, err = d.Store.WriteSnapshot(ctx, data, ifVersion)
		return err
	}, -1)
	return version, err
}

func (d *dying) Append(ctx context.Context, at int64, records []byte, durable bool) error {
	return d.write(func() error { return d.Store.Append(ctx, at, records, durable) }, at+int64(len(records))/2)
}

func (d *dying) DropJournal(ctx context.Context) error {
	return d.write(func() error { return d.Store.DropJournal(ctx) }, -1)
}

func (d *dying) Backup(ctx context.Context, data []byte) error {
	return d.write(func() error { return d.Store.Backup(ctx, data) }, -1)
}

// dieAt has everything that the world writes from now on stop at the n-th
// write. The function that it returns tells whether that came, and lets the
// world go on with what was on disk then.
func (w *world) dieAt(s *shelf, when string, n int) (resurrect func() bool) {
	dir, died := w.tb.TempDir(), false
	w.wrap = func(inner state.Store) state.Store {
		return &dying{Store: inner.(*local.Store), when: when, n: n, freeze: func(cut int64) {
			died = true
			copyFolder(w.tb.(*testing.T), filepath.Dir(w.state), dir)
			if cut >= 0 {
				_, journal := inner.Names()
				if err := os.Truncate(filepath.Join(dir, filepath.Base(journal)), cut); err != nil {
					w.tb.Error(err)
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.dead = true
		}}
	}
	return func() bool {
		w.wrap, s.dead = nil, false
		if died {
			w.state = filepath.Join(dir, filepath.Base(w.state))
		}
		return died
	}
}

// TestRefactorKilled stops the world at every write that a refactoring makes.
// Whatever was on disk then, the next run finds every object once, and makes
// and destroys none.
func TestRefactorKilled(t *testing.T) {
	const counted = "resource \"shelf_thing\" \"n\" {\n  count = 2\n  name  = \"n${count.index}\"\n}\n"
	before := thing("a", "") + thing("b", "value = shelf_thing.a.id") + counted
	lives := []struct {
		name, first, second string
		want                []string // addresses afterwards
	}{
		{"move", before, thing("c", "") + thing("b", "value = shelf_thing.c.id") + strings.ReplaceAll(counted, `"n"`, `"m"`) +
			moved("shelf_thing.a", "shelf_thing.c", "shelf_thing.n", "shelf_thing.m"),
			[]string{"shelf_thing.b", "shelf_thing.c", "shelf_thing.m[0]", "shelf_thing.m[1]"}},
		{"import", thing("a", ""), thing("a", "") + thing("x", "") + thing("y", "") + imported("shelf_thing.x", `"ix"`) + imported("shelf_thing.y", `"iy"`),
			[]string{"shelf_thing.a", "shelf_thing.x", "shelf_thing.y"}},
		{"forget", before, thing("b", "lifecycle { ignore_changes = [value] }") + removed("shelf_thing.a", false) + removed("shelf_thing.n", false),
			[]string{"shelf_thing.b"}},
	}
	for _, life := range lives {
		for _, when := range []string{"before", "after", "torn"} {
			n := 1
			for refactoredAndKilled(t, fmt.Sprintf("%s/%s write %d", life.name, when, n), life.first, life.second, life.want, when, n) {
				n++
			}
			if n < 6 {
				t.Errorf("%s: only %d writes", life.name, n-1)
			}
		}
	}
}

func refactoredAndKilled(t *testing.T, name, first, second string, want []string, when string, n int) bool {
	t.Helper()
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", strings.ReplaceAll(strings.ReplaceAll(first, `name = "c"`, `name = "a"`), `"m${`, `"n${`)))
	w.applied(plan.Normal)
	s.put("ix", "x", nil)
	s.put("iy", "y", nil)
	there := len(s.things)
	w.must(w.config("main.tf", strings.ReplaceAll(strings.ReplaceAll(second, `name = "c"`, `name = "a"`), `"m${`, `"n${`)))
	resurrect := w.dieAt(s, when, n)
	w.apply(plan.Normal)
	if !resurrect() {
		return false
	}
	s.log = nil
	if _, _, diags := w.apply(plan.Normal); diags.HasErrors() {
		t.Fatalf("%s: the next run: %s", name, text(diags))
	}
	if got := slices.Sorted(maps.Keys(w.ids())); !cmp.Equal(want, got) {
		t.Errorf("%s: the state has %v", name, got)
	}
	for address, id := range w.ids() {
		if s.things[id] == nil {
			t.Errorf("%s: %s is not on the shelf", name, address)
		}
	}
	if len(s.things) != there || len(s.log) > 0 {
		t.Errorf("%s: %d things are on the shelf after %v, %d were", name, len(s.things), s.log, there)
	}
	p, diags := w.plan(plan.Normal)
	w.must(diags)
	if p.Changed() {
		t.Errorf("%s: the plan after it is\n%s", name, fates(p))
	}
	return true
}

// TestStateCommandKilled stops the world at every write that state mv, rm,
// taint or import make: all of the change is on disk, or nothing of it.
func TestStateCommandKilled(t *testing.T) {
	target := func(text string) address.Target {
		a, err := address.ParseTarget(text)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	commands := map[string]func(st *state.State) []state.Change{
		"mv": func(st *state.State) []state.Change {
			moves, err := plan.MovesTo(st, target("shelf_thing.a"), target("module.m.shelf_thing.c"), st)
			if err != nil || len(moves) != 1 {
				t.Fatal(moves, err)
			}
			return plan.Relocated(st, moves)
		},
		"rm": func(st *state.State) []state.Change {
			var changes []state.Change
			for _, a := range st.Instances() {
				changes = append(changes, state.Change{Address: a})
			}
			return changes
		},
		"import": func(st *state.State) []state.Change {
			a := st.Instances()[0]
			return []state.Change{{Address: a.Resource.Instance(address.IntKey(7)), Object: st.Current(a)}}
		},
	}
	ctx := context.Background()
	for name, command := range commands {
		for _, when := range []string{"before", "after", "torn"} {
			for n := 1; ; n++ {
				s := newShelf()
				w := newWorld(t, s.catalogue())
				w.must(w.config("main.tf", thing("a", "")+thing("b", "value = shelf_thing.a.id")))
				w.applied(plan.Normal)
				old := describe(w.open().State())
				resurrect := w.dieAt(s, when, n)
				f := w.open()
				j, err := f.Begin(ctx)
				if err != nil {
					t.Fatal(err)
				}
				changes := command(f.State())
				next := describe(f.State().WithChanges(changes, nil))
				if err := j.Result(ctx, state.Result{Changes: changes, Durable: true}); err != nil {
					t.Fatal(err)
				}
				if err := j.Close(ctx); err != nil {
					t.Fatal(err)
				}
				if !resurrect() {
					if got := describe(w.open().State()); got != next {
						t.Errorf("%s: %s, want %s", name, got, next)
					}
					if n < 6 {
						t.Errorf("%s: only %d writes", name, n-1)
					}
					break
				}
				if got := describe(w.open().State()); got != old && got != next {
					t.Errorf("%s, %s write %d: the state is %s, neither %s nor %s", name, when, n, got, old, next)
				}
			}
		}
	}
}

// describe lists objects with their ids and dependencies.
func describe(st *state.State) string {
	var b strings.Builder
	for _, a := range st.Instances() {
		o := st.Current(a)
		fmt.Fprintf(&b, "%s %s %v; ", a, strings.Join(strings.Fields(string(o.JSON)), ""), o.Dependencies)
	}
	return b.String()
}
