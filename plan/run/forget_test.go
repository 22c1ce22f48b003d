package run_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/plan"
)

func removed(from string, destroy bool) string {
	return fmt.Sprintf("\nremoved {\n  from = %s\n  lifecycle {\n    destroy = %t\n  }\n}\n", from, destroy)
}

func TestRemoved(t *testing.T) {
	inner := thing("in", "")
	call := "\nmodule \"m\" {\n  source = \"./m\"\n  count  = 2\n}\n"
	counted := "\nresource \"shelf_thing\" \"a\" {\n  count = 2\n  name  = \"a${count.index}\"\n}\n"
	tests := []struct {
		name, before, after string
		want                string   // the plan
		shelf               []string // what is there afterwards
		err                 string
	}{
		{name: "forgotten", before: thing("a", ""), after: removed("shelf_thing.a", false),
			want: ". shelf_thing.a delete_because_no_resource_config", shelf: []string{"a"}},
		{name: "destroyed", before: thing("a", ""), after: removed("shelf_thing.a", true),
			want: "- shelf_thing.a delete_because_no_resource_config"},
		{name: "all instances", before: counted, after: removed("shelf_thing.a", false),
			want: ". shelf_thing.a[0] delete_because_no_resource_config\n. shelf_thing.a[1] delete_because_no_resource_config", shelf: []string{"a0", "a1"}},
		{name: "a module", before: call, after: removed("module.m", false),
			want: ". module.m[0].shelf_thing.in delete_because_no_resource_config\n. module.m[1].shelf_thing.in delete_because_no_resource_config", shelf: []string{"in", "in"}},
		{name: "within a module", before: call, after: removed("module.m.shelf_thing.in", false),
			want: ". module.m[0].shelf_thing.in delete_because_no_resource_config\n. module.m[1].shelf_thing.in delete_because_no_resource_config", shelf: []string{"in", "in"}},
		{name: "the particular decides", before: call, after: removed("module.m", false) + removed("module.m.shelf_thing.in", true),
			want: "- module.m[0].shelf_thing.in delete_because_no_resource_config\n- module.m[1].shelf_thing.in delete_because_no_resource_config"},
		{name: "moved, then forgotten", before: thing("a", ""), after: moved("shelf_thing.a", "shelf_thing.b") + removed("shelf_thing.b", false),
			want: ". shelf_thing.b delete_because_no_move_target from shelf_thing.a", shelf: []string{"a"}},
		{name: "what used it goes on", before: thing("a", "") + thing("b", "value = shelf_thing.a.id"), after: thing("b", "lifecycle { ignore_changes = [value] }") + removed("shelf_thing.a", false),
			want: ". shelf_thing.a delete_because_no_resource_config", shelf: []string{"a", "b"}},
		{name: "nothing there", after: removed("shelf_thing.a", false)},
		{name: "in a module, still declared", before: call, after: call + removed("module.m.shelf_thing.in", false), err: "Removed object still declared"},
		{name: "contradiction", before: thing("a", ""), after: removed("shelf_thing.a", false) + removed("shelf_thing.a", true), err: "Contradicting removed blocks"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newShelf()
			w := newWorld(t, s.catalogue())
			w.must(w.config("main.tf", tt.before, "m/main.tf", inner))
			w.applied(plan.Normal)
			w.must(w.config("main.tf", tt.after, "m/main.tf", inner))
			p, _, diags := w.apply(plan.Normal)
			if tt.err != "" {
				if !strings.Contains(text(diags), tt.err) {
					t.Fatalf("no error %q but %s", tt.err, text(diags))
				}
				return
			}
			w.must(diags)
			if got := fates(p); got != tt.want {
				t.Errorf("planned\n%s\nwant\n%s", got, tt.want)
			}
			if warned := strings.Contains(text(diags), "no longer be managed"); warned != strings.Contains(tt.want, ". ") {
				t.Errorf("said %q", text(diags))
			}
			if diff := cmp.Diff(tt.shelf, s.names()); diff != "" {
				t.Errorf("on the shelf (-want +got):\n%s", diff)
			}
			for _, a := range w.open().State().Instances() {
				if !strings.HasPrefix(tt.name, "what used") {
					t.Errorf("%s is still in the state", a)
				}
			}
			again, diags := w.plan(plan.Normal)
			w.must(diags)
			if again.Changed() {
				t.Errorf("the next plan is\n%s", fates(again))
			}
		})
	}
}

// TestRemovedElsewhere leaves plans that only look, or destroy everything,
// as they are without the block.
func TestRemovedElsewhere(t *testing.T) {
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", thing("a", "")))
	w.applied(plan.Normal)
	w.must(w.config("main.tf", removed("shelf_thing.a", false)))
	if p := w.applied(plan.RefreshOnly); fates(p) != "" || len(w.ids()) != 1 {
		t.Errorf("refresh: %s", fates(p))
	}
	if p := w.applied(plan.Destroy); fates(p) != "- shelf_thing.a" || len(s.things) != 0 {
		t.Errorf("destroy: %s", fates(p))
	}
}
