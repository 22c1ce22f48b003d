package run_test

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/run"
	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/store/local"
)

// faulty is a store on a disk that fails: from the n-th write on nothing can
// be written any more. Of an append that strikes the limit, half is on disk.
type faulty struct {
	*local.Store
	left int
	err  error
}

func (f *faulty) write() error {
	if f.left--; f.left < 0 {
		name, _ := f.Names()
		return &fs.PathError{Op: "write", Path: name, Err: f.err}
	}
	return nil
}

func (f *faulty) WriteSnapshot(ctx context.Context, data []byte, ifVersion string) (string, error) {
	if err := f.write(); err != nil {
		return "", err
	}
	return f.Store.WriteSnapshot(ctx, data, ifVersion)
}

func (f *faulty) Append(ctx context.Context, at int64, records []byte, durable bool) error {
	if err := f.write(); err != nil {
		if f.left == -1 {
			f.Store.Append(ctx, at, records[:len(records)/2], false) // what a torn write leaves
		}
		return err
	}
	return f.Store.Append(ctx, at, records, durable)
}

func (f *faulty) DropJournal(ctx context.Context) error {
	if err := f.write(); err != nil {
		return err
	}
	return f.Store.DropJournal(ctx)
}

func (f *faulty) Backup(ctx context.Context, data []byte) error {
	if err := f.write(); err != nil {
		return err
	}
	return f.Store.Backup(ctx, data)
}

// TestFailingDisk runs out of disk at every write of an apply, in every kind
// of change. The run says so and stops making things; nothing that it had done
// before is forgotten, and what it was doing is found by the next run.
func TestFailingDisk(t *testing.T) {
	before := strings.Replace(thing("a", "count = 4"), `name = "a"`, `name = "a${count.index}"`, 1) +
		thing("b", "value = shelf_thing.a[0].id") +
		thing("c", "value = shelf_thing.b.id\n lifecycle { create_before_destroy = true }")
	lives := []struct {
		name, first, second string
		mode                plan.Mode
	}{
		{"create", "", before, plan.Normal},
		{"update", before, strings.ReplaceAll(before, "value =", "tags = { new = 1 }\n value ="), plan.Normal},
		{"replace", before, strings.NewReplacer(`"a$`, `"new-a$`, `"b"`+"\n", `"new-b"`+"\n", `"c"`+"\n", `"new-c"`+"\n").Replace(before), plan.Normal},
		{"destroy", before, before, plan.Destroy},
	}
	for _, life := range lives {
		for _, fault := range []error{syscall.ENOSPC, syscall.EIO} {
			for writes := 0; ; writes++ {
				name := fmt.Sprintf("%s, %v after %d writes", life.name, fault, writes)
				if !diskFailed(t, name, life.first, life.second, life.mode, writes, fault) {
					if writes < 4 {
						t.Errorf("%s: only %d writes were made", life.name, writes)
					}
					break
				}
			}
		}
	}
}

// diskFailed reports whether the run struck the fault.
func diskFailed(t *testing.T, name, first, second string, mode plan.Mode, writes int, fault error) bool {
	t.Helper()
	s := newShelf()
	w := newWorld(t, s.catalogue())
	w.must(w.config("main.tf", first))
	w.applied(plan.Normal)
	w.must(w.config("main.tf", second))

	said, struck := w.applyOn(mode, writes, fault)
	if !struck {
		if said != "" {
			t.Errorf("%s: %s", name, said)
		}
		return false
	}
	if !strings.Contains(said, fault.Error()) {
		t.Errorf("%s: the run says only %q", name, said)
	}
	if _, _, diags := w.apply(mode); diags.HasErrors() {
		t.Fatalf("%s: the next run: %s", name, text(diags))
	}
	s.agrees(t, name, w)
	if mode == plan.Normal {
		p, diags := w.plan(plan.Normal)
		w.must(diags)
		if p.Changed() {
			t.Errorf("%s: the plan after it is not empty:\n%s", name, summary(p))
		}
	}
	return true
}

// applyOn applies on a disk that fails after some writes, and returns all that
// the run said.
func (w *world) applyOn(mode plan.Mode, writes int, fault error) (said string, struck bool) {
	w.tb.Helper()
	ctx := context.Background()
	real, err := local.New(w.state)
	if err != nil {
		w.tb.Fatal(err)
	}
	defer real.Close()
	disk := &faulty{Store: real, left: writes, err: fault}
	f, err := state.Open(ctx, disk)
	if err != nil {
		w.tb.Fatal(err)
	}
	p, diags := plan.Make(ctx, w.request(f, mode))
	w.must(diags)
	j, err := f.Begin(ctx)
	if err != nil {
		return err.Error(), true
	}
	_, diags = run.Apply(ctx, run.Request{Plan: p, Root: w.root, Journal: j, Catalogue: w.catalogue, Parallelism: 3})
	said = text(diags)
	if err := j.Close(ctx); err != nil {
		said += "\n" + err.Error()
	}
	return said, disk.left < 0
}
