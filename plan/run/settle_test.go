package run_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/providers"
)

// TestSettledUpdate kills a run before and after an update takes effect, and
// settles it: the new value is sensitive where the configuration says so, the
// old one where it was, and the object stays in order with all that it may
// refer to.
func TestSettledUpdate(t *testing.T) {
	secret := "variable \"secret\" {\n  default = \"hunter2-hunter2\"\n  sensitive = true\n}\n"
	others := thing("x", "") + thing("y", "")
	cases := []struct{ name, before, after string }{
		{"becomes sensitive", `value = "open text"`, "value = var.secret\n depends_on = [shelf_thing.y]\n lifecycle { create_before_destroy = true }"},
		{"was sensitive", "value = var.secret\n depends_on = [shelf_thing.y]", "value = \"open text\"\n lifecycle { create_before_destroy = true }"},
	}
	for _, c := range cases {
		for _, when := range []string{"before", "after"} {
			t.Run(c.name+", killed "+when+" the effect", func(t *testing.T) {
				s := newShelf()
				w := newWorld(t, s.catalogue())
				w.must(w.config("main.tf", secret+others+thing("a", c.before+"\n tags = { x = shelf_thing.x.id }")))
				w.applied(plan.Normal)
				w.must(w.config("main.tf", secret+others+thing("a", c.after)))
				settled(t, w, s, when)
				o := w.open().State().Current(instance(t, "shelf_thing.a"))
				if o == nil || !slices.ContainsFunc(o.Sensitive, cty.GetAttrPath("value").Equals) {
					t.Fatalf("sensitive are %v", o.Sensitive)
				}
				if want := []string{"shelf_thing.x", "shelf_thing.y"}; !slices.Equal(o.Dependencies, want) || !o.CreateBeforeDestroy {
					t.Errorf("it depends on %q, want %q; made before the old one goes: %v", o.Dependencies, want, o.CreateBeforeDestroy)
				}
				p, diags := w.plan(plan.Normal)
				w.must(diags)
				for _, change := range p.Changes {
					if v := change.Before; !v.IsNull() && v.GetAttr("name").RawEquals(cty.StringVal("a")) && !slices.ContainsFunc(change.BeforeSensitive, cty.GetAttrPath("value").Equals) {
						t.Errorf("the plan shows what was there: %#v", v)
					}
				}
				w.applied(plan.Normal)
				if p, diags := w.plan(plan.Normal); diags.HasErrors() || p.Changed() {
					t.Errorf("the plan after it is not empty:\n%s", summary(p))
				}
			})
		}
	}
}

func instance(t *testing.T, text string) address.Instance {
	t.Helper()
	addr, err := address.ParseInstance(text)
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// settled applies, has the run killed at its first update, and settles what is
// left of it.
func settled(t *testing.T, w *world, s *shelf, when string) {
	t.Helper()
	dir := t.TempDir()
	kill := func(what string) {
		if what == "update" && !s.dead {
			copyFolder(t, filepath.Dir(w.state), dir)
			s.dead = true
		}
	}
	s.hook = func(what, _ string) error {
		if when == "before" {
			kill(what)
		}
		return nil
	}
	s.after = func(what, _ string) {
		if when == "after" {
			kill(what)
		}
	}
	w.apply(plan.Normal)
	if !s.dead {
		t.Fatal("nothing was updated")
	}
	s.hook, s.after, s.dead = nil, nil, false
	w.state = filepath.Join(dir, filepath.Base(w.state))
	w.must(w.settle())
}

// TestFailedUpdate: an update that fails leaves the old value, which is as
// sensitive as it was.
func TestFailedUpdate(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	secret := "variable \"secret\" {\n  default = \"hunter2-hunter2\"\n  sensitive = true\n}\n"
	w.must(w.config("main.tf", secret+thing("a", "value = var.secret")))
	w.applied(plan.Normal)
	w.must(w.config("main.tf", secret+thing("a", "value = \"open\"\n broken = \"error\"")))
	if _, _, diags := w.apply(plan.Normal); !diags.HasErrors() {
		t.Fatal("the update did not fail")
	}
	o := w.open().State().Current(instance(t, "shelf_thing.a"))
	if !slices.ContainsFunc(o.Sensitive, cty.GetAttrPath("value").Equals) {
		t.Errorf("%s: sensitive are %v", o.JSON, o.Sensitive)
	}
}

// settle finds out what became of what a run has left open.
func (w *world) settle() hcl.Diagnostics {
	w.tb.Helper()
	ctx := context.Background()
	f := w.open()
	j, err := f.Begin(ctx)
	if err != nil {
		w.tb.Fatal(err)
	}
	diags := plan.Settle(ctx, w.request(f, plan.Normal), j, f.Open())
	if err := j.Close(ctx); err != nil {
		w.tb.Fatal(err)
	}
	return diags
}

// TestUnsoundAnswerIsLost: what an answer that does not fit its schema leaves
// is found out by reading, as if there were no answer.
func TestUnsoundAnswerIsLost(t *testing.T) {
	answers := map[string]func(cty.Value) cty.Value{
		"another type": with("value", cty.True),
		"nothing":      func(cty.Value) cty.Value { return cty.NilVal },
		"marks":        with("value", cty.StringVal("v").Mark("x")),
	}
	for name, how := range answers {
		for _, mode := range []string{"create", "update", "delete"} {
			t.Run(mode+", "+name, func(t *testing.T) {
				s := newShelf()
				w := newWorld(t, s.catalogue())
				before, after := "", thing("a", "value = \"v\"")
				switch mode {
				case "update":
					before = thing("a", "value = \"u\"")
				case "delete":
					before, after = after, ""
				}
				w.must(w.config("main.tf", before))
				w.applied(plan.Normal)
				entry := w.catalogue["registry.terraform.io/stokehq/shelf"]
				entry.New = func() (providers.Provider, error) { return &garbler{shelfServer{s: s}, how}, nil }
				w.catalogue["registry.terraform.io/stokehq/shelf"] = entry
				w.must(w.config("main.tf", after))
				if _, _, diags := w.apply(plan.Normal); !diags.HasErrors() || !strings.Contains(text(diags), "does not fit its schema") {
					t.Errorf("got\n%s", text(diags))
				}
				if open := w.open().Open(); len(open) != 1 || string(open[0].Action) != mode {
					t.Fatalf("open are %v", open)
				}
				// With an honest provider the object is found, and nothing is left to do.
				w.catalogue = s.catalogue()
				w.must(w.settle())
				st := w.open().State()
				if got, want := len(st.Instances()), len(s.things); got != want || mode != "delete" && want != 1 || mode == "delete" && want != 0 {
					t.Errorf("%d in the state, %d on the shelf", got, want)
				}
				if p, diags := w.plan(plan.Normal); diags.HasErrors() || p.Changed() {
					t.Errorf("afterwards: %s %s", summary(p), text(diags))
				}
			})
		}
	}
}

// garbler garbles what is left after each change.
type garbler struct {
	shelfServer
	how func(cty.Value) cty.Value
}

func (p *garbler) Apply(ctx context.Context, r providers.ApplyRequest) providers.ApplyResponse {
	resp := p.shelfServer.Apply(ctx, r)
	if resp.State.IsNull() {
		resp.State = r.Prior
	}
	resp.State = p.how(resp.State)
	return resp
}
