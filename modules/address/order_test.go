package address

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestModuleOrder(t *testing.T) {
	want := []Module{
		"",
		"module.a",
		"module.a[0]",
		"module.a[2]",
		"module.a[10]",
		`module.a["x"]`,
		`module.a["x.module.y"]`,
		`module.a["x\".module.y"]`,
		"module.aa",
		"module.b",
		"module.a.module.b",
		"module.a[2].module.b[1]",
		"module.a[2].module.b[11]",
		"module.a[10].module.b",
		`module.a["x.y"].module.b`,
		"module.a.module.a.module.a",
	}
	for i, a := range want {
		for j, b := range want {
			if got := a.Compare(b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%s against %s: %d", a, b, got)
			}
		}
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, Module.Compare)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
