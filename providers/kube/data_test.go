package kube

import (
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// find reads a data source.
func (w *world) find(kind string, given map[string]cty.Value) providers.ReadDataResponse {
	w.t.Helper()
	p := w.phase()
	schema, _ := p.Schema(w.t.Context())
	v := nulls(schema.Data[kind].Block.ImpliedType())
	for name, val := range given {
		v[name] = val
	}
	ctx := providers.WithCall(w.t.Context(), &providers.Call{Address: "data." + kind + ".x"})
	if diags := p.ValidateData(ctx, kind, cty.ObjectVal(v)); diags.HasErrors() {
		return providers.ReadDataResponse{Diagnostics: diags}
	}
	return p.ReadData(ctx, providers.ReadDataRequest{Type: kind, Config: cty.ObjectVal(v)})
}

// found reads a data source that is there.
func (w *world) found(kind string, given map[string]cty.Value) map[string]cty.Value {
	w.t.Helper()
	r := w.find(kind, given)
	if r.Diagnostics.HasErrors() || !r.State.IsWhollyKnown() {
		w.t.Fatalf("%s: %v %#v", kind, r.Diagnostics, r.State)
	}
	return r.State.AsValueMap()
}

func TestDataServer(t *testing.T) {
	w := newWorld(t)
	got := w.found("kube_server", nil)
	if v := got["version"].AsString(); v != w.cluster.Version || got["major"].AsString() != "1" || "v1."+got["minor"].AsString() != v[:len("v1.00")] {
		t.Errorf("%#v is not %s", got, w.cluster.Version)
	}
	if id := w.kubectl("get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}"); got["cluster_id"].AsString() != id {
		t.Errorf("cluster_id %#v is not %s", got["cluster_id"], id)
	}
}

func TestDataNodes(t *testing.T) {
	w := newWorld(t)
	name := "node-" + w.ns
	w.cluster.AddNodes(t, kubetest.GPUNode(name, 4))
	w.kubectl("cordon", name)
	w.kubectl("taint", "node", name, "nvidia.com/gpu=present:NoSchedule")
	all := w.found("kube_nodes", nil)["nodes"].AsValueSlice()
	if len(all) < 2 {
		t.Fatalf("%d nodes", len(all))
	}
	some := w.found("kube_nodes", map[string]cty.Value{"label_selector": cty.StringVal("kubernetes.io/hostname=" + name)})["nodes"].AsValueSlice()
	if len(some) != 1 {
		t.Fatalf("%d nodes are called %s", len(some), name)
	}
	n := some[0].AsValueMap()
	taints := n["taints"].AsValueSlice()
	if n["name"].AsString() != name || !n["ready"].True() || !n["unschedulable"].True() || n["gpu_model"].AsString() != "NVIDIA-H100-80GB-HBM3" ||
		!n["gpus"].RawEquals(cty.NumberIntVal(4)) || n["allocatable"].AsValueMap()["memory"].AsString() != "512Gi" {
		t.Errorf("%#v", n)
	}
	if len(taints) != 2 { // cordoned, and its own
		t.Errorf("taints %#v", taints)
	}
	none := w.found("kube_nodes", map[string]cty.Value{"label_selector": cty.StringVal("no=such")})["nodes"]
	if none.IsNull() || none.LengthInt() != 0 {
		t.Errorf("%#v", none)
	}
	says(t, w.find("kube_nodes", map[string]cty.Value{"label_selector": cty.StringVal("a in (")}).Diagnostics, "Invalid label selector", "commas")
}

func TestDataStorageClasses(t *testing.T) {
	w := newWorld(t)
	own := "class-" + w.ns
	w.cluster.Kubectl(t, `{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: `+own+`, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}, provisioner: example.com/disk, volumeBindingMode: WaitForFirstConsumer, parameters: {type: ssd}, allowVolumeExpansion: true}`, "apply", "-f", "-")
	t.Cleanup(func() { w.kubectl("delete", "storageclass", own) })
	got := w.found("kube_storage_classes", nil)
	if got["default"].IsNull() || got["default"].AsString() != own {
		t.Errorf("default %#v", got["default"])
	}
	for _, v := range got["classes"].AsValueSlice() {
		c := v.AsValueMap()
		if c["name"].AsString() != own {
			continue
		}
		if c["provisioner"].AsString() != "example.com/disk" || !c["default"].True() || c["reclaim_policy"].AsString() != "Delete" ||
			c["volume_binding_mode"].AsString() != "WaitForFirstConsumer" || !c["allow_volume_expansion"].True() || c["parameters"].AsValueMap()["type"].AsString() != "ssd" {
			t.Errorf("%#v", c)
		}
		return
	}
	t.Error("the class is not there")
}

func TestDataObject(t *testing.T) {
	w := newWorld(t)
	w.kubectl("create", "configmap", "settings", "--from-literal=a=b")
	of := func(version, kind, name string, more ...string) map[string]cty.Value {
		v := map[string]cty.Value{"api_version": cty.StringVal(version), "kind": cty.StringVal(kind), "name": cty.StringVal(name)}
		if len(more) > 0 {
			v["namespace"] = cty.StringVal(more[0])
		}
		return v
	}
	got := w.found("kube_object", of("v1", "ConfigMap", "settings", w.ns))
	if v := got["object"].GetAttr("data").GetAttr("a"); v.AsString() != "b" || got["object"].GetAttr("metadata").Type().HasAttribute("managedFields") {
		t.Errorf("%#v", got["object"])
	}
	if uid := w.kubectl("get", "configmap", "settings", "-o", "jsonpath={.metadata.uid}"); got["uid"].AsString() != uid {
		t.Errorf("uid %#v is not %s", got["uid"], uid)
	}
	// A list of objects of many types, numbers, and no namespace.
	service := w.found("kube_object", of("v1", "Service", "kubernetes"))["object"].GetAttr("spec").GetAttr("ports")
	if !service.Index(cty.NumberIntVal(0)).GetAttr("port").RawEquals(cty.NumberIntVal(443)) {
		t.Errorf("%#v", service)
	}
	w.kubectl("create", "secret", "generic", "key", "--from-literal=a=canary")
	for _, c := range []struct {
		given           map[string]cty.Value
		summary, detail string
	}{
		{of("v1", "ConfigMap", "other", w.ns), "No such object", "ConfigMap " + w.ns + "/other"},
		{of("v1", "Secret", "key", w.ns), "Secrets are not read", "stored in the state"},
		{of("a/b/c", "Secret", "key"), "Invalid API version", "a/b/c"},
		{of("v1", "ConfigMaps", "other"), "Unknown kind", "ConfigMaps of v1"},
		{of("v1", "Node", "gpu-1", w.ns), "Kind without namespaces", "Node"},
		{of("v1", "ConfigMap", ""), "Name missing", ""},
	} {
		says(t, w.find("kube_object", c.given).Diagnostics, c.summary, c.detail)
	}
}

// TestDataForbidden: what the user may not read is said so, at an attribute.
func TestDataForbidden(t *testing.T) {
	w := newWorld(t)
	w.kubectl("create", "configmap", "settings")
	w.config = w.cluster.KubeconfigFor(t, kubetest.Login{User: "nobody-" + w.ns})
	says(t, w.find("kube_nodes", nil).Diagnostics, "Not allowed by the cluster", "nodes")
	says(t, w.find("kube_storage_classes", nil).Diagnostics, "Not allowed by the cluster", "storageclasses")
	says(t, w.find("kube_object", map[string]cty.Value{"api_version": cty.StringVal("v1"), "kind": cty.StringVal("ConfigMap"), "name": cty.StringVal("settings"), "namespace": cty.StringVal(w.ns)}).Diagnostics, "Not allowed by the cluster", "configmaps")
}
