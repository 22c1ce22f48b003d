package eval

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules"
)

// evaluator returns one for a configuration without resources.
func evaluator(t *testing.T, parallelism int, config string) *Evaluator {
	t.Helper()
	root, _, diags := modules.Load(modules.InMemory(map[string][]byte{"main.tf": []byte(config)}), ".")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return New(context.Background(), Options{Root: root, Parallelism: parallelism, Workspace: "default"})
}

func outputs(ev *Evaluator) (map[string]cty.Value, hcl.Diagnostics) {
	values := map[string]cty.Value{}
	ev.Do(func(t *Task) {
		for name := range ev.Root().Decl.Outputs {
			if v, ok := ev.Root().Output(t, name); ok {
				values[name] = v
			}
		}
	})
	return values, ev.Diagnostics()
}

func TestValues(t *testing.T) {
	cases := []struct {
		name, config, want string // want: output "o" as %#v, or a part of the diagnostic
		fails              bool
	}{
		{"local", "locals {\n a = 1\n b = local.a + 1\n}\noutput \"o\" { value = local.b }", `cty.NumberIntVal(2)`, false},
		{"default", "variable \"v\" { default = \"x\" }\noutput \"o\" { value = upper(var.v) }", `cty.StringVal("X")`, false},
		{"workspace", "output \"o\" { value = terraform.workspace }", `cty.StringVal("default")`, false},
		{"chain", chain(2000), `cty.NumberIntVal(2000)`, false},
		{"cycle", "locals {\n a = local.b\n b = local.c\n c = local.a\n}\noutput \"o\" { value = local.a }", "local.c (main.tf line 4)", true},
		{"typo", "locals {\n region = 1\n}\noutput \"o\" { value = local.regoin }", "Did you mean local.region?", true},
		{"self", "output \"o\" { value = self.x }", `Invalid "self" reference`, true},
		{"each outside", "output \"o\" { value = each.key }", `Reference to "each" in non-for_each context`, true},
		{"a failure is told once", "locals {\n bad = tonumber(\"x\")\n}\noutput \"o\" { value = [local.bad, local.bad] }", "Invalid function argument", true},
	}
	for _, c := range cases {
		for _, parallelism := range []int{1, 10} {
			t.Run(fmt.Sprintf("%s/%d", c.name, parallelism), func(t *testing.T) {
				got, diags := outputs(evaluator(t, parallelism, c.config))
				if c.fails {
					if len(diags) != 1 || !strings.Contains(diags[0].Summary+" "+diags[0].Detail, c.want) {
						t.Errorf("diagnostics: %s", diags)
					}
					return
				}
				if diags.HasErrors() || got["o"].GoString() != c.want {
					t.Errorf("got %#v, %s", got["o"], diags)
				}
			})
		}
	}
}

// chain is n locals, each one more than the one before.
func chain(n int) string {
	var b strings.Builder
	b.WriteString("locals {\n  l0 = 0\n")
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "  l%d = local.l%d + 1\n", i, i-1)
	}
	fmt.Fprintf(&b, "}\noutput \"o\" { value = local.l%d }\n", n)
	return b.String()
}

// TestCyclesAcrossTasks has many tasks run into the same ring of cells from
// different places: nobody may wait for ever, whoever closes the ring.
func TestCyclesAcrossTasks(t *testing.T) {
	for round := range 200 {
		ev := New(context.Background(), Options{Root: &modules.Module{}, Parallelism: 8})
		const ring = 6
		cells := make([]*cell[int], ring)
		for i := range cells {
			cells[i] = &cell[int]{header: header{name: func() string { return fmt.Sprint("cell ", i) }}}
		}
		var get func(t *Task, i int) (int, bool)
		get = func(t *Task, i int) (int, bool) {
			return cells[i].get(t, func(t *Task) (int, bool) {
				ok := true
				t.ForEach(2, func(t *Task, _ int) {
					if _, fine := get(t, (i+1)%ring); !fine {
						t.ev.mu.Lock()
						ok = false
						t.ev.mu.Unlock()
					}
				})
				return i, ok
			})
		}
		ev.Do(func(t *Task) {
			t.ForEach(ring, func(t *Task, i int) { get(t, (i+round)%ring) })
		})
		if diags := ev.Diagnostics(); len(diags) != 1 || diags[0].Summary != "Cycle" {
			t.Fatalf("round %d: %s", round, diags)
		}
	}
}

// TestEachCellOnce counts how often cells are computed that many tasks want.
func TestEachCellOnce(t *testing.T) {
	ev := New(context.Background(), Options{Root: &modules.Module{}, Parallelism: 8})
	computed := make([]int, 100)
	cells := make([]cell[int], 100)
	ev.Do(func(t *Task) {
		t.ForEach(1000, func(t *Task, i int) {
			n := i % len(cells)
			cells[n].get(t, func(*Task) (int, bool) {
				computed[n]++ // only its computer touches it
				return n, true
			})
		})
	})
	for i, n := range computed {
		if n != 1 {
			t.Errorf("cell %d was computed %d times", i, n)
		}
	}
}

func TestNearest(t *testing.T) {
	cases := []struct{ name, want string }{
		{"regoin", "region"}, {"region", "region"}, {"zone", ""}, {"", ""}, {"regions", "region"},
	}
	for _, c := range cases {
		if got := Nearest(c.name, []string{"region", "project", "machine_type"}); got != c.want {
			t.Errorf("Nearest(%q) = %q, want %q", c.name, got, c.want)
		}
	}
}
