package kube

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stokehq/stoke/providers"
)

// TestServerWarns: a plan shows a warning of the API server once, however many
// objects it is about, and an apply does not repeat it.
func TestServerWarns(t *testing.T) {
	w := newWorld(t)
	endpoints := func(name string) string {
		return "apiVersion: v1\nkind: Endpoints\nmetadata: {name: " + name + "}\nsubsets: []\n---\n"
	}
	config := w.yaml(endpoints("a") + endpoints("b"))
	said := func(notes []string) int {
		return len(slices.DeleteFunc(slices.Clone(notes), func(n string) bool {
			return !strings.Contains(n, "the API server warns: v1 Endpoints is deprecated")
		}))
	}
	pl := w.plan(thing{}, config)
	if n := said(pl.notes); n != 1 {
		t.Errorf("the plan shows it %d times: %q", n, pl.notes)
	}
	if pl = w.plan(thing{}, config); said(pl.notes) != 1 { // as in the next round of a plan
		t.Errorf("the second plan of the resource does not show it: %q", pl.notes)
	}
	var mu sync.Mutex
	var lines []string
	ctx := providers.WithCall(t.Context(), &providers.Call{Operation: "op-" + w.ns, Address: pl.prior.address(), Progress: func(p providers.Progress) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, p.Line)
	}})
	r := w.phase().Apply(ctx, providers.ApplyRequest{Type: pl.kind, Prior: pl.prior.state, Planned: pl.Planned, Config: pl.config, Private: pl.Private})
	if n := said(lines); n != 0 || r.Diagnostics.HasErrors() {
		t.Errorf("the apply repeats it: %q, %v", lines, r.Diagnostics)
	}
	w.destroy(thing{kind: pl.kind, state: r.State, private: r.Private})
}
