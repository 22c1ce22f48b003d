package run_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
)

// TestRefreshChanged reads what a change touches, and plans of it what a full
// refresh does.
func TestRefreshChanged(t *testing.T) {
	config := func(value string) string {
		return thing("base", "") + thing("mid", "value = shelf_thing.base.stamp") + thing("top", "value = shelf_thing.mid.stamp\n tags = { v = \""+value+"\" }") +
			thing("other", "value = \"o\"") + thing("leaf", "value = shelf_thing.other.stamp") + `
data "shelf_thing" "d" { id = shelf_thing.base.id }
resource "shelf_thing" "user" {
  name  = "user"
  value = data.shelf_thing.d.id
  tags  = { v = "` + value + `" }
}
output "leaf" { value = shelf_thing.leaf.value }
`
	}
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", config("1")))
	w.applied(plan.Normal)
	read := map[string]int{}
	w.listen = func(e plan.Event) {
		if e.Kind == plan.RefreshDone || e.Kind == plan.ReadDone {
			read[e.Addr.String()]++
		}
	}
	ids := func() string { return strings.Join(slices.Sorted(maps.Keys(read)), " ") }
	changed := func(r *plan.Request) { r.RefreshChanged = true }
	both := func(want string, unread int) {
		t.Helper()
		clear(read)
		w.shape = changed
		p, diags := w.plan(plan.Normal)
		w.must(diags)
		if got := ids(); got != want {
			t.Errorf("read %s, want %s", got, want)
		}
		for addr, n := range read {
			if n > 1 {
				t.Errorf("%s was read %d times", addr, n)
			}
		}
		if p.Unread != unread {
			t.Errorf("%d objects were not read, want %d", p.Unread, unread)
		}
		once := maps.Clone(read)
		w.shape = nil
		full, diags := w.plan(plan.Normal)
		w.must(diags)
		at := map[address.Instance]*plan.Change{}
		for _, c := range full.Changes {
			at[c.Addr] = c
		}
		for _, c := range p.Changes {
			if f := at[c.Addr]; once[c.Addr.String()] > 0 && (f.Action != c.Action || !f.After.RawEquals(c.After) || !f.Before.RawEquals(c.Before)) {
				t.Errorf("%s: planned %s %#v, a full refresh plans %s %#v", c.Addr, verbs[c.Action], c.After, verbs[f.Action], f.After)
			}
		}
	}
	both("data.shelf_thing.d", 6)
	w.must(w.config("main.tf", config("2")))
	both("data.shelf_thing.d shelf_thing.base shelf_thing.mid shelf_thing.top shelf_thing.user", 2)

	// What the changes depend on has moved, so that more changes; what nothing
	// touches has moved too and is not looked at.
	edit := func(name, attr, value string) {
		for _, thing := range s.things {
			if thing["name"].AsString() == name {
				thing[attr] = cty.StringVal(value)
			}
		}
	}
	edit("mid", "value", "by hand")
	edit("leaf", "value", "by hand")
	both("data.shelf_thing.d shelf_thing.base shelf_thing.mid shelf_thing.top shelf_thing.user", 2)
	w.shape = changed
	if got := summary(w.applied(plan.Normal)); got != "~ shelf_thing.mid\n~ shelf_thing.top\n~ shelf_thing.user" {
		t.Errorf("planned\n%s", got)
	}
	if p, _ := w.plan(plan.Normal); p.Changed() || p.Unread != 6 {
		t.Errorf("again: %s, %d not read", summary(p), p.Unread)
	}
	w.shape = nil
	if got := summary(w.applied(plan.Normal)); got != "~ shelf_thing.leaf" {
		t.Errorf("planned\n%s", got)
	}
}

// TestDriftShown shows drift where it matters, or all of it.
func TestDriftShown(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", thing("a", "value = \"1\"")+thing("b", "")))
	w.applied(plan.Normal)
	for _, thing := range s.things {
		thing["stamp"] = cty.StringVal("moved")
	}
	w.must(w.config("main.tf", thing("a", "value = \"2\"")+thing("b", "")))
	for want, all := range map[int]bool{1: false, 2: true} {
		w.shape = func(r *plan.Request) { r.AllDrift = all }
		p, diags := w.plan(plan.Normal)
		w.must(diags)
		if len(p.Drift) != want {
			t.Errorf("all: %v: %d drifted", all, len(p.Drift))
		}
	}
}

// TestUnseen: a plan knows how much of what it says nobody could look at.
func TestUnseen(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", thing("a", "")+thing("b", "")+thing("c", "")))
	w.applied(plan.Normal)
	s.away = func(name string) bool { return name != "c" }
	for _, mode := range []plan.Mode{plan.Normal, plan.RefreshOnly} {
		for _, shape := range []func(*plan.Request){nil, func(r *plan.Request) { r.SkipRefresh = true }} {
			want := 2
			if w.shape = shape; shape != nil {
				want = 0
			}
			if p, diags := w.plan(mode); p == nil || p.Changed() || p.Unseen != want || len(diags) != want {
				t.Errorf("mode %v: %d not seen, want %d: %v", mode, p.Unseen, want, diags)
			}
		}
	}
}
