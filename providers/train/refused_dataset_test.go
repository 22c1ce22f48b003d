package train

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

// TestPlanAfterARefusedDataset: each step of the apply of a dataset fails once: the
// preparation, and each file that the store needs. The next plan has the dataset, and the
// next apply makes it. A destroy that failed is repeated.
func TestPlanAfterARefusedDataset(t *testing.T) {
	b := newBench(t)
	config := b.digits(nil)
	made := b.make("train_dataset", "op-0", config)
	folder, err := datasetFolder(made.state.GetAttr("uri").AsString())
	if err != nil {
		t.Fatal(err)
	}
	b.destroy(made)
	lock := filepath.Join(b.data, ".lock")
	inTheWay := func(path string) (harm, mend func()) {
		return func() {
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
				if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil {
					t.Fatal(err)
				}
			}, func() {
				if err := os.RemoveAll(path); err != nil {
					t.Fatal(err)
				}
			}
	}
	harmLock, mendLock := inTheWay(lock)
	harmFolder, mendFolder := inTheWay(folder)
	for name, c := range map[string]struct{ harm, mend func() }{
		"preparation": {func() { b.behave(behaviour{PrepErr: "Disk is full"}) }, func() { b.behave(behaviour{}) }},
		"lock":        {harmLock, mendLock},
		"folder":      {harmFolder, mendFolder},
		"store": {func() {
			if err := os.RemoveAll(b.data); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(b.data, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, func() {
			if err := os.Remove(b.data); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		th := b.new("train_dataset")
		p := b.plan(th, config)
		noErrors(t, p.Diagnostics)
		c.harm()
		if diags := b.apply(context.Background(), b.call("op-"+name), th, config, p); !diags.HasErrors() || !th.state.IsNull() {
			t.Errorf("%s: the apply says %v, and leaves %s", name, diags, show(th.state))
		}
		c.mend()
		b.restart()
		p = b.plan(th, config)
		noErrors(t, p.Diagnostics)
		if p.Planned.RawEquals(th.state) {
			t.Fatalf("%s: the next plan has nothing to do", name)
		}
		noErrors(t, b.apply(context.Background(), b.call("op-again-"+name), th, config, p))
		b.unchanged(th, config)
		if _, err := os.Stat(filepath.Join(folder, "train.rio")); err != nil {
			t.Errorf("%s: after the next apply: %v", name, err)
		}
		harmLock()
		null := cty.NullVal(th.state.Type())
		if diags := b.apply(context.Background(), b.call(""), th, null, providers.PlanResponse{Planned: null, Private: th.private}); !diags.HasErrors() {
			t.Errorf("%s: a destroy without the lock says nothing", name)
		}
		mendLock()
		if th.state.IsNull() {
			t.Fatalf("%s: a destroy that failed leaves no state", name)
		}
		noErrors(t, b.read(th))
		b.destroy(th)
		if _, err := os.Lstat(folder); !os.IsNotExist(err) {
			t.Errorf("%s: the folder is still there: %v", name, err)
		}
	}
}
