package kube

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

func configMap1(name, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {a: \"" + value + "\"}\n---\n"
}

// An object is the same one in another version of its kind, and whether its key
// is written with the version or without.
func TestVersionOfAKind(t *testing.T) {
	w := newWorld(t)
	hpa := "apiVersion: autoscaling/v1\nkind: HorizontalPodAutoscaler\nmetadata: {name: a}\nspec: {minReplicas: 1, maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}\n"
	it := w.make(thing{}, w.yaml(hpa))
	uid := w.field("hpa/a", ".metadata.uid")
	config := w.yaml(strings.Replace(hpa, "autoscaling/v1", "autoscaling/v2", 1))
	pl := w.plan(w.refresh(it), config)
	if text := pl.objects()["autoscaling/HorizontalPodAutoscaler/"+w.ns+"/a"]; len(pl.objects()) != 1 || !strings.Contains(text, "apiVersion: autoscaling/v2") {
		t.Errorf("planned %v", pl.objects())
	}
	it = w.make(w.refresh(it), config)
	it = w.empty(it, config)
	if got := w.field("hpa/a", ".metadata.uid"); got != uid {
		t.Errorf("it was made anew: %s", got)
	}
	twice := w.plan(thing{}, w.yaml(hpa+"---\n"+strings.Replace(hpa, "autoscaling/v1", "autoscaling/v2", 1)))
	says(t, twice.Diagnostics, "Object declared twice", "/a is there twice")

	// As the first version wrote it.
	attributes := map[string]any{"objects": map[string]string{"autoscaling/v2/HorizontalPodAutoscaler/" + w.ns + "/a": it.state.GetAttr("objects").AsValueMap()["autoscaling/HorizontalPodAutoscaler/"+w.ns+"/a"].AsString()}}
	for name, v := range it.state.AsValueMap() {
		if _, ok := attributes[name]; ok {
			continue
		}
		if attributes[name] = nil; !v.IsNull() && v.Type() == cty.String {
			attributes[name] = v.AsString()
		}
	}
	text, err := json.Marshal(attributes)
	if err != nil {
		t.Fatal(err)
	}
	r := w.phase().Upgrade(t.Context(), providers.UpgradeRequest{Type: "kube_manifest", Version: 0, JSON: text})
	if r.Diagnostics.HasErrors() {
		t.Fatal(r.Diagnostics)
	}
	var memory map[string]json.RawMessage
	var encoded map[string][]byte
	if json.Unmarshal(it.private, &encoded) != nil || json.Unmarshal(encoded[keepApplied], &memory) != nil || len(memory) != 1 {
		t.Fatalf("%s", it.private)
	}
	old := map[string]json.RawMessage{"autoscaling/v2/HorizontalPodAutoscaler/" + w.ns + "/a": memory["autoscaling/HorizontalPodAutoscaler/"+w.ns+"/a"]}
	if encoded[keepApplied], err = json.Marshal(old); err != nil {
		t.Fatal(err)
	}
	delete(encoded, keepRendered)
	if it.private, err = json.Marshal(encoded); err != nil {
		t.Fatal(err)
	}
	it.state = r.State
	it = w.empty(it, config)
	w.destroy(it)
	if got := w.field("hpa/a", ".metadata.uid"); got != "" {
		t.Error("destroy left it")
	}
}

// What a file says at apply is what it said at plan, or nothing is applied.
func TestFileChangedSinceThePlan(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "m.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config := w.conf("kube_manifest", map[string]cty.Value{"path": cty.StringVal(file), "namespace": cty.StringVal(w.ns)})
	says(t, w.plan(thing{}, config).Diagnostics, "Manifest cannot be read", "does not exist: a path")
	write(configMap1("a", "1"))
	pl := w.plan(thing{}, config)
	write(configMap1("a", "2"))
	_, r := w.apply(pl)
	says(t, r.Diagnostics, "Objects changed since the plan", "ConfigMap/"+w.ns+"/a is another one")
	if r.Diagnostics[0].Path == nil || !r.Diagnostics[0].Path.Equals(cty.GetAttrPath("path")) {
		t.Errorf("told at %#v", r.Diagnostics[0].Path)
	}
	if got := w.field("configmap/a", ".data.a"); got != "" {
		t.Errorf("applied %q", got)
	}
	it := w.make(thing{}, config)
	write(configMap1("a", "3"))
	pl = w.plan(it, config)
	write(configMap1("b", "3"))
	_, r = w.apply(pl)
	says(t, r.Diagnostics, "Objects changed since the plan", "is new, ConfigMap/"+w.ns+"/a is missing")
	if got := w.field("configmap/a", ".data.a"); got != "2" {
		t.Errorf("applied %q", got)
	}
	write(configMap1("a", "3"))
	it = w.make(it, config)
	w.empty(it, config)
}

// A resource that is replaced is planned as if its objects were gone, as they
// will be.
func TestReplacementOfAResource(t *testing.T) {
	w := newWorld(t)
	job := "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: \"x:1\"}]}}}\n"
	class := func(n int64) cty.Value {
		return w.conf("kube_priority_class", map[string]cty.Value{"name": cty.StringVal(w.ns + "-p"), "value": cty.NumberIntVal(n)})
	}
	for _, tt := range []struct {
		kind          string
		first, second cty.Value
		get, path     string
		want          string
		createFirst   bool
	}{
		{"kube_manifest", w.yaml(job), w.yaml(strings.Replace(job, "x:1", "x:2", 1)), "job/j", ".spec.template.spec.containers[0].image", "x:2", false},
		{"kube_manifest", w.yaml(strings.Replace(job, "name: j", "name: k", 1)), w.yaml(strings.NewReplacer("name: j", "name: k", "x:1", "x:2").Replace(job)), "job/k", ".spec.template.spec.containers[0].image", "x:2", true},
		{"kube_priority_class", class(5), class(6), "priorityclass/" + w.ns + "-p", ".value", "6", false},
		{"kube_manifest", w.yaml(configMap1("tainted", "1")), w.yaml(configMap1("tainted", "1")), "configmap/tainted", ".data.a", "1", false},
	} {
		t.Run(tt.get, func(t *testing.T) {
			it := w.make(thing{kind: tt.kind}, tt.first)
			uid := w.field(tt.get, ".metadata.uid")
			if !tt.first.RawEquals(tt.second) {
				if pl := w.plan(w.refresh(it), tt.second); pl.said().HasErrors() || len(pl.Replace) == 0 {
					t.Fatalf("no replacement: %v %v", pl.Replace, pl.said())
				}
			}
			pl := w.plan(thing{kind: tt.kind, replaces: it.state}, tt.second)
			if pl.said().HasErrors() {
				t.Fatal(pl.said())
			}
			if !tt.createFirst {
				w.destroy(it)
			}
			now, r := w.apply(pl)
			if r.Diagnostics.HasErrors() {
				t.Fatal(r.Diagnostics)
			}
			if tt.createFirst {
				w.destroy(it)
			}
			if got := w.field(tt.get, tt.path); got != tt.want || w.field(tt.get, ".metadata.uid") == uid {
				t.Errorf("it is %q, and made anew %v", got, w.field(tt.get, ".metadata.uid") != uid)
			}
			w.empty(now, tt.second)
		})
	}
}

// imported is what an import gives.
func (w *world) imported(kind, id string) thing {
	w.t.Helper()
	r := w.phase().Import(w.t.Context(), providers.ImportRequest{Type: kind, ID: id})
	if r.Diagnostics.HasErrors() || len(r.Objects) != 1 {
		w.t.Fatalf("import: %v", r.Diagnostics)
	}
	return w.refresh(thing{kind: kind, state: r.Objects[0].State, private: r.Objects[0].Private})
}

func TestImport(t *testing.T) {
	w := newWorld(t)
	w.kubectl("create", "configmap", "c", "--from-literal=a=1")
	w.kubectl("create", "secret", "generic", "s", "--from-literal=a=1", "--type=example.com/x")
	w.kubectl("create", "namespace", w.ns+"-i")
	w.kubectl("create", "priorityclass", w.ns+"-i", "--value=7", "--preemption-policy=Never")
	name := func(s string) map[string]cty.Value {
		return map[string]cty.Value{"name": cty.StringVal(s), "namespace": cty.StringVal(w.ns)}
	}
	cluster := func(s string) map[string]cty.Value { return map[string]cty.Value{"name": cty.StringVal(s)} }
	with := func(m map[string]cty.Value, more map[string]cty.Value) map[string]cty.Value {
		for k, v := range more {
			m[k] = v
		}
		return m
	}
	data := cty.MapVal(map[string]cty.Value{"a": cty.StringVal("1")})
	for _, tt := range []struct {
		kind, id, object string
		config           cty.Value
	}{
		{"kube_config_map", w.ns + "/c", "configmap/c", w.conf("kube_config_map", with(name("c"), map[string]cty.Value{"data": data}))},
		{"kube_secret", "v1/Secret/" + w.ns + "/s", "secret/s", w.conf("kube_secret", with(name("s"), map[string]cty.Value{"data": data, "type": cty.StringVal("example.com/x")}))},
		{"kube_namespace", w.ns + "-i", "namespace/" + w.ns + "-i", w.conf("kube_namespace", cluster(w.ns+"-i"))},
		{"kube_priority_class", "scheduling.k8s.io/PriorityClass/" + w.ns + "-i", "priorityclass/" + w.ns + "-i",
			w.conf("kube_priority_class", with(cluster(w.ns+"-i"), map[string]cty.Value{"value": cty.NumberIntVal(7), "preemption_policy": cty.StringVal("Never")}))},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			uid := w.field(tt.object, ".metadata.uid")
			it := w.imported(tt.kind, tt.id)
			pl := w.plan(it, tt.config)
			if pl.said().HasErrors() || len(pl.Replace) > 0 || pl.noop() {
				t.Fatalf("%v, replaces %#v, nothing to do %v", pl.said(), pl.Replace, pl.noop())
			}
			it = w.make(it, tt.config)
			it = w.empty(it, tt.config)
			if got := w.field(tt.object, ".metadata.uid"); got != uid {
				t.Error("it was made anew")
			}
			w.destroy(it)
			if got := w.field(tt.object, ".metadata.uid"); got != "" {
				t.Error("destroy left it")
			}
		})
	}
	t.Run("kube_manifest", func(t *testing.T) {
		w.kubectl("create", "configmap", "d", "--from-literal=a=1")
		w.kubectl("create", "configmap", "e", "--from-literal=a=1")
		it := w.imported("kube_manifest", "ConfigMap/"+w.ns+"/d, v1/ConfigMap/"+w.ns+"/e")
		config := w.yaml(configMap1("d", "2") + configMap1("e", "1"))
		says(t, w.plan(it, config).said(), "Fields belong to another manager", "kubectl")
		config = w.yaml(configMap1("d", "1") + configMap1("e", "1"))
		it = w.make(it, config)
		it = w.empty(it, config)
		w.destroy(it)
	})
	t.Run("destroyed at once", func(t *testing.T) {
		w.kubectl("create", "configmap", "f")
		w.kubectl("patch", "configmap", "f", "--type=merge", "-p", `{"metadata":{"finalizers":["example.com/slow"]}}`)
		it := w.imported("kube_manifest", "ConfigMap/"+w.ns+"/f")
		done := make(chan struct{})
		go func() { defer close(done); w.destroy(it) }()
		w.cluster.Eventually(t, "it is being deleted", w.leaving("configmap/f"))
		select {
		case <-done:
			t.Error("destroy does not wait until it is gone")
		default:
		}
		w.kubectl("patch", "configmap", "f", "--type=merge", "-p", `{"metadata":{"finalizers":[]}}`)
		<-done
	})
	for id, want := range map[string]string{"ConfigMap/" + w.ns + "/nothing": "does not exist in the cluster", "Configmap/x": "Did you mean ConfigMap?", "apps/Deploymentt/x": "Did you mean apps/Deployment?", "Namespace/a/b": "not in a namespace"} {
		r := w.phase().Import(t.Context(), providers.ImportRequest{Type: "kube_manifest", ID: id})
		if !slices.ContainsFunc(r.Diagnostics, func(d providers.Diagnostic) bool { return strings.Contains(d.Detail, want) }) {
			t.Errorf("%s: %v", id, r.Diagnostics)
		}
	}
	if r := w.phase().Import(t.Context(), providers.ImportRequest{Type: "kube_secret", ID: "ConfigMap/" + w.ns + "/c"}); !r.Diagnostics.HasErrors() {
		t.Error("a ConfigMap is imported as a Secret")
	}
}
