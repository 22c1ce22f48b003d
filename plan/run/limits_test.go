package run_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/run"
	"github.com/stokehq/stoke/providers"
)

// crowd counts how many operations are under way at the same time, by name of
// what they work on and on the whole.
type crowd struct {
	mu        sync.Mutex
	now, most map[string]int
	enough    int           // so many of them are waited for
	full      chan struct{} // closed when they are there
}

func newCrowd(enough int) *crowd {
	return &crowd{now: map[string]int{}, most: map[string]int{}, enough: enough, full: make(chan struct{})}
}

func (c *crowd) come(names ...string) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range names {
		c.now[n]++
		c.most[n] = max(c.most[n], c.now[n])
	}
	if c.now["all"] == c.enough {
		c.enough = 0
		close(c.full)
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, n := range names {
			c.now[n]--
		}
	}
}

// hall is a provider in which every operation waits until as many are under
// way as there can be.
func hall(s *shelf, c *crowd, own providers.Limits) providers.Catalogue {
	catalogue := s.catalogue()
	entry := catalogue["registry.terraform.io/stokehq/shelf"]
	entry.Limits = own
	entry.New = func() (providers.Provider, error) { return &hallServer{shelfServer{s: s}, c}, nil }
	catalogue["registry.terraform.io/stokehq/shelf"] = entry
	return catalogue
}

type hallServer struct {
	shelfServer
	crowd *crowd
}

func (p *hallServer) Apply(ctx context.Context, r providers.ApplyRequest) providers.ApplyResponse {
	v := r.Planned
	if v.IsNull() {
		v = r.Prior
	}
	defer p.crowd.come("all", "host "+hostOf("", v))()
	<-p.crowd.full
	return p.shelfServer.Apply(ctx, r)
}

func (p *hallServer) Read(ctx context.Context, r providers.ReadRequest) providers.ReadResponse {
	defer p.crowd.come("all", "host "+hostOf("", r.State))()
	<-p.crowd.full
	return p.shelfServer.Read(ctx, r)
}

func hostOf(_ string, object cty.Value) string {
	if v := object.GetAttr("value"); v.IsKnown() && !v.IsNull() {
		return v.AsString()
	}
	return ""
}

// TestLimits: as many operations are under way as the limits allow, and never
// more; that all of them are done is that nothing waits for ever.
func TestLimits(t *testing.T) {
	const things, hosts = 60, 3
	config := fmt.Sprintf("resource \"shelf_thing\" \"a\" {\n  count = %d\n  name = \"a${count.index}\"\n  value = \"h${count.index %% %d}\"\n}\n", things, hosts)
	cases := []struct {
		name string
		own  providers.Limits
		user plan.Limits
		all  int
		host int // 0: as many as there are
	}{
		{name: "none", all: 20},
		{name: "type", own: providers.Limits{Types: map[string]int{"shelf_thing": 3}}, all: 3},
		{name: "another type", own: providers.Limits{Types: map[string]int{"shelf_other": 3}}, all: 20},
		{name: "provider", own: providers.Limits{Operations: 4}, all: 4},
		{name: "host", own: providers.Limits{PerHost: 2, Host: hostOf}, all: 2 * hosts, host: 2},
		{name: "host and type", own: providers.Limits{PerHost: 2, Host: hostOf, Types: map[string]int{"shelf_thing": 5}}, all: 5, host: 2},
		{name: "all three", own: providers.Limits{PerHost: 1, Host: hostOf, Types: map[string]int{"shelf_thing": 5}, Operations: 2}, all: 2, host: 1},
		{name: "asked for", own: providers.Limits{Operations: 15}, user: plan.Limits{"shelf_thing": 2}, all: 2},
		{name: "asked for more", own: providers.Limits{Types: map[string]int{"shelf_thing": 2}}, user: plan.Limits{"shelf_thing": 6}, all: 6},
		{name: "of the provider", user: plan.Limits{"shelf": 3}, all: 3},
		{name: "of the provider, in full", user: plan.Limits{"stokehq/shelf": 5}, all: 5},
		{name: "of each host", own: providers.Limits{PerHost: 5, Host: hostOf}, user: plan.Limits{plan.PerHost: 1}, all: hosts, host: 1},
		{name: "one at a time", user: plan.Limits{"shelf_thing": 1}, all: 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := newShelf()
			w := newWorld(t, nil)
			w.limits, w.parallelism = c.user, 20
			phase := func(name string, do func()) {
				t.Helper()
				crowd := newCrowd(c.all)
				w.catalogue = hall(s, crowd, c.own)
				do()
				if crowd.most["all"] != c.all {
					t.Errorf("%s: %d at the same time, want %d", name, crowd.most["all"], c.all)
				}
				for _, host := range slices.Sorted(maps.Keys(crowd.most)) {
					if c.host > 0 && strings.HasPrefix(host, "host") && crowd.most[host] > c.host {
						t.Errorf("%s: %d on %s, want %d", name, crowd.most[host], host, c.host)
					}
				}
			}
			w.must(w.config("main.tf", config))
			phase("create", func() { w.applied(plan.Normal) })
			phase("read", func() {
				_, diags := w.plan(plan.Normal)
				w.must(diags)
			})
			if len(s.things) != things {
				t.Errorf("%d things", len(s.things))
			}
		})
	}
}

// TestLimitsInAChain: what waits for a place keeps what comes after it waiting
// too, and an error or an interruption leaves nobody behind.
func TestLimitsInAChain(t *testing.T) {
	config := "resource \"shelf_thing\" \"a\" {\n  count = 20\n  name = \"a${count.index}\"\n  value = \"h\"\n}\n" +
		"resource \"shelf_thing\" \"b\" {\n  count = 20\n  name = \"b${count.index}\"\n  value = shelf_thing.a[count.index].value\n  tags = { a = shelf_thing.a[count.index].id }\n}\n"
	own := providers.Limits{PerHost: 2, Host: hostOf, Types: map[string]int{"shelf_thing": 3}, Operations: 4}
	crowd := newCrowd(1)
	s := newShelf()
	w := newWorld(t, hall(s, crowd, own))
	w.limits = plan.Limits{}
	w.must(w.config("main.tf", config))
	s.hook = func(_, name string) error {
		if name == "a7" {
			return fmt.Errorf("no room")
		}
		return nil
	}
	_, report, _ := w.apply(plan.Normal)
	count := map[run.Status]int{}
	for _, o := range report.Outcomes {
		count[o.Status]++
	}
	if want := 20 - 1; count[run.Failed] != 1 || count[run.Skipped] != 20 || count[run.Done] != want {
		t.Errorf("outcomes: %v", count)
	}
	if crowd.most["host h"] > 2 {
		t.Errorf("%d on the host", crowd.most["host h"])
	}

	s.hook = nil
	stopping := make(chan struct{})
	var once sync.Once
	s.after = func(string, string) { once.Do(func() { close(stopping) }) }
	if rest := w.applyStopping(stopping); rest.Complete() {
		t.Errorf("nothing was interrupted")
	}
	s.after = nil
	w.applied(plan.Normal)
	if len(s.things) != 40 {
		t.Errorf("%d things", len(s.things))
	}
}
