package state

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stokehq/stoke/modules/address"
	"github.com/zclconf/go-cty/cty"
)

var (
	testType     = cty.Object(map[string]cty.Type{"name": cty.String})
	testProvider = `provider["registry.terraform.io/stokehq/test"]`
)

func object(t testing.TB, name string) *Object {
	t.Helper()
	v := cty.ObjectVal(map[string]cty.Value{"name": cty.StringVal(name)})
	o, err := NewObject(v, testType, Meta{Provider: testProvider, Dependencies: []string{"test_file.base"}})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func instance(name string, k address.Key) address.Instance {
	return address.Resource{Type: "test_file", Name: name}.Instance(k)
}

// describeState writes down a state for comparison: objects, outputs, intents.
func describeState(s *State, open []Intent) string {
	var b strings.Builder
	for _, a := range s.Instances() {
		if o := s.Current(a); o != nil {
			fmt.Fprintf(&b, "%s = %s %v\n", a, compact(o.JSON), o.Tainted)
		}
		for _, k := range sortedKeys(s.Deposed(a)) {
			fmt.Fprintf(&b, "%s (%s) = %s\n", a, k, compact(s.Deposed(a)[k].JSON))
		}
	}
	for _, k := range sortedKeys(s.Outputs()) {
		fmt.Fprintf(&b, "output %s = %#v\n", k, s.Outputs()[k].Value)
	}
	for _, in := range open {
		fmt.Fprintf(&b, "open %s %s %s %s\n", in.ID, in.Action, in.Address, in.Planned)
	}
	return b.String()
}

func compact(js []byte) string {
	w := &writer{}
	for i := 0; i < len(js); {
		if js[i] == '"' {
			n := stringEnd(js, i)
			w.buf = append(w.buf, js[i:n]...)
			i = n
			continue
		}
		if i = skipSpace(js, i); i < len(js) && js[i] != '"' {
			w.buf = append(w.buf, js[i])
			i++
		}
	}
	return string(w.buf)
}

// script is a run that does everything that runs do: each step is one record.
func script(t testing.TB) []func(j *Journal) error {
	ctx := context.Background()
	var steps []func(j *Journal) error
	add := func(f func(j *Journal) error) { steps = append(steps, f) }
	intent := func(id string, a address.Instance, act Action, planned string, durable bool) {
		in := Intent{ID: id, Address: a, Action: act, Provider: testProvider, Durable: durable}
		if planned != "" {
			in.Planned = []byte(planned)
		}
		add(func(j *Journal) error { return j.Intent(ctx, in) })
	}
	result := func(r Result) {
		add(func(j *Journal) error { return j.Result(ctx, r) })
	}
	one := instance("one", address.Key{})
	intent("1", one, Create, `{"name":null}`, true)
	result(Result{Intent: "1", Changes: []Change{{Address: one, Object: object(t, "one")}}, Durable: true})
	for i := range 3 {
		a, id := instance("many", address.IntKey(i)), fmt.Sprint("m", i)
		intent(id, a, Create, `{"name":"x"}`, i == 1)
		result(Result{Intent: id, Changes: []Change{{Address: a, Object: object(t, id).WithTainted(i == 2)}}, Durable: i == 2})
	}
	intent("2", one, Create, `{"name":"new"}`, true)
	intent("3", instance("many", address.IntKey(0)), Delete, "", true)
	result(Result{Intent: "2", Durable: true, Changes: []Change{
		{Address: one, Object: object(t, "new")}, {Address: one, Deposed: "deadbeef", Object: object(t, "one")}}})
	result(Result{Intent: "3", Changes: []Change{{Address: instance("many", address.IntKey(0))}}})
	intent("4", one, Update, `{"name":"newer"}`, true)
	result(Result{Intent: "4", Err: "no such thing", Durable: true})
	result(Result{Changes: []Change{{Address: one, Deposed: "deadbeef"}}, Durable: true})
	result(Result{Outputs: map[string]Output{"o": {Value: cty.NumberIntVal(3)}}, Durable: true})
	return steps
}

// settle finishes what a run left open, as the engine does.
func settle(t testing.TB, j *Journal) error {
	for _, in := range j.Open() {
		if err := j.Result(context.Background(), Result{Intent: in.ID, Err: "settled", Durable: true}); err != nil {
			return err
		}
	}
	return nil
}

// TestCrash lets a run die at every step in every way, and the run after it
// as well, and looks whether what is found is what was acknowledged.
func TestCrash(t *testing.T) {
	v4, err := os.ReadFile("testdata/v4.tfstate")
	if err != nil {
		t.Fatal(err)
	}
	for _, base := range [][]byte{nil, v4} {
		for how := range deaths {
			for k := 1; ; k++ {
				name := fmt.Sprintf("base=%v/how=%d/step=%d", base != nil, how, k)
				m := newMemory()
				m.snapshot, m.steps, m.how = base, k, how
				m.rand.Seed(int64(k))
				allowed, finished := crashRun(t, m)
				for k2 := 1; ; k2++ {
					n := m.revive()
					n.steps, n.how = k2, how
					if !recoverRun(t, name, n, allowed) {
						continue
					}
					break
				}
				if finished {
					if k < 30 {
						t.Errorf("%s: the run has only %d steps: %v", name, k, m.log)
					}
					break
				}
			}
		}
	}
}

// crashRun plays the script until the store dies. It returns the states that
// the next process may find: what was acknowledged, and what was under way;
// records that asked for no durability may be missing from the end.
func crashRun(t *testing.T, m *memory) (allowed []string, finished bool) {
	f := open(t, m)
	allowed = []string{describeState(f.State(), nil)}
	j, err := f.Begin(context.Background())
	if err != nil {
		return allowed, false
	}
	// A journal that cannot die tells what the state is after each record.
	mj := begin(t, open(t, &memory{snapshot: f.snap.withVersion(4), steps: -1, version: 1}))
	defer mj.Close(context.Background())
	steps := script(t)
	for i, step := range steps {
		if err := step(mj); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		now := describeState(mj.State(), mj.Open())
		err := step(j)
		if err == nil && durableSteps[i] {
			allowed = nil
		}
		allowed = append(allowed, now)
		if err != nil {
			_ = j.Close(context.Background()) // dead: ends its goroutine
			return allowed, false
		}
	}
	final := describeState(mj.State(), mj.Open())
	if err := j.Close(context.Background()); err != nil {
		return append(allowed, final), false
	}
	return []string{final}, true
}

// durableSteps says which steps of script ask for durability.
var durableSteps = []bool{true, true, false, false, true, false, false, true, true, true, true, false, true, true, true, true}

// recoverRun is the next run, which may die too. It reports whether it ended.
func recoverRun(t *testing.T, name string, m *memory, allowed []string) bool {
	t.Helper()
	f := open(t, m)
	got := describeState(f.State(), f.Open())
	ok := false
	for _, a := range allowed {
		ok = ok || a == got
	}
	if !ok {
		t.Fatalf("%s: found\n%s\nallowed:\n%s", name, got, strings.Join(allowed, "\n-- or\n"))
	}
	serial := f.State().Serial()
	want := describeState(f.State(), nil)
	err := func() error {
		j, err := f.Begin(context.Background())
		if err != nil {
			return err
		}
		err = settle(t, j)
		if err2 := j.Close(context.Background()); err == nil {
			err = err2
		}
		return err
	}()
	n := m.revive()
	g := open(t, n)
	if got := describeState(g.State(), nil); got != want {
		t.Fatalf("%s: the second run found\n%s\nand left\n%s", name, want, got)
	}
	if err != nil {
		return false
	}
	if g.State().Serial() > serial+1 || n.journal != nil || len(g.Open()) > 0 {
		t.Fatalf("%s: serial %d after %d, journal %q, open %v", name, g.State().Serial(), serial, n.journal, g.Open())
	}
	if s, err := Decode("x", n.snapshot); err != nil || s.core.base.version != 4 {
		t.Fatalf("%s: the snapshot is not of version 4: %v", name, err)
	}
	return true
}
