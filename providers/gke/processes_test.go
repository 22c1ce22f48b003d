package gke

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// process is how machines come and go, and a pool that wants some.
type process struct {
	seed           uint64
	nodes, most    int
	appear, vanish float64
	steps          [][]gcptest.Capacity // what each step takes: a kind of machine for each zone
}

// processes reads the parameters that are checked in.
func processes(t *testing.T) []process {
	t.Helper()
	text, err := os.ReadFile("testdata/capacity.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []process
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Split(line, "; ")
		if len(fields) != 6 {
			t.Fatalf("capacity.txt: %q", line)
		}
		var p process
		if _, err := fmt.Sscan(strings.Join(fields[:5], " "), &p.seed, &p.nodes, &p.most, &p.appear, &p.vanish); err != nil {
			t.Fatalf("capacity.txt: %q: %v", line, err)
		}
		for step := range strings.SplitSeq(fields[5], " | ") {
			words := strings.Fields(step)
			var kinds []gcptest.Capacity
			for zone := range strings.SplitSeq(words[2], "+") {
				kinds = append(kinds, gcptest.Capacity{Zone: zone, MachineType: words[1], Provisioning: words[0], Accelerator: "nvidia-l4"})
			}
			p.steps = append(p.steps, kinds)
		}
		all = append(all, p)
	}
	return all
}

// machinesBy are those by which a pool, or a step of its fallback, takes such machines.
func machinesBy(of []gcptest.Capacity) map[string]any {
	var zones []any
	for _, c := range of {
		zones = append(zones, c.Zone)
	}
	name, reserved := strings.CutPrefix(of[0].Provisioning, "reservation:")
	if !reserved {
		name = ""
	}
	return map[string]any{"zones": zones, "machine_type": of[0].MachineType, "spot": of[0].Provisioning == "spot", "flex_start": of[0].Provisioning == flexStart, "reservation": name}
}

const flexStart = "flex-start"

// flexible tells whether a step takes machines of flex-start, which need autoscaling.
func (p process) flexible() bool {
	return slices.ContainsFunc(p.steps, func(of []gcptest.Capacity) bool { return of[0].Provisioning == flexStart })
}

func (p process) pool() map[string]any {
	given := map[string]any{"node_count": p.nodes}
	if p.flexible() {
		given = map[string]any{"node_count": nil, "autoscaling": map[string]any{"min": p.nodes, "max": p.nodes}}
	}
	maps.Copy(given, machinesBy(p.steps[0]))
	var fallback []any
	for _, step := range p.steps[1:] {
		fallback = append(fallback, machinesBy(step))
	}
	if fallback != nil {
		given["fallback"] = fallback
	}
	if given["reservation"] == "" {
		delete(given, "reservation")
	}
	return gpu(given)
}

// market is what a process has at an hour.
type market struct {
	process
	random *rand.Rand
	free   map[gcptest.Capacity]int
}

func (m *market) hour(c *gcptest.Cloud) {
	for _, step := range m.steps {
		for _, kind := range step {
			switch chance := m.random.Float64(); {
			case m.free[kind] == 0 && chance < m.appear:
				m.free[kind] = 1 + m.random.IntN(m.most)
			case m.free[kind] > 0 && chance < m.vanish:
				m.free[kind] = 0
			}
			c.SetCapacity(kind, m.free[kind])
		}
	}
}

// enough is the first step that has machines; false where none has.
func (m *market) enough() (int, bool) {
	for n, step := range m.steps {
		if !slices.ContainsFunc(step, func(kind gcptest.Capacity) bool { return m.free[kind] < m.nodes }) {
			return n, true
		}
	}
	return 0, false
}

// tried are the steps that the double saw, by its log, and those that got all.
func (m *market) tried(t testing.TB, attempts []gcptest.Attempt) (steps, whole []int) {
	t.Helper()
	for i := 0; i < len(attempts); {
		operation, good := attempts[i].Operation, true
		n := slices.IndexFunc(m.steps, func(step []gcptest.Capacity) bool { return slices.Contains(step, attempts[i].Of) })
		for ; i < len(attempts) && attempts[i].Operation == operation; i++ {
			a := attempts[i]
			if n < 0 || !slices.Contains(m.steps[n], a.Of) || a.Wanted != m.nodes {
				t.Errorf("nobody declared %+v", a)
			}
			good = good && a.Got == a.Wanted
		}
		steps = append(steps, n)
		if good {
			whole = append(whole, n)
		}
	}
	return steps, whole
}

// TestCapacityProcesses: whatever capacity does, a create ends on the first step that has
// some, by the double's own log, and tries none twice; a plan of a pool on a later
// step says how to go back; nothing is left over.
func TestCapacityProcesses(t *testing.T) {
	t.Parallel()
	all := processes(t)
	if len(all) < 200 {
		t.Fatalf("%d processes", len(all))
	}
	all = all[:most]
	var created, failed, later, back, flexible int
	w := newWorld(t, "grpc", gcptest.Options{Polls: -1})
	w.single = true
	defer func() { w.ended() }()
	w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"node_locations": []any{zone, "us-central1-c", "us-central1-b"}})))
	first := w.google.Paths()
	for _, p := range all {
		m := &market{process: p, random: rand.New(rand.NewPCG(p.seed, 0)), free: map[gcptest.Capacity]int{}}
		config := w.conf("gke_node_pool", p.pool())
		it, tainted := thing{kind: "gke_node_pool"}, false
		for hour := range hours { // with an apply in each
			if tainted { // the next apply begins with that
				if r := w.destroy(it); r.Diagnostics.HasErrors() {
					t.Fatal(r.Diagnostics)
				}
				it, tainted = thing{kind: it.kind}, false
			}
			m.hour(w.google)
			if !it.created() {
				var ok bool
				if it, ok = m.create(w, config, fmt.Sprintf("%d-%d", p.seed, hour)); ok {
					created++
				} else {
					failed++
				}
				tainted = !ok
				continue
			}
			it = w.refresh(it)
			pl, step := w.plan(it, config), it.step()
			if pl.Diagnostics.HasErrors() || !pl.noop() {
				t.Errorf("process %d, hour %d: a second plan is not empty: %v", p.seed, hour, pl.Diagnostics)
			}
			notes := strings.Join(pl.notes, "\n")
			if says := strings.Contains(notes, "stoke apply -replace="); says != (step > 0) {
				t.Errorf("process %d, hour %d: the way back from step %d: %q", p.seed, hour, step, notes)
			}
			if n, ok := m.enough(); ok && n < step { // the user takes it
				if r := w.destroy(it); r.Diagnostics.HasErrors() {
					t.Fatal(r.Diagnostics)
				}
				var good bool
				if it, good = m.create(w, config, fmt.Sprintf("%d-%d", p.seed, hour)); !good || it.step() != n {
					t.Errorf("process %d, hour %d: back on step %d, not %d", p.seed, hour, it.step(), n)
				}
				back++
			}
			if it.step() > 0 {
				later++
			}
			if p.steps[it.step()][0].Provisioning == flexStart {
				flexible++
			}
		}
		if it.created() {
			if r := w.destroy(it); r.Diagnostics.HasErrors() {
				t.Fatal(r.Diagnostics)
			}
		}
		if now := w.google.Paths(); !slices.Equal(now, first) {
			t.Fatalf("process %d left %v", p.seed, now)
		}
	}
	t.Logf("%d pools made, %d creates without capacity, %d hours on a later step, %d on one of flex-start, %d ways back taken", created, failed, later, flexible, back)
	if created == 0 || failed == 0 || later == 0 || flexible == 0 || back == 0 {
		t.Error("the processes do not show all that there is to see")
	}
}

func (it thing) created() bool { return it.state != cty.NilVal && !it.state.IsNull() }

func (it thing) step() int {
	n, _ := it.state.GetAttr("step").AsBigFloat().Int64()
	return int(n)
}

// create makes the pool, and compares what was tried with what there was.
func (m *market) create(w *world, config cty.Value, operation string) (thing, bool) {
	w.Helper()
	seen := len(w.google.Attempts())
	it, r := w.apply(operation, w.plan(thing{kind: "gke_node_pool"}, config))
	steps, whole := m.tried(w.TB, w.google.Attempts()[seen:])
	want, ok := m.enough()
	last := want
	if !ok {
		last = len(m.steps) - 1
	}
	for n := range steps {
		if n != steps[n] {
			w.Errorf("process %d: steps were tried as %v", m.seed, steps)
		}
	}
	switch {
	case len(steps) != last+1:
		w.Errorf("process %d: %d steps were tried, not %d", m.seed, len(steps), last+1)
	case ok && (r.Diagnostics.HasErrors() || it.step() != want || !slices.Equal(whole, []int{want})):
		w.Errorf("process %d: step %d has capacity; %v got all: %v", m.seed, want, whole, r.Diagnostics)
	case !ok && (!r.Diagnostics.HasErrors() || !strings.Contains(r.Diagnostics[0].Summary, "the zone has none left") || r.Keep || len(whole) > 0):
		w.Errorf("process %d: no step has capacity: %v: %+v", m.seed, r.Diagnostics, w.google.Attempts()[seen:])
	}
	return it, ok
}
