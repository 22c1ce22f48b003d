package run_test

import (
	"bytes"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
)

// TestOrderPast looks at the order of calls where what stands between two
// objects has no call of its own: a data source, a resource without instances,
// an object that is gone or forgotten.
func TestOrderPast(t *testing.T) {
	data := "data \"shelf_thing\" \"d\" {\n  id = shelf_thing.a.id\n}\n"
	renamed := func(config, name string) string {
		return strings.Replace(config, `name = "`+name+`"`, `name = "`+name+`2"`, 1)
	}
	none := "resource \"shelf_thing\" \"b\" {\n  count = 0\n  name  = shelf_thing.a.id\n}\n"
	one := strings.Replace(none, "count = 0", "count = 1", 1)
	none, one = none+thing("c", "value = length(shelf_thing.b)"), one+thing("c", "value = length(shelf_thing.b)")
	chain := thing("a", "") + thing("b", "value = shelf_thing.a.id") + thing("c", "value = shelf_thing.b.id")
	through := thing("a", "") + data + thing("c", "value = data.shelf_thing.d.value")
	provider := thing("a", "value = \"p\"") + data + "provider \"shelf\" {\n  alias  = \"p\"\n  prefix = data.shelf_thing.d.value\n}\n" +
		thing("c", "provider = shelf.p")
	module := "module \"m\" {\n  source = \"./m\"\n  count  = 0\n  id     = shelf_thing.a.id\n}\n" + thing("c", "value = length(module.m)")
	ring := thing("a", "") + thing("c", "value = join(\"\", module.m[*].in)") + thing("e", "value = shelf_thing.c.id") +
		"module \"m\" {\n  source = \"./m\"\n  count  = 0\n  id     = shelf_thing.e.id\n}\n"
	first := "lifecycle { create_before_destroy = true }"

	type step struct {
		config string
		mode   plan.Mode
		gone   string // what somebody else has removed before
	}
	cases := []struct {
		name  string
		steps []step
		want  string // how the last step ends
	}{
		{"a data source", []step{{config: through}, {config: through, mode: plan.Destroy}}, "delete c, delete a"},
		{"a data source that is not wanted any more", []step{{config: through}, {}}, "delete c, delete a"},
		{"a data source, update first", []step{{config: through}, {config: thing("c", `value = "own"`)}}, "update c, delete a"},
		{"a data source that stays, update first", []step{{config: thing("a", `value = "old"`) + data + thing("c", "value = data.shelf_thing.d.value")},
			{config: "data \"shelf_thing\" \"d\" {\n  id = shelf_thing.b.id\n}\n" + thing("b", `value = "new"`) + thing("c", "value = data.shelf_thing.d.value")}},
			"create b, update c, delete a"},
		{"a data source, create before destroy", []step{{config: thing("a", "") + data + thing("c", "value = data.shelf_thing.d.id\n"+first)},
			{config: renamed(renamed(thing("a", "")+data+thing("c", "value = data.shelf_thing.d.id\n"+first), "a"), "c")}},
			"create a2, create c2, delete c, delete a"},
		{"no instances", []step{{config: thing("a", "") + none}, {config: thing("a", "") + none, mode: plan.Destroy}}, "delete c, delete a"},
		{"no instances, not wanted any more", []step{{config: thing("a", "") + none}, {}}, "delete c, delete a"},
		{"no instances any more", []step{{config: thing("a", "") + one}, {config: thing("a", "") + none}, {}}, "delete c, delete a"},
		{"no instances, create before destroy", []step{{config: thing("a", "") + none + "\n" + thing("e", "value = shelf_thing.c.id\n"+first)},
			{config: renamed(renamed(thing("a", ""), "a")+none+thing("e", "value = shelf_thing.c.id\n"+first), "e")}},
			"delete e, delete a"},
		{"no module instances", []step{{config: thing("a", "") + module}, {}}, "delete c, delete a"},
		{"no instances, and written otherwise since", []step{{config: thing("a", "") + none},
			{config: thing("a", "") + strings.Replace(none, "name  = shelf_thing.a.id", "name  = shelf_thing.c.id", 1), mode: plan.Destroy}}, "delete c, delete a"},
		{"no module instances, in a ring", []step{{config: ring}, {config: ring, mode: plan.Destroy}}, "delete e, delete c"},
		{"gone", []step{{config: chain}, {config: chain, mode: plan.Destroy, gone: "b"}}, "delete c, delete a"},
		{"gone and not wanted any more", []step{{config: chain}, {gone: "b"}}, "delete c, delete a"},
		{"found gone before", []step{{config: chain}, {config: chain, mode: plan.RefreshOnly, gone: "b"}, {config: chain, mode: plan.Destroy}}, "delete c, delete a"},
		{"forgotten", []step{{config: chain}, {config: removed("shelf_thing.b", false)}}, "delete c, delete a"},
		{"a provider's data source", []step{{config: provider}, {config: provider}, {config: provider, mode: plan.Destroy}}, "delete c, delete a"},
		{"an update that has to come last", []step{
			{config: thing("x", "") + thing("a", "value = shelf_thing.x.id") + thing("c", "value = shelf_thing.a.id")},
			{config: renamed(thing("x", ""), "x") + thing("c", "value = shelf_thing.x.id")}},
			"delete a, delete x, create x2, update c"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf()
			// What has to come first takes its time, so that whatever does not
			// wait for it is done before.
			s.hook = func(what, name string) error {
				if name == "c" || name == "e" {
					time.Sleep(30 * time.Millisecond)
				}
				return nil
			}
			w := newWorld(t, s.catalogue())
			for _, step := range c.steps {
				w.must(w.config("main.tf", step.config, "m/main.tf", "variable \"id\" {}\n"+thing("in", "value = var.id")+"output \"in\" { value = shelf_thing.in.id }\n"))
				s.lose(step.gone)
				s.log = nil
				w.applied(step.mode)
			}
			log := slices.DeleteFunc(s.log, func(line string) bool { return strings.HasPrefix(line, "read") })
			if got := strings.Join(log, ", "); !strings.HasSuffix(got, c.want) {
				t.Errorf("the provider was called:\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestDependenciesCompleted looks at what the state says an object depends on,
// where what it reads has no delete operation or has left the state.
func TestDependenciesCompleted(t *testing.T) {
	data := "data \"shelf_thing\" \"d\" {\n  id = shelf_thing.a.id\n}\n"
	through := thing("a", "") + data + thing("c", "value = data.shelf_thing.d.value")
	chain := thing("a", "") + thing("b", "value = shelf_thing.a.id") + thing("c", "value = shelf_thing.b.id")
	short := func(w *world) { // as it was written before the list was completed
		text, err := os.ReadFile(w.state)
		if err != nil {
			w.tb.Fatal(err)
		}
		old := regexp.MustCompile(`"data.shelf_thing.d",\s*"shelf_thing.a"`).ReplaceAll(text, []byte(`"data.shelf_thing.d"`))
		if bytes.Equal(old, text) {
			w.tb.Fatalf("the state has no completed list:\n%s", text)
		}
		if err := os.WriteFile(w.state, old, 0o600); err != nil {
			w.tb.Fatal(err)
		}
	}
	cases := []struct {
		name, before string
		between      func(*world, *shelf)
		after        string
		mode         plan.Mode
		targets      []string
		want         []string // what c depends on
	}{
		{name: "a state from before", before: through, between: func(w *world, _ *shelf) { short(w) }, after: through,
			want: []string{"data.shelf_thing.d", "shelf_thing.a"}},
		{name: "gone", before: chain, between: func(_ *world, s *shelf) { s.lose("b") }, after: chain, mode: plan.RefreshOnly,
			want: []string{"shelf_thing.a", "shelf_thing.b"}},
		{name: "gone and made again", before: chain, between: func(_ *world, s *shelf) { s.lose("b") }, after: chain,
			want: []string{"shelf_thing.b"}},
		{name: "forgotten while its user is left alone", before: chain, after: thing("a", "") + removed("shelf_thing.b", false),
			targets: []string{"shelf_thing.b"}, want: []string{"shelf_thing.a", "shelf_thing.b"}},
		{name: "destroyed while its user is left alone", before: chain, after: thing("a", "") + thing("c", `value = "own"`),
			targets: []string{"shelf_thing.b"}, want: []string{"shelf_thing.a", "shelf_thing.b"}},
		{name: "an update that turns out to be nothing", before: thing("a", "") + thing("c", `value = "1"`),
			after: thing("a", "") + thing("b", "value = shelf_thing.a.id") + thing("c", `value = length(shelf_thing.b.stamp) > 0 ? "1" : "2"`),
			want:  []string{"shelf_thing.b"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf()
			w := newWorld(t, s.catalogue())
			w.must(w.config("main.tf", c.before))
			w.applied(plan.Normal)
			if c.between != nil {
				c.between(w, s)
			}
			w.must(w.config("main.tf", c.after))
			w.targets = c.targets
			w.applied(c.mode)
			addr, err := address.ParseInstance("shelf_thing.c")
			if err != nil {
				t.Fatal(err)
			}
			if got := w.open().State().Current(addr).Dependencies; !slices.Equal(got, c.want) {
				t.Errorf("c depends on %v, want %v", got, c.want)
			}
		})
	}
}

// TestDependenciesAfterFailure looks at what the state says an object depends on
// after something of it has failed: all that it may still refer to.
func TestDependenciesAfterFailure(t *testing.T) {
	first := "\nlifecycle { create_before_destroy = true }"
	for _, c := range []struct{ name, before, after, fails string }{
		{"a failed update", thing("c", "value = shelf_thing.a.id"), thing("c", `value = "own"`), "update c"},
		{"a failed deletion", thing("c", "value = shelf_thing.a.id"), "", "delete c"},
		{"a failed replacement", thing("c", "value = shelf_thing.a.id"), strings.Replace(thing("c", ""), `"c"`+"\n", `"c2"`+"\n", 1), "delete c"},
		{"a failed replacement, create before destroy", thing("c", "value = shelf_thing.a.id"+first), strings.Replace(thing("c", first), `"c"`+"\n", `"c2"`+"\n", 1), "delete c"},
		{"a failed update of what has drifted", thing("c", "value = shelf_thing.a.id"), thing("c", `value = "own"`), "drift, update c"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf()
			w := newWorld(t, s.catalogue())
			w.must(w.config("main.tf", thing("a", "")+c.before))
			w.applied(plan.Normal)
			if fails, drifts := strings.CutPrefix(c.fails, "drift, "); drifts {
				c.fails = fails
				for _, attrs := range s.things {
					attrs["tags"] = cty.MapVal(map[string]cty.Value{"by": cty.StringVal("hand")})
				}
			}
			s.hook = func(what, name string) error {
				if what+" "+name == c.fails {
					return errors.New("it is nailed down")
				}
				return nil
			}
			w.must(w.config("main.tf", c.after))
			for range 2 {
				if _, _, diags := w.apply(plan.Normal); !diags.HasErrors() {
					t.Fatal("it does not fail")
				}
				if slices.Contains(s.log, "delete a") {
					t.Fatalf("a was deleted while c was there: %v", s.log)
				}
			}
			s.hook = nil
			w.applied(plan.Destroy)
			if c, a := slices.Index(s.log, "delete c"), slices.Index(s.log, "delete a"); c < 0 || a < c {
				t.Errorf("the provider was called: %v", s.log)
			}
		})
	}
}

// lose takes a thing away, as somebody else would.
func (s *shelf) lose(name string) {
	for id, attrs := range s.things {
		if attrs["name"].AsString() == name {
			delete(s.things, id)
		}
	}
}
