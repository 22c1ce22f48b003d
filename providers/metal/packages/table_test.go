package packages

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// files are the lines of observeScript about files of ours, and whose repositories
// are.
func (d *double) files(asked []string) string {
	var b strings.Builder
	for name, f := range d.Files {
		if slices.Contains(asked, name) {
			b.WriteString("file\t" + name + "\t644 root:root\t" + base64.StdEncoding.EncodeToString(f.Content) + "\n")
		}
		var rec struct{ Was map[string]any }
		if path.Base(name) != "record.json" || json.Unmarshal(f.Content, &rec) != nil {
			continue
		}
		for key := range rec.Was {
			if repository, ok := strings.CutPrefix(key, "file "+sourcesDir+"/stoke-"); ok {
				b.WriteString("owner\t" + strings.TrimSuffix(repository, ".sources") + "\t" + path.Base(path.Dir(name)) + "\n")
			}
		}
	}
	return b.String()
}

func lab(t *testing.T) Repository {
	return Repository{URIs: []string{"http://lab.example.org"}, Suites: []string{"/"}, Key: Key{Inline: testdata(t, "key-ed25519.asc")}, Fingerprints: []string{printEd25519}}
}

// TestSharedRepository: two owners declare one repository. Whoever leaves first
// leaves it to the other, and the last one takes it away.
func TestSharedRepository(t *testing.T) {
	for _, order := range [][2]string{{"host", "gpu-driver"}, {"gpu-driver", "host"}} {
		d, first := newDouble(t)
		second, err := host.NewRecord(t.Context(), d, "gpu-driver", "id", "metal_gpu_driver.a")
		if err != nil {
			t.Fatal(err)
		}
		recs := map[string]*host.Record{"host": first, "gpu-driver": second}
		file, key := sourcesFile("lab"), keyringFile("lab")
		there := func() bool { _, a := d.Files[file]; _, b := d.Files[key]; return a && b }
		want := map[string]Spec{}
		for _, owner := range []string{"host", "gpu-driver"} {
			want[owner] = Spec{Owner: owner, Repositories: map[string]Repository{"lab": lab(t)}}
			if err := d.try(recs[owner], want[owner]); err != nil || !there() {
				t.Fatalf("%s: %v", owner, err)
			}
		}
		for _, owner := range order {
			st, err := Observe(t.Context(), d, want[owner])
			if changes := Diff(want[owner], st); err != nil || len(changes) > 0 || len(want[owner].conflicts(st)) > 0 {
				t.Errorf("%s: a second plan has %v %v %v", owner, changes, want[owner].conflicts(st), err)
			}
		}
		leaving := order[0]
		changes, err := Undoing(t.Context(), d, recs[leaving], nil)
		if err != nil || len(changes) > 0 {
			t.Errorf("%s leaves, and %v %v", leaving, changes, err)
		}
		if leaving == "host" { // destroyed, or declared no more
			_, err = Restore(t.Context(), d, recs[leaving])
		} else {
			err = d.try(recs[leaving], Spec{Owner: leaving})
		}
		if err != nil || !there() {
			t.Fatalf("%s left: %v, the repository is there: %v", leaving, err, there())
		}
		staying := order[1]
		changes, err = Undoing(t.Context(), d, recs[staying], nil)
		if err != nil || len(changes) != 1 || !strings.HasPrefix(changes[0].Fact, "repository lab ") {
			t.Errorf("%s leaves, and %v %v", staying, changes, err)
		}
		if _, err := Restore(t.Context(), d, recs[staying]); err != nil {
			t.Fatal(err)
		}
		_, a := d.Files[file]
		_, b := d.Files[key]
		if a || b {
			t.Errorf("%v left: the repository is there: %v, its key: %v", order, a, b)
		}
		for name := range d.Files {
			if strings.Contains(name, "was-") {
				t.Errorf("%s is left", name)
			}
		}
	}
}

// TestOtherwise: a repository that another owner has otherwise is refused by the
// one that comes to it.
func TestOtherwise(t *testing.T) {
	d, rec := newDouble(t)
	if err := d.try(rec, Spec{Owner: "host", Repositories: map[string]Repository{"lab": lab(t)}}); err != nil {
		t.Fatal(err)
	}
	other := lab(t)
	other.URIs = []string{"http://mirror.example.org"}
	want := Spec{Owner: "gpu-driver", Repositories: map[string]Repository{"lab": other}}
	st, err := Observe(t.Context(), d, want)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := Foresee(t.Context(), d, want, st); err != nil || len(f.Refusals) != 1 || !strings.Contains(f.Refusals[0], "declared otherwise") {
		t.Errorf("%v %v", f.Refusals, err)
	}
	want.Owner = "host" // its own, which may change
	if st, err = Observe(t.Context(), d, want); err != nil || len(want.conflicts(st)) > 0 {
		t.Errorf("%v %v", want.conflicts(st), err)
	}
}

// TestUndeclared: repositories, pins, exclusions and the proxy that are declared no
// more are planned to become what they were, and do; a hold of a package that was
// there, too. What was there before is what there was when it was first declared.
func TestUndeclared(t *testing.T) {
	list := hosttest.NewChecks(t, "packages-undeclared")
	d, rec := newDouble(t)
	held := "pkg\thi \tok\tjq\tamd64\t1.6\n" + jqState
	d.state = held
	want := Spec{Owner: "host", Repositories: map[string]Repository{"lab": lab(t)}, Proxy: &Proxy{HTTP: "http://proxy.example.org:3128"},
		Packages: map[string]Package{"jq": {Version: "1.6", Hold: true, Exclude: true}}}
	pin := pinFile("host")
	if err := d.put(pin, want.pins()); err != nil { // right before us
		t.Fatal(err)
	}
	if err := d.try(rec, want); err != nil {
		t.Fatal(err)
	}
	if err := d.put(pin, "by hand"); err != nil {
		t.Fatal(err)
	}
	if err := d.try(rec, want); err != nil {
		t.Fatal(err)
	}
	none := Spec{Owner: "host"}
	for _, c := range []struct {
		name, state string
	}{{"as it was", held}, {"the hold was taken away", strings.Replace(held, "hi ", "ii ", 1)}} {
		d.state = c.state
		changes, err := Undoing(t.Context(), d, rec, &none)
		if err != nil {
			t.Fatal(err)
		}
		list.Case("%s", c.name)
		list.Changes(changes)
	}
	d.state = held
	if err := d.try(rec, none); err != nil {
		t.Fatal(err)
	}
	var left []string
	for name := range d.Files {
		if strings.HasPrefix(name, "/etc/apt/") {
			left = append(left, name)
		}
	}
	if diff := cmp.Diff([]string{pin}, left); diff != "" || string(d.Files[pin].Content) != want.pins() {
		t.Errorf("files that are left: %s%s", diff, d.Files[pin].Content)
	}
	if changes, err := Undoing(t.Context(), d, rec, &none); err != nil || len(changes) > 0 {
		t.Errorf("a second plan has %v, %v", changes, err)
	}
}

func (d *double) put(name, content string) error {
	return d.Put(context.Background(), ssh.File{Path: name, Content: []byte(content), Mode: 0o644})
}
