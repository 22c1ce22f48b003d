package run_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/run"
	"github.com/stokehq/stoke/plan/state"
)

const firm = "lifecycle { create_before_destroy = true }"

// named is a thing whose name forces a new one.
func named(name, rest string) string {
	return "resource \"shelf_thing\" \"a\" {\n  name = \"" + name + "\"\n" + rest + "\n}\n"
}

func (w *world) deposed(addr string) map[string]*state.Object {
	return w.open().State().Deposed(at(addr))
}

// TestDeposed: an old object whose end fails is neither forgotten nor in the
// way, and goes with the next apply that can.
func TestDeposed(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	user := "resource \"shelf_thing\" \"user\" {\n  name = \"user\"\n  value = shelf_thing.a.id\n}\n"
	w.must(w.config("main.tf", named("one", firm)+user))
	w.applied(plan.Normal)
	jammed := func(what, _ string) error {
		if what == "delete" {
			return errors.New("jammed")
		}
		return nil
	}
	s.hook = jammed
	for i, name := range []string{"two", "three"} {
		w.must(w.config("main.tf", named(name, firm)+user))
		_, report, diags := w.apply(plan.Normal)
		if !strings.Contains(text(diags), "jammed") || report.Complete() || len(report.Outcomes) < 3 {
			t.Errorf("%s: %s, %v", name, text(diags), report.Outcomes)
		}
		if got := len(w.deposed("shelf_thing.a")); got != i+1 {
			t.Fatalf("%s: %d deposed objects", name, got)
		}
		now := w.object("shelf_thing.a")
		if now.Tainted || !strings.Contains(string(now.JSON), name) {
			t.Errorf("%s: the object at hand is %s", name, now.JSON)
		}
		if got := w.object("shelf_thing.user"); !strings.Contains(string(got.JSON), s.idOf(name)) {
			t.Errorf("%s: who uses it has %s", name, got.JSON)
		}
	}
	p, diags := w.plan(plan.Normal)
	w.must(diags)
	if got, want := summary(p), "- shelf_thing.a (deposed)\n- shelf_thing.a (deposed)"; got != want {
		t.Errorf("planned\n%s\nwant\n%s", got, want)
	}
	for _, c := range p.Changes {
		if o := w.deposed("shelf_thing.a")[c.Deposed]; c.Deposed != "" && (o == nil || !strings.Contains(string(o.JSON), c.Before.GetAttr("id").AsString())) {
			t.Errorf("deposed %s is not %#v", c.Deposed, c.Before)
		}
	}
	// One of them goes by itself; nobody needs to be told.
	delete(s.things, s.idOf("one"))
	s.hook = nil
	w.applied(plan.Normal)
	if len(w.deposed("shelf_thing.a")) > 0 || len(s.things) != 2 {
		t.Errorf("left: %v, %v", w.deposed("shelf_thing.a"), s.things)
	}
	if p, _ := w.plan(plan.Normal); p.Changed() {
		t.Errorf("planned again: %s", summary(p))
	}
}

func (s *shelf) idOf(name string) string {
	for id, thing := range s.things {
		if thing["name"].AsString() == name {
			return id
		}
	}
	return "nothing called " + name
}

// TestDeposedOfOrphans: the resource is gone from the configuration, or all is
// destroyed.
func TestDeposedOfOrphans(t *testing.T) {
	for _, mode := range []plan.Mode{plan.Normal, plan.Destroy} {
		s := newShelf()
		w := newWorld(t, s.catalogue())
		w.must(w.config("main.tf", named("one", firm)))
		w.applied(plan.Normal)
		s.hook = func(what, _ string) error {
			if what == "delete" {
				return errors.New("jammed")
			}
			return nil
		}
		w.must(w.config("main.tf", named("two", firm)))
		w.apply(plan.Normal)
		s.hook = nil
		if mode == plan.Normal {
			w.must(w.config("main.tf", ""))
		}
		p := w.applied(mode)
		if len(p.Changes) != 2 || len(s.things) > 0 || len(w.open().State().Instances()) > 0 {
			t.Errorf("mode %d: planned %s; left %v", mode, summary(p), s.things)
		}
	}
}

// TestCreateBeforeDestroyFails: what has come of a creation that fails decides
// what is at hand.
func TestCreateBeforeDestroyFails(t *testing.T) {
	cases := []struct {
		broken           string
		current, tainted bool // the object at hand is the new one, and tainted
		next             string
	}{
		{"error", false, false, "+/- shelf_thing.a replace_because_cannot_update"},
		{"partial", true, true, "+/- shelf_thing.a replace_because_tainted\n- shelf_thing.a (deposed)"},
		{"keep", true, false, "- shelf_thing.a (deposed)\n~ shelf_thing.a"},
		{"lie", true, false, "- shelf_thing.a (deposed)\n~ shelf_thing.a"},
	}
	for _, c := range cases {
		t.Run(c.broken, func(t *testing.T) {
			s := newShelf()
			w := newWorld(t, s.catalogue())
			w.must(w.config("main.tf", named("old", "value = \"v\"\n"+firm)))
			w.applied(plan.Normal)
			w.must(w.config("main.tf", named("new", "value = \"v\"\nbroken = \""+c.broken+"\"\n"+firm)))
			if _, _, diags := w.apply(plan.Normal); !diags.HasErrors() {
				t.Error("nothing failed")
			}
			now := w.object("shelf_thing.a")
			if got := strings.Contains(string(now.JSON), `"new"`); got != c.current || now.Tainted != c.tainted {
				t.Errorf("at hand: %s, tainted %t", now.JSON, now.Tainted)
			}
			if got := len(w.deposed("shelf_thing.a")) == 1; got != c.current {
				t.Errorf("deposed: %v", w.deposed("shelf_thing.a"))
			}
			if s.things[s.idOf("old")] == nil {
				t.Error("the old one was destroyed")
			}
			w.must(w.config("main.tf", named("new", "value = \"v\"\n"+firm)))
			p := w.applied(plan.Normal)
			got := strings.Split(summary(p), "\n")
			slices.Sort(got)
			if strings.Join(got, "\n") != c.next {
				t.Errorf("next\n%s\nwant\n%s", strings.Join(got, "\n"), c.next)
			}
			if len(s.things) != 1 || len(w.deposed("shelf_thing.a")) > 0 {
				t.Errorf("left: %v", s.things)
			}
		})
	}
}

// TestTaintedCreateBeforeDestroy: taint is lifted by the new object, and of the
// old one it stays with what is deposed.
func TestTaintedCreateBeforeDestroy(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", named("one", firm)))
	w.applied(plan.Normal)
	w.edit(state.Change{Address: at("shelf_thing.a"), Object: w.object("shelf_thing.a").WithTainted(true)})
	s.hook = func(what, _ string) error {
		if what == "delete" {
			return errors.New("jammed")
		}
		return nil
	}
	p, report, _ := w.apply(plan.Normal)
	if got := summary(p); got != "+/- shelf_thing.a replace_because_tainted" {
		t.Errorf("planned %s", got)
	}
	failed := slices.IndexFunc(report.Outcomes, func(o run.Outcome) bool { return o.Status == run.Failed })
	if failed < 0 || report.Outcomes[failed].Action != plan.Delete || report.Outcomes[failed].Addr.Mode != address.Managed {
		t.Errorf("outcomes: %v", report.Outcomes)
	}
	if w.object("shelf_thing.a").Tainted {
		t.Error("the new object is tainted")
	}
	for _, o := range w.deposed("shelf_thing.a") {
		if !o.Tainted {
			t.Error("the old object is not tainted any more")
		}
	}
	s.hook = nil
	if got := summary(w.applied(plan.Normal)); got != "- shelf_thing.a (deposed)" || len(s.things) != 1 {
		t.Errorf("planned %s; left %v", got, s.things)
	}
}
