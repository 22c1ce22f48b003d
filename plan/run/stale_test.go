package run_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/run"
	"github.com/stokehq/stoke/plan/state"
)

// saved is a plan as a file holds it, of targets if there are some, and the
// configuration that it carries.
func (w *world) saved(mode plan.Mode, targets ...string) func() string {
	w.tb.Helper()
	ctx, key := context.Background(), &plan.Key{Random: make([]byte, 32)}
	w.targets = targets
	f := w.open()
	p, diags := plan.Make(ctx, w.request(f, mode))
	w.targets = nil
	w.must(diags)
	p.Pin(f.State())
	var file bytes.Buffer
	if err := plan.Encode(&file, p, key); err != nil {
		w.tb.Fatal(err)
	}
	root := w.root
	// The result applies it, and returns why it could not be.
	return func() string {
		w.tb.Helper()
		p, err := plan.Decode(bytes.NewReader(file.Bytes()), int64(file.Len()), key)
		if err != nil {
			w.tb.Fatal(err)
		}
		w.must(p.Bind(ctx, w.catalogue))
		f := w.open()
		if err := p.Stale(f.State()); err != nil {
			return err.Error()
		}
		j, err := f.Begin(ctx)
		if err != nil {
			w.tb.Fatal(err)
		}
		_, diags := run.Apply(ctx, run.Request{Plan: p, Root: root, Journal: j, Catalogue: w.catalogue})
		if err := j.Close(ctx); err != nil {
			w.tb.Fatal(err)
		}
		w.must(diags)
		return ""
	}
}

// edit changes the state as the state commands do.
func (w *world) edit(changes ...state.Change) {
	w.tb.Helper()
	ctx := context.Background()
	j, err := w.open().Begin(ctx)
	if err != nil {
		w.tb.Fatal(err)
	}
	if err := j.Result(ctx, state.Result{Changes: changes}); err != nil {
		w.tb.Fatal(err)
	}
	if err := j.Close(ctx); err != nil {
		w.tb.Fatal(err)
	}
}

func at(text string) address.Instance {
	a, err := address.ParseInstance(text)
	if err != nil {
		panic(err)
	}
	return a
}

func (w *world) object(addr string) *state.Object {
	w.tb.Helper()
	o := w.open().State().Current(at(addr))
	if o == nil {
		w.tb.Fatalf("%s is not in the state", addr)
	}
	return o
}

// island is a configuration in three parts: b reads a, d reads a by way of a
// data source, c stands alone.
func island(a, b, c, d string) string {
	return thing("a", "value = \""+a+"\"\n secret = \"s\"") +
		thing("b", "value = \""+b+"\"\n tags = { a = shelf_thing.a.id }") +
		thing("c", "value = \""+c+"\"") +
		"data \"shelf_thing\" \"a\" { id = shelf_thing.a.id }\n" +
		thing("d", "value = \""+d+"\"\n tags = { a = data.shelf_thing.a.id }") +
		"output \"c\" { value = shelf_thing.c.value }\noutput \"a\" { value = shelf_thing.a.value }\n"
}

func TestStaleByObject(t *testing.T) {
	type step struct {
		config  string
		mode    plan.Mode
		targets []string
	}
	old := island("1", "1", "1", "1")
	changeA, changeB, changeC, changeD := step{config: island("2", "1", "1", "1")}, step{config: island("1", "2", "1", "1")}, step{config: island("1", "1", "2", "1")}, step{config: island("1", "1", "1", "2")}
	cases := []struct {
		name string
		plan step
		then step // planned and applied in between
		edit func(w *world)
		want string // "": it applies
	}{
		{name: "disjoint", plan: changeB, then: changeC},
		{name: "disjoint, with outputs", plan: changeC, then: changeB},
		{name: "read", plan: changeB, then: changeA, want: "shelf_thing.a has changed"},
		{name: "read through a data source", plan: changeD, then: changeA, want: "shelf_thing.a has changed"},
		{name: "reader changes", plan: changeA, then: changeB},
		{name: "written", plan: changeC, then: step{config: island("1", "1", "3", "1")}, want: "shelf_thing.c has changed"},
		{name: "output", plan: step{config: strings.Replace(old, "shelf_thing.c.value }", "\"x\" }", 1)}, then: step{config: strings.Replace(old, "shelf_thing.c.value }", "\"y\" }", 1)}, want: `output "c" has another value`},
		{name: "output reads", plan: step{config: old + "output \"new\" { value = shelf_thing.c.id }\n"}, then: changeC, want: "shelf_thing.c has changed"},
		{name: "created", plan: step{config: old + thing("n", "")}, then: step{config: old + thing("n", "")}, want: "shelf_thing.n has been created"},
		{name: "different ones created", plan: step{config: old + thing("n", ""), targets: []string{"shelf_thing.n"}}, then: step{config: old + thing("m", "")}},
		{name: "destroyed", plan: changeC, then: step{config: old, mode: plan.Destroy, targets: []string{"shelf_thing.c"}}, want: "shelf_thing.c is no longer in the state"},
		{name: "new user", plan: step{config: old, mode: plan.Destroy, targets: []string{"shelf_thing.d"}}, then: step{config: old + thing("u", "value = shelf_thing.d.id")}, want: "shelf_thing.u depends on shelf_thing.d"},
		{name: "new user, everything goes", plan: step{config: old, mode: plan.Destroy}, then: step{config: old + thing("u", "value = shelf_thing.c.id")}, want: "shelf_thing.u depends on shelf_thing.c"},
		{name: "tainted", plan: changeC, edit: func(w *world) {
			w.edit(state.Change{Address: at("shelf_thing.c"), Object: w.object("shelf_thing.c").WithTainted(true)})
		}, want: "shelf_thing.c has changed"},
		{name: "another one moved in the state", plan: changeC, edit: func(w *world) {
			w.edit(state.Change{Address: at("shelf_thing.z"), Object: w.object("shelf_thing.b")}, state.Change{Address: at("shelf_thing.b")})
		}},
		{name: "moved in the state", plan: changeC, edit: func(w *world) {
			w.edit(state.Change{Address: at("shelf_thing.z"), Object: w.object("shelf_thing.c")}, state.Change{Address: at("shelf_thing.c")})
		}, want: "shelf_thing.c is no longer in the state"},
		{name: "moved block", plan: step{config: strings.Replace(old, "\"shelf_thing\" \"d\"", "\"shelf_thing\" \"e\"", 1) + "moved {\n from = shelf_thing.d\n to = shelf_thing.e\n}\n"}, then: changeD, want: "shelf_thing.e has changed"},
		{name: "data source stored by somebody else", plan: changeC, edit: func(w *world) {
			w.edit(state.Change{Address: at("data.shelf_thing.a"), Object: w.object("data.shelf_thing.a").WithMeta(func(m *state.Meta) { m.Private = []byte("x") })})
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf()
			w := newWorld(t, s.catalogue())
			w.must(w.config("main.tf", old))
			w.applied(plan.Normal)
			w.must(w.config("main.tf", c.plan.config))
			apply := w.saved(c.plan.mode, c.plan.targets...)
			if c.edit != nil {
				c.edit(w)
			} else {
				w.must(w.config("main.tf", c.then.config))
				if why := w.saved(c.then.mode, c.then.targets...)(); why != "" {
					t.Fatal(why)
				}
			}
			things := len(s.things)
			switch why := apply(); {
			case c.want == "" && why != "", c.want != "" && !strings.Contains(why, c.want):
				t.Errorf("%q, want %q", why, c.want)
			case c.want != "" && len(s.things) != things:
				t.Errorf("a stale plan has done something")
			}
			if c.want == "" {
				if why := apply(); why == "" && c.plan.mode == plan.Normal {
					t.Errorf("the plan applies twice")
				}
			}
		})
	}
}

// TestDisjointPlans: what the second plan takes as unchanged stays as the
// first has left it.
func TestDisjointPlans(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", island("1", "1", "1", "1")))
	w.applied(plan.Normal)
	w.must(w.config("main.tf", island("1", "2", "1", "1")))
	one := w.saved(plan.Normal)
	w.must(w.config("main.tf", island("1", "1", "2", "1")+"output \"new\" { value = 7 }\n"))
	two := w.saved(plan.Normal)
	for _, apply := range []func() string{two, one} {
		if why := apply(); why != "" {
			t.Fatal(why)
		}
	}
	st := w.open().State()
	if c := st.Outputs()["c"]; c.Value.AsString() != "2" {
		t.Errorf("the output is %#v", c.Value)
	}
	if n, ok := st.Outputs()["new"]; !ok || !n.Value.RawEquals(cty.NumberIntVal(7)) {
		t.Errorf("the new output is gone: %v", st.Outputs())
	}
	w.must(w.config("main.tf", island("1", "2", "2", "1")+"output \"new\" { value = 7 }\n"))
	if p, diags := w.plan(plan.Normal); p.Changed() {
		t.Errorf("something was undone: %s %v", summary(p), diags)
	}
}

// TestPlansFromNothing: two plans that begin without any state.
func TestPlansFromNothing(t *testing.T) {
	w := newWorld(t, newShelf().catalogue())
	w.must(w.config("main.tf", thing("a", "")))
	a := w.saved(plan.Normal)
	w.must(w.config("main.tf", thing("b", "")))
	b := w.saved(plan.Normal)
	if why := a(); why != "" {
		t.Fatal(why)
	}
	if why := a(); !strings.Contains(why, "shelf_thing.a has been created") {
		t.Errorf("twice: %q", why)
	}
	if why := b(); why != "" {
		t.Errorf("the other: %q", why)
	}
	w.object("shelf_thing.a")
	w.object("shelf_thing.b")
}
