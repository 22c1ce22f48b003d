package kube

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

func (w *world) claim(name string, more map[string]cty.Value) cty.Value {
	v := map[string]cty.Value{"name": cty.StringVal(name), "namespace": cty.StringVal(w.ns), "size": cty.StringVal("10Gi")}
	maps.Copy(v, more)
	return w.conf("kube_volume_claim", v)
}

// volume is the argument volume with one source.
func (w *world) volume(of string, parts map[string]string) map[string]cty.Value {
	schema, _ := w.phase().Schema(w.t.Context())
	ty := schema.Resources["kube_volume_claim"].Block.ImpliedType().AttributeType("volume")
	all := nulls(ty)
	source := nulls(ty.AttributeType(of))
	for name, s := range parts {
		source[name] = cty.StringVal(s)
	}
	all[of] = cty.ObjectVal(source)
	return map[string]cty.Value{"volume": cty.ObjectVal(all)}
}

func (w *world) get(object, at string) string {
	w.t.Helper()
	return w.kubectl("get", object, "--ignore-not-found", "-o", "jsonpath="+at)
}

// Volumes of disks, shares and folders: the claim is bound to them, and the
// data stay when both are destroyed.
func TestStaticVolumes(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		of         string
		parts      map[string]string
		at, want   string
		mode, node string
	}{
		{"nfs", map[string]string{"server": "10.0.0.5", "path": "/data"}, "{.spec.nfs.server}:{.spec.nfs.path}", "10.0.0.5:/data", "ReadWriteMany", ""},
		{"host_path", map[string]string{"path": "/srv/data", "node": "gpu-1"}, "{.spec.hostPath.path}", "/srv/data", "ReadWriteOnce", "kubernetes.io/hostname gpu-1"},
		{"gce_disk", map[string]string{"disk": "projects/lab/zones/europe-west4-a/disks/data"}, "{.spec.csi.volumeHandle}", "projects/lab/zones/europe-west4-a/disks/data", "ReadWriteOnce", "topology.gke.io/zone europe-west4-a"},
	} {
		name := strings.ReplaceAll(c.of, "_", "-")
		volume := "pv/" + w.ns + "-" + name
		config := w.claim(name, w.volume(c.of, c.parts))
		it := w.empty(w.make(thing{kind: "kube_volume_claim"}, config), config)
		if got := w.get(volume, c.at); got != c.want {
			t.Errorf("%s: %q", c.of, got)
		}
		if got := w.get("pvc/"+name, "{.status.phase} {.spec.accessModes[0]}"); got != "Bound "+c.mode {
			t.Errorf("%s: %q", c.of, got)
		}
		affinity := w.get(volume, "{.spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].key} {.spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].values[0]}")
		if strings.TrimSpace(affinity) != c.node {
			t.Errorf("%s: affinity %q", c.of, affinity)
		}
		w.destroy(it)
		if got := w.get(volume, "{.metadata.name}") + w.get("pvc/"+name, "{.metadata.name}"); got != "" {
			t.Errorf("%s: destroy left %s", c.of, got)
		}
	}
}

// A volume outlives its claim, another claim takes it over, and it is deleted
// where that is asked for.
func TestKeptVolume(t *testing.T) {
	w := newWorld(t)
	volume := "made-" + w.ns
	// What a storage class would make for the claim.
	w.cluster.Kubectl(t, strings.ReplaceAll(`{apiVersion: v1, kind: PersistentVolume, metadata: {name: NAME}, spec: {capacity: {storage: 10Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Delete, storageClassName: fast-NAME, hostPath: {path: /tmp}}}`, "NAME", volume), "apply", "-f", "-")
	t.Cleanup(func() { w.kubectl("delete", "pv", volume, "--ignore-not-found") })
	class := map[string]cty.Value{"storage_class": cty.StringVal("fast-" + volume)}
	config := w.claim("first", class)
	it := w.empty(w.make(thing{kind: "kube_volume_claim"}, config), config)
	if got := w.get("pv/"+volume, "{.spec.persistentVolumeReclaimPolicy} {.spec.claimRef.name}"); got != "Delete first" {
		t.Fatalf("the volume is %q", got)
	}
	w.destroy(it)
	w.cluster.Eventually(t, "the volume is released", func(context.Context) (bool, error) {
		return w.get("pv/"+volume, "{.status.phase} {.spec.persistentVolumeReclaimPolicy}") == "Released Retain", nil
	})
	class["volume_name"] = cty.StringVal(volume)
	config = w.claim("second", class)
	it = w.empty(w.make(thing{kind: "kube_volume_claim"}, config), config)
	if got := w.get("pv/"+volume, "{.status.phase} {.spec.claimRef.name}"); got != "Bound second" {
		t.Errorf("the volume is %q", got)
	}
	// It is another claim's by now.
	third := w.plan(thing{kind: "kube_volume_claim"}, w.claim("third", class))
	if third.Diagnostics.HasErrors() {
		t.Fatal(third.Diagnostics)
	}
	_, r := w.apply(third)
	says(t, r.Diagnostics, "Volume cannot be had", "belongs to the claim "+w.ns+"/second")
	if got := w.get("pvc/third", "{.metadata.name}"); got != "" {
		t.Errorf("%s was made", got)
	}
	class["delete_data"] = cty.True
	config = w.claim("second", class)
	it = w.make(it, config)
	w.kubectl("patch", "pv", volume, "-p", `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
	w.destroy(it)
	w.cluster.Eventually(t, "the class is asked to delete the volume", func(context.Context) (bool, error) {
		phase := w.get("pv/"+volume, "{.status.phase} {.spec.persistentVolumeReclaimPolicy}")
		return phase == "" || phase == "Failed Delete" || phase == "Released Delete", nil // nothing here can delete a folder
	})
}

func TestMistakesOfClaims(t *testing.T) {
	w := newWorld(t)
	nfs := w.volume("nfs", map[string]string{"server": "a", "path": "/b"})
	both := maps.Clone(nfs)
	both["storage_class"] = cty.StringVal("x")
	for _, c := range []struct {
		more            map[string]cty.Value
		summary, detail string
	}{
		{map[string]cty.Value{"size": cty.StringVal("many")}, "Invalid size", "100Gi"},
		{map[string]cty.Value{"size": cty.StringVal("-1Gi")}, "Invalid size", "-1Gi"},
		{both, "More than one source", "storage_class"},
		{w.volume("gce_disk", map[string]string{"disk": "data"}), "Invalid disk", "projects/PROJECT/zones/ZONE/disks/NAME"},
		{map[string]cty.Value{"volume": cty.ObjectVal(nulls(nfs["volume"].Type()))}, "Not one source of the volume", "exactly one"},
	} {
		says(t, w.plan(thing{kind: "kube_volume_claim"}, w.claim("x", c.more)).Diagnostics, c.summary, c.detail)
	}
}

// fast makes a volume as a storage class of its own would make it.
func (w *world) fast(name string) map[string]cty.Value {
	w.t.Helper()
	w.cluster.Kubectl(w.t, strings.ReplaceAll(`{apiVersion: v1, kind: PersistentVolume, metadata: {name: NAME}, spec: {capacity: {storage: 10Gi}, accessModes: [ReadWriteOnce], persistentVolumeReclaimPolicy: Delete, storageClassName: fast-NAME, hostPath: {path: /tmp}}}`, "NAME", name), "apply", "-f", "-")
	w.t.Cleanup(func() { w.kubectl("delete", "pv", name, "--ignore-not-found", "--wait=false") })
	return map[string]cty.Value{"storage_class": cty.StringVal("fast-" + name)}
}

// A namespace that is deleted takes its claims along, and not the volumes of
// those that keep theirs.
func TestVolumeOutlivesNamespace(t *testing.T) {
	w := newWorld(t)
	ns := w.ns + "-going"
	home := w.make(thing{kind: "kube_namespace"}, w.conf("kube_namespace", map[string]cty.Value{"name": cty.StringVal(ns)}))
	keeps, loses := w.fast("keeps-"+w.ns), w.fast("loses-"+w.ns)
	keeps["namespace"], loses["namespace"] = cty.StringVal(ns), cty.StringVal(ns)
	loses["delete_data"] = cty.True
	w.make(thing{kind: "kube_volume_claim"}, w.claim("keeps", keeps))
	w.make(thing{kind: "kube_volume_claim"}, w.claim("loses", loses))
	w.destroy(home)
	if got := w.get("pv/keeps-"+w.ns, "{.spec.persistentVolumeReclaimPolicy}"); got != "Retain" {
		t.Errorf("the volume that is to be kept: %q", got)
	}
	if got := w.get("pv/loses-"+w.ns, "{.spec.persistentVolumeReclaimPolicy}"); got != "Delete" && got != "" {
		t.Errorf("the volume that is not: %q", got)
	}
}

// An imported claim is taken over as it is, whatever is declared of it.
func TestImportOfAClaim(t *testing.T) {
	w := newWorld(t)
	class := w.fast("had-" + w.ns)
	w.cluster.Kubectl(t, strings.ReplaceAll(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: had}, spec: {accessModes: [ReadWriteOnce], storageClassName: fast-had-NS, resources: {requests: {storage: 10Gi}}}}`, "NS", w.ns), "-n", w.ns, "apply", "-f", "-")
	uid := w.get("pvc/had", "{.metadata.uid}")
	for _, more := range []map[string]cty.Value{class, {"storage_class": class["storage_class"], "access_modes": texted("ReadWriteOnce")}} {
		it := w.imported("kube_volume_claim", w.ns+"/had")
		config := w.claim("had", more)
		pl := w.plan(it, config)
		if pl.Diagnostics.HasErrors() || len(pl.Replace) > 0 {
			t.Fatalf("%v, replaced for %v", pl.Diagnostics, pl.Replace)
		}
		w.empty(w.make(it, config), config)
	}
	if now := w.get("pvc/had", "{.metadata.uid}"); now != uid {
		t.Error("it was made anew")
	}
}

// What the API server says about a field is shown at its attribute, and what
// forbids something for other reasons than rights is not called a lack of them.
func TestClaimsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	kind := thing{kind: "kube_volume_claim"}
	at := func(name string, diags providers.Diagnostics) {
		t.Helper()
		if len(diags) != 1 || len(diags[0].Path) != 1 || diags[0].Path[0] != (cty.GetAttrStep{Name: name}) {
			t.Errorf("not told at %s: %#v", name, diags)
		}
	}
	at("access_modes", w.plan(kind, w.claim("x", map[string]cty.Value{"access_modes": texted("Sometimes")})).Diagnostics)
	at("labels", w.plan(kind, w.claim("x", map[string]cty.Value{"labels": cty.MapVal(map[string]cty.Value{"a b": cty.StringVal("c")})})).Diagnostics)
	it := w.make(kind, w.claim("fast", w.fast("fixed-"+w.ns)))
	larger := map[string]cty.Value{"storage_class": cty.StringVal("fast-fixed-" + w.ns), "size": cty.StringVal("20Gi")}
	says(t, w.plan(it, w.claim("fast", larger)).Diagnostics, "The API server refuses the object", "only dynamically provisioned pvc can be resized")

	missing := w.plan(kind, w.claim("x", map[string]cty.Value{"volume_name": cty.StringVal("none-" + w.ns)}))
	if missing.Diagnostics.HasErrors() || len(missing.notes) != 1 || !strings.Contains(missing.notes[0], "is not there") {
		t.Errorf("%v %v", missing.Diagnostics, missing.notes)
	}
	_, r := w.apply(missing)
	says(t, r.Diagnostics, "Volume cannot be had", "is not there")
	if !r.State.IsNull() {
		t.Errorf("a create that made nothing leaves %#v", r.State)
	}
}
