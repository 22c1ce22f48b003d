package gke

import (
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	"google.golang.org/grpc/codes"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// asking is a world whose provider can look at services.
func asking(t *testing.T, enable bool, services ...string) *world {
	w := newWorld(t, "grpc", gcptest.Options{Services: services})
	w.provider = map[string]cty.Value{"service_usage_endpoint": cty.StringVal(w.google.REST() + "/serviceusage/"), "enable_services": cty.BoolVal(enable)}
	return w
}

func TestServicesMissing(t *testing.T) {
	w := asking(t, false, "compute.googleapis.com")
	if pl := w.plan(thing{kind: "gke_disk"}, w.conf("gke_disk", data(nil))); pl.Diagnostics.HasErrors() {
		t.Errorf("a disk needs compute alone: %v", pl.Diagnostics)
	}
	for kind, given := range map[string]map[string]any{"gke_cluster": lab(nil), "gke_filestore": shared(nil)} {
		pl := w.plan(thing{kind: kind}, w.conf(kind, given))
		name := map[string]string{"gke_cluster": "container", "gke_filestore": "file"}[kind] + ".googleapis.com"
		if len(pl.Diagnostics) != 1 || !pl.Diagnostics.HasErrors() {
			t.Fatalf("%s plans %v", kind, pl.Diagnostics)
		}
		for _, want := range []string{"gcloud services enable " + name + " --project stoke-test", "https://console.cloud.google.com/apis/library/" + name, "enable_services"} {
			if !strings.Contains(pl.Diagnostics[0].Detail, want) {
				t.Errorf("%s does not say %q: %s", kind, want, pl.Diagnostics[0].Detail)
			}
		}
	}
}

// TestServicesOnce: a provider asks once for all that it plans; who may not look is
// told so once.
func TestServicesOnce(t *testing.T) {
	for _, code := range []codes.Code{codes.OK, codes.PermissionDenied, codes.NotFound, codes.Unimplemented} {
		w := asking(t, false)
		if code != codes.OK {
			w.google.Fail(gcptest.Fault{Method: "serviceusage.*", Code: code, Times: -1, Message: "Not for you."})
		}
		p := w.phase()
		schema, _ := p.Schema(t.Context())
		var notes []string
		ctx := providers.WithCall(t.Context(), &providers.Call{Note: func(n providers.Note) { notes = append(notes, n.Text) }})
		for range 3 {
			for kind, given := range map[string]map[string]any{"gke_disk": data(nil), "gke_filestore": shared(nil), "gke_disk_snapshot": backup(nil)} {
				config := w.conf(kind, given)
				null := cty.NullVal(config.Type())
				r := p.Plan(ctx, providers.PlanRequest{Type: kind, Prior: null, Config: config, Proposed: proposed(schema.Resources[kind].Block.Attributes, null, config)})
				if r.Diagnostics.HasErrors() {
					t.Errorf("%v: %v", code, r.Diagnostics)
				}
			}
		}
		if n := len(w.google.Calls("serviceusage.services.batchGet")); n != 1 {
			t.Errorf("%v: asked %d times", code, n)
		}
		if n := len(notes); n != map[bool]int{true: 0, false: 1}[code == codes.OK] {
			t.Errorf("%v: notes %q", code, notes)
		}
	}
}

// TestServicesEnabled: an apply enables what is missing, once, and waits for it.
func TestServicesEnabled(t *testing.T) {
	w := asking(t, true, "compute.googleapis.com")
	config := w.conf("gke_filestore", shared(nil))
	pl := w.plan(thing{kind: "gke_filestore"}, config)
	if pl.Diagnostics.HasErrors() || !slices.ContainsFunc(pl.notes, func(n string) bool { return strings.Contains(n, "enables file.googleapis.com in the project") }) {
		t.Errorf("notes %q: %v", pl.notes, pl.Diagnostics)
	}
	w.google.Fail(gcptest.Fault{Method: "serviceusage.services.batchEnable"})
	it := w.make(thing{kind: "gke_filestore"}, config)
	if got := w.mutations(); !slices.Equal(got, []string{"serviceusage.services.batchEnable", "file.projects.locations.instances.create"}) {
		t.Errorf("made by %v", got)
	}
	w.empty(it, config)
	w.destroy(it)
	if got := w.mutations(); !slices.Equal(got, []string{"file.projects.locations.instances.delete"}) {
		t.Errorf("destroyed by %v", got)
	}
}
