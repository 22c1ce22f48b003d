package gke

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/gke/gcptest"
)

// find reads a data source.
func (w *world) find(kind string, given map[string]string) providers.ReadDataResponse {
	w.Helper()
	p := w.phase()
	schema, _ := p.Schema(w.Context())
	v := nulls(schema.Data[kind].Block.ImpliedType())
	for name, text := range given {
		v[name] = cty.StringVal(text)
	}
	if diags := p.ValidateData(w.Context(), kind, cty.ObjectVal(v)); diags.HasErrors() {
		return providers.ReadDataResponse{Diagnostics: diags}
	}
	return p.ReadData(w.Context(), providers.ReadDataRequest{Type: kind, Config: cty.ObjectVal(v)})
}

// found reads a data source that is there.
func (w *world) found(kind string, given map[string]string) cty.Value {
	w.Helper()
	r := w.find(kind, given)
	if r.Diagnostics.HasErrors() || !r.State.IsWhollyKnown() {
		w.Fatalf("%s: %v %#v", kind, r.Diagnostics, r.State)
	}
	return r.State
}

func TestDataObjects(t *testing.T) {
	transports(t, gcptest.Options{}, func(w *world) {
		k := w.make(thing{kind: "gke_cluster"}, w.conf("gke_cluster", lab(map[string]any{"endpoint": "dns", "labels": map[string]any{"team": "x"}}))).state
		d := w.make(thing{kind: "gke_disk"}, w.conf("gke_disk", data(nil))).state
		if err := w.google.Attach(diskPath, "node-1", true); err != nil {
			w.Fatal(err)
		}
		w.mutations()
		got := w.found("gke_cluster", map[string]string{"name": "lab", "endpoint": "dns"})
		for _, name := range []string{"id", "project", "location", "status", "access", "kubeconfig", "master_version", "labels", "network"} {
			if name != "network" && !got.GetAttr(name).RawEquals(k.GetAttr(name)) {
				w.Errorf("%s is %#v, and of the resource %#v", name, got.GetAttr(name), k.GetAttr(name))
			}
		}
		disk := w.found("gke_disk", map[string]string{"name": "data", "location": zone, "project": "stoke-test"})
		for _, name := range []string{"id", "status", "type", "size_gb", "iops"} {
			if !disk.GetAttr(name).RawEquals(d.GetAttr(name)) {
				w.Errorf("%s is %#v, and of the resource %#v", name, disk.GetAttr(name), d.GetAttr(name))
			}
		}
		if users := disk.GetAttr("users").AsValueSlice(); len(users) != 1 || users[0].AsString() != "node-1" {
			w.Errorf("attached to %#v", users)
		}
		for _, kind := range []string{"gke_cluster", "gke_disk"} {
			if r := w.find(kind, map[string]string{"name": "nothing"}); !r.Diagnostics.HasErrors() || !strings.Contains(r.Diagnostics[0].Detail, "nothing") {
				w.Errorf("%s that is not there: %v", kind, r.Diagnostics)
			}
		}
		if got := w.mutations(); len(got) > 0 {
			w.Errorf("touched: %v", got)
		}
	})
}

func TestDataOffers(t *testing.T) {
	transports(t, gcptest.Options{}, func(w *world) {
		all := w.found("gke_server_versions", nil)
		if n := all.GetAttr("master_versions").LengthInt(); n != len(gcptest.Versions) || all.GetAttr("latest").AsString() != gcptest.Versions[0] {
			w.Errorf("%d versions, the latest %#v", n, all.GetAttr("latest"))
		}
		some := w.found("gke_server_versions", map[string]string{"prefix": "1.36", "location": "us-central1"})
		if n := some.GetAttr("node_versions").LengthInt(); n != 2 {
			w.Errorf("%d versions of 1.36", n)
		}
		regular := all.GetAttr("channels").AsValueMap()["REGULAR"]
		if v := regular.GetAttr("default_version").AsString(); !strings.HasPrefix(v, "1.") {
			w.Errorf("REGULAR is %q", v)
		}
		if none := w.found("gke_server_versions", map[string]string{"prefix": "1.3"}); !none.GetAttr("latest").IsNull() || none.GetAttr("master_versions").LengthInt() != 0 {
			w.Errorf("1.3 is %#v", none)
		}
		types := map[string]bool{}
		for _, v := range w.found("gke_zone_accelerators", map[string]string{"zone": "europe-west4-b"}).GetAttr("types").AsValueSlice() {
			types[v.AsString()] = true
		}
		if !types["nvidia-l4"] || !types["nvidia-h100-80gb"] || types["nvidia-tesla-t4"] {
			w.Errorf("europe-west4-b has %v", types)
		}
		if r := w.find("gke_zone_accelerators", map[string]string{"zone": "nowhere-1-a"}); !r.Diagnostics.HasErrors() {
			w.Error("a zone that is not there has accelerators")
		}
	})
}
