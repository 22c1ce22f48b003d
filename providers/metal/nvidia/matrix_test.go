package nvidia

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// has is what there is of the table's facts.
func (b *box) has() map[string]string {
	all := map[string]string{}
	for _, name := range []string{NouveauFile, UpgradesFile, RuntimeFile, oldCDIFile} {
		if f, there := b.Files[name]; there {
			all[keyFile+name] = string(f.Content)
		}
	}
	for _, name := range restoredUnits {
		if b.units[name] != "" {
			all[keyUnit+name] = b.units[name]
		}
	}
	for _, name := range b.held {
		all["held "+name] = "held"
	}
	return all
}

// says reports whether one of the changes is about a fact of the table.
func says(changes []host.Change, key string) bool {
	return slices.ContainsFunc(changes, func(c host.Change) bool {
		name, isFile := strings.CutPrefix(key, keyFile)
		return isFile && strings.HasPrefix(c.Fact, "file "+name) || key == keyUnit+persistenced && c.Fact == "persistence daemon"
	})
}

// TestMatrixDriver: (right before us | changed by us) × (drifted by hand | not) ×
// (declared no more | destroyed). What was there before us is there afterwards, and
// what happens is what the plan said.
func TestMatrixDriver(t *testing.T) {
	facts := []string{keyFile + NouveauFile, keyFile + RuntimeFile, keyFile + UpgradesFile, keyUnit + persistenced}
	for _, k := range Table {
		if !slices.ContainsFunc(facts, func(f string) bool { return strings.HasPrefix(f, k.Key) }) {
			t.Errorf("%q is not tried", k.Key)
		}
	}
	for n := range 8 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			right, drifts, declaredNoMore := n&1 == 1, n&2 == 2, n&4 == 4
			want := spec("580", fromNVIDIA)
			b := debian("12", a100).sees("linux-headers-6.1.0-40-amd64")
			b.units[containerd] = "active enabled"
			hooks := b.hooks("580.126.20", true)
			if right { // somebody else has done the same
				b.done(t, want, hooks)
				maps.DeleteFunc(b.Files, func(name string, _ ssh.File) bool { return strings.HasPrefix(name, host.Root) })
			}
			before := b.has()

			ahead := Diff(want, b.state(t, want))
			b.done(t, want, hooks)
			rec, err := host.OpenRecord(t.Context(), b, "gpu-driver")
			if err != nil {
				t.Fatal(err)
			}
			for _, key := range facts {
				if says(ahead, key) == right {
					t.Errorf("create: %s is planned: %v", key, ahead)
				}
				if !slices.Contains(rec.Keys(""), key) {
					t.Errorf("create notes nothing of %s: %v", key, rec.Keys(""))
				}
			}
			if drifts {
				delete(b.Files, RuntimeFile)
				b.Files[NouveauFile] = ssh.File{Path: NouveauFile, Content: []byte("blacklist nouveau # by hand\n")}
				b.Files[UpgradesFile] = ssh.File{Path: UpgradesFile, Content: []byte("//\n")}
				b.units[persistenced] = "inactive disabled"
				ahead = Diff(want, b.state(t, want))
				for _, key := range facts { // a blacklist of nouveau is one, whatever else it says
					if key != keyFile+NouveauFile && !says(ahead, key) {
						t.Errorf("drift: %s is not planned: %v", key, ahead)
					}
				}
				b.done(t, want, hooks)
			}
			if declaredNoMore {
				b.undeclared(t, want, before, hooks)
			}
			_, err = Restore(t.Context(), b, b.record(t), func(context.Context) ([]host.Outcome, error) {
				if !right { // they came with the packages
					delete(b.units, persistenced)
					b.packages = map[string]string{}
				}
				return nil, nil
			})
			if diff := cmp.Diff(before, b.has()); diff != "" || err != nil {
				t.Errorf("after destroy: %v %s", err, diff)
			}
			if keys := b.record(t).Keys(""); len(keys) > 0 {
				t.Errorf("the record still has %v", keys)
			}
		})
	}
}

// TestServiceRunsAgain: a service that ran before and is declared not to runs again
// after destroy, at the next boot too; one whose unit is gone is left.
func TestServiceRunsAgain(t *testing.T) {
	for _, c := range []struct {
		before, want string
		gone         bool
	}{
		{"active enabled", "active enabled", false},
		{"active disabled", "active disabled", false},
		{"inactive enabled", "inactive enabled", false},
		{"inactive disabled", "inactive disabled", false},
		{"active enabled", "", true},
	} {
		b := debian("12", a100).sees("linux-headers-6.1.0-40-amd64")
		b.units[containerd] = "active enabled"
		want := spec("580", fromNVIDIA)
		hooks := b.hooks("580.126.20", true)
		b.done(t, want, hooks) // by somebody else
		maps.DeleteFunc(b.Files, func(name string, _ ssh.File) bool { return strings.HasPrefix(name, host.Root) })
		b.units[persistenced] = c.before
		want.Persistence = false
		b.done(t, want, hooks)
		if strings.HasPrefix(b.units[persistenced], "active") {
			t.Errorf("%s: it is %s", c.before, b.units[persistenced])
		}
		_, err := Restore(t.Context(), b, b.record(t), func(context.Context) ([]host.Outcome, error) {
			if c.gone {
				delete(b.units, persistenced)
			}
			return nil, nil
		})
		if b.units[persistenced] != c.want || err != nil {
			t.Errorf("%s: it is %q after destroy, want %q: %v", c.before, b.units[persistenced], c.want, err)
		}
		if keys := b.record(t).Keys(""); len(keys) > 0 {
			t.Errorf("%s: the record still has %v", c.before, keys)
		}
	}
}

func (b *box) record(t *testing.T) *host.Record {
	t.Helper()
	rec, err := host.OpenRecord(t.Context(), b, "gpu-driver")
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// undeclared leaves out the toolkit and the blacklist of nouveau.
func (b *box) undeclared(t *testing.T, want Spec, before map[string]string, hooks Hooks) {
	t.Helper()
	want.Toolkit, want.NoNouveau = "", false
	was := b.has()
	ahead := Undoing(b.record(t), want, b.state(t, want))
	if host.Greatest(ahead) != host.RestartsContainer {
		t.Errorf("it %s: %v", host.Greatest(ahead), ahead)
	}
	if _, there := before[keyFile+RuntimeFile]; !there && b.reboots == 0 {
		list := hosttest.NewChecks(t, "driver-undeclared")
		list.Case("no toolkit and no blacklist")
		list.Changes(ahead)
	}
	b.done(t, want, hooks)
	is := b.has()
	for _, key := range []string{keyFile + NouveauFile, keyFile + RuntimeFile} {
		if is[key] != before[key] {
			t.Errorf("declared no more: %s was %q, and is %q", key, before[key], is[key])
		}
		if is[key] != was[key] && !says(ahead, key) {
			t.Errorf("declared no more: %s changes, and the plan does not say so: %v", key, ahead)
		}
	}
	if b.runtime != string(b.Files[RuntimeFile].Content) {
		t.Error("containerd still runs with the runtime")
	}
	if left := Undoing(b.record(t), want, b.state(t, want)); len(left) > 0 {
		t.Errorf("a second plan has %v", left)
	}
}
