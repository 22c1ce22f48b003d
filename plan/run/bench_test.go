package run_test

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/stokehq/stoke/plan"
)

// tree is n resources, each referring to its parent in a 10-ary tree.
func tree(n int) string {
	var b strings.Builder
	b.WriteString("resource \"terraform_data\" \"r0\" {\n  input = \"root\"\n}\n")
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "resource \"terraform_data\" \"r%d\" {\n  input = terraform_data.r%d.id\n}\n", i, (i-1)/10)
	}
	return b.String()
}

var shapes = []struct {
	name   string
	config string
}{
	{"tree-100", tree(100)},
	{"tree-1000", tree(1000)},
	{"tree-10000", tree(10000)},
	{"count-5000", "resource \"terraform_data\" \"a\" {\n  count = 5000\n  input = count.index\n}\n"},
	{"pairs-1000", `resource "terraform_data" "a" {
  count = 1000
  input = count.index
}
resource "terraform_data" "b" {
  count = 1000
  input = terraform_data.a[count.index].id
}
`},
}

// Each benchmark reads the configuration and the state from their files' text
// and does one whole command's work.

func BenchmarkPlan(b *testing.B) {
	bench(b, func(w *world, config string) {
		w.must(w.config("main.tf", config))
		_, diags := w.plan(plan.Normal)
		w.must(diags)
	}, nil)
}

func BenchmarkApply(b *testing.B) {
	bench(b, func(w *world, config string) {
		w.must(w.config("main.tf", config))
		w.applied(plan.Normal)
	}, func(w *world, config string) { *w = *newWorld(w.tb, nil) })
}

func BenchmarkPlanAgain(b *testing.B) {
	bench(b, func(w *world, config string) {
		w.must(w.config("main.tf", config))
		p, diags := w.plan(plan.Normal)
		w.must(diags)
		if p.Changed() {
			b.Fatal("the second plan is not empty")
		}
	}, func(w *world, config string) {
		if len(w.open().State().Instances()) == 0 {
			w.must(w.config("main.tf", config))
			w.applied(plan.Normal)
		}
	})
}

func BenchmarkDestroy(b *testing.B) {
	bench(b, func(w *world, config string) {
		w.must(w.config("main.tf", config))
		w.applied(plan.Destroy)
	}, func(w *world, config string) {
		w.must(w.config("main.tf", config))
		w.applied(plan.Normal)
	})
}

func bench(b *testing.B, f, before func(w *world, config string)) {
	defer debug.SetGCPercent(debug.SetGCPercent(50)) // as the stoke command runs, once its heap is some 40 MB
	for _, s := range shapes {
		b.Run(s.name, func(b *testing.B) {
			w := newWorld(b, nil)
			b.ReportAllocs()
			for b.Loop() {
				if before != nil {
					b.StopTimer()
					before(w, s.config)
					b.StartTimer()
				}
				f(w, s.config)
			}
		})
	}
}
