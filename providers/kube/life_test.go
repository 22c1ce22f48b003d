package kube

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
)

const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx:1
        ports: [{containerPort: 80}]
        resources: {requests: {cpu: 1000m, memory: 64Mi}}
        env: [{name: A, value: "1"}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{port: 80}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {a: "1", b: "2"}
`

func TestManifestLife(t *testing.T) {
	w := newWorld(t)
	config := w.yaml(web)
	it := w.make(thing{}, config)
	if got := w.kubectl("get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}"); got != "2" {
		t.Errorf("apply ended before the deployment was ready: %q", got)
	}
	it = w.empty(it, config)

	// Others write beside what is declared.
	w.kubectl("annotate", "deployment", "web", "others=1")
	w.kubectl("label", "configmap", "web", "others=1")
	w.kubectl("patch", "configmap", "web", "--type=merge", "-p", `{"data":{"c":"3"}}`)
	it = w.empty(it, config)

	// Drift of each kind: a field changed, one removed, an item of a list, an object.
	for name, args := range map[string][]string{
		"changed": {"scale", "deployment", "web", "--replicas=1"},
		"removed": {"patch", "configmap", "web", "--type=json", "-p", `[{"op":"remove","path":"/data/a"}]`},
		"item":    {"set", "env", "deployment/web", "A=5"},
		"image":   {"set", "image", "deployment/web", "web=nginx:2"},
		"gone":    {"delete", "service", "web"},
		"mark":    {"label", "configmap", "web", "stoke.dev/managed-"},
	} {
		t.Run(name, func(t *testing.T) {
			w.kubectl(args...)
			now := w.refresh(it)
			pl := w.plan(now, config)
			if pl.Diagnostics.HasErrors() {
				t.Fatal(pl.Diagnostics)
			}
			if pl.noop() {
				t.Errorf("a plan after %v has nothing to do", args)
			}
			it = w.make(now, config)
			it = w.empty(it, config)
			if id := it.state.GetAttr("id").AsString(); w.kubectl("get", "configmap", "web", "-o", `jsonpath={.metadata.labels.stoke\.dev/managed}`) != id {
				t.Error("the mark is not there")
			}
		})
	}

	// A field that leaves the manifest is removed, as is an object.
	less := strings.Replace(strings.Split(web, "---")[0], "\n        env: [{name: A, value: \"1\"}]", "", 1) + "---" + strings.Replace(strings.Split(web, "---")[2], `, b: "2"`, "", 1)
	config = w.yaml(less)
	it = w.make(it, config)
	if got := w.kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.template.spec.containers[0].env}"); got != "" {
		t.Errorf("env is still there: %s", got)
	}
	if got := w.kubectl("get", "configmap", "web", "-o", "jsonpath={.data}"); got != `{"a":"1","c":"3"}` {
		t.Errorf("data is %s", got)
	}
	if got := w.kubectl("get", "service", "web", "--ignore-not-found"); got != "" {
		t.Errorf("the service is still there: %s", got)
	}
	it = w.empty(it, config)
	w.destroy(it)
	if got := w.kubectl("get", "deployments,configmaps", "-o", "name"); got != "configmap/kube-root-ca.crt" {
		t.Errorf("destroy left %s", got)
	}
	if now := w.refresh(it); !now.state.IsNull() {
		t.Error("a refresh finds it after destroy")
	}
}

func TestSimpleKinds(t *testing.T) {
	w := newWorld(t)
	text := func(s string) cty.Value { return cty.StringVal(s) }
	texts := func(kv ...string) cty.Value {
		m := map[string]cty.Value{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = text(kv[i+1])
		}
		return cty.MapVal(m)
	}
	for _, tt := range []struct {
		kind          string
		first, second map[string]cty.Value
		drift         []string
	}{
		{"kube_namespace", map[string]cty.Value{"name": text(w.ns + "-x"), "labels": texts("a", "1")}, map[string]cty.Value{"name": text(w.ns + "-x"), "labels": texts("a", "2")},
			[]string{"label", "--overwrite", "namespace", w.ns + "-x", "a=5"}},
		{"kube_config_map", map[string]cty.Value{"name": text("c"), "namespace": text(w.ns), "data": texts("a", "1")}, map[string]cty.Value{"name": text("c"), "namespace": text(w.ns), "data": texts("b", "1")},
			[]string{"patch", "configmap", "c", "--type=merge", "-p", `{"data":{"a":"5"}}`}},
		{"kube_secret", map[string]cty.Value{"name": text("s"), "namespace": text(w.ns), "data": texts("a", "canary-1")}, map[string]cty.Value{"name": text("s"), "namespace": text(w.ns), "data": texts("a", "canary-2")},
			[]string{"patch", "secret", "s", "--type=merge", "-p", `{"stringData":{"a":"canary-5"}}`}},
		{"kube_priority_class", map[string]cty.Value{"name": text(w.ns + "-p"), "value": cty.NumberIntVal(5)}, map[string]cty.Value{"name": text(w.ns + "-p"), "value": cty.NumberIntVal(5), "description": text("for tests")},
			[]string{"label", "--overwrite", "priorityclass", w.ns + "-p", "a=5"}},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			config := w.conf(tt.kind, tt.first)
			it := w.make(thing{kind: tt.kind}, config)
			it = w.empty(it, config)
			w.kubectl(tt.drift...)
			it = w.make(w.refresh(it), config)
			it = w.empty(it, config)
			config = w.conf(tt.kind, tt.second)
			if w.plan(it, config).noop() {
				t.Error("a change plans nothing")
			}
			it = w.make(it, config)
			it = w.empty(it, config)
			if strings.Contains(it.state.GoString()+string(it.private), "canary") {
				t.Errorf("the state has the secret: %#v", it.state)
			}
			w.destroy(it)
			if now := w.refresh(it); !now.state.IsNull() {
				t.Error("a refresh finds it after destroy")
			}
		})
	}
}

func TestMistakesOfManifests(t *testing.T) {
	w := newWorld(t)
	w.kubectl("create", "configmap", "theirs", "--from-literal=a=1")
	for name, tt := range map[string]struct{ yaml, summary, detail string }{
		"no yaml":         {"a: [", "Manifest cannot be read", "line 1"},
		"unknown field":   {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndatta: {}", "refuses the object", "datta"},
		"wrong type":      {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: [1]", "refuses the object", "data"},
		"unknown kind":    {"apiVersion: x.io/v1\nkind: Nothing\nmetadata: {name: a}", "Unknown kind", "Nothing of x.io/v1"},
		"no namespace":    {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: nowhere}", "Namespace is missing", "nowhere"},
		"exists":          {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs}", "Object exists already", "stoke import"},
		"invalid":         {"apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 99999}]}", "refuses the object", "99999"},
		"twice":           {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}", "Object declared twice", "/a is there twice"},
		"a stored secret": {"apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {a: b}", "Secret in a stored text", "kube_secret"},
		"nothing":         {"# nothing", "No objects", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pl := w.plan(thing{}, w.yaml(tt.yaml))
			says(t, append(pl.Diagnostics, pl.review...), tt.summary, tt.detail)
		})
	}
}

// What the plan itself makes is checked at apply: a namespace, a CRD and its
// objects.
func TestMadeByThePlan(t *testing.T) {
	w := newWorld(t)
	config := w.yaml(strings.ReplaceAll(`
apiVersion: v1
kind: Namespace
metadata: {name: NS-inner}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: NS-inner}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.GROUP.example.com}
spec:
  group: GROUP.example.com
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
---
apiVersion: GROUP.example.com/v1
kind: Thing
metadata: {name: a}
spec: {size: 5}
`, "GROUP", w.ns), map[string]cty.Value{"prune_data": cty.True})
	pl := w.plan(thing{}, config)
	if pl.Diagnostics.HasErrors() || pl.review.HasErrors() {
		t.Fatal(pl.Diagnostics, pl.review)
	}
	if notes := strings.Join(pl.notes, "\n"); !strings.Contains(notes, "namespace "+w.ns+"-inner is not there yet") || !strings.Contains(notes, "does not know its kind yet") {
		t.Errorf("notes: %s", notes)
	}
	it := w.make(thing{}, config)
	it = w.empty(it, config)
	w.destroy(it)
}

// A create that was cut off is found by its mark, and what others made is not.
func TestSettling(t *testing.T) {
	w := newWorld(t)
	config := w.yaml(web)
	pl := w.plan(thing{}, config)
	made, r := w.apply(pl)
	if r.Diagnostics.HasErrors() {
		t.Fatal(r.Diagnostics)
	}
	id := made.state.GetAttr("id").AsString()
	settle := func(operation string) thing {
		ctx := providers.WithCall(t.Context(), &providers.Call{Operation: operation, Settling: true})
		state, _ := cty.Transform(pl.Planned, func(_ cty.Path, v cty.Value) (cty.Value, error) {
			if !v.IsKnown() {
				return cty.NullVal(v.Type()), nil
			}
			return v, nil
		})
		r := w.phase().Read(ctx, providers.ReadRequest{Type: "kube_manifest", State: state})
		if r.Diagnostics.HasErrors() {
			t.Fatal(r.Diagnostics)
		}
		return thing{kind: "kube_manifest", state: r.State, private: r.Private}
	}
	if found := settle("another"); !found.state.IsNull() {
		t.Errorf("another operation's objects are taken over: %#v", found.state)
	}
	w.kubectl("delete", "service", "web") // as if it had never been made
	found := settle(id)
	if found.state.IsNull() || found.state.GetAttr("id").AsString() != id {
		t.Fatalf("the create is not found: %#v", found.state)
	}
	if _, ok := found.state.GetAttr("objects").AsValueMap()["Service/"+w.ns+"/web"]; ok {
		t.Error("the service is found")
	}
	it := w.make(found, config)
	w.empty(it, config)
	w.destroy(it)
}

func TestReplacement(t *testing.T) {
	w := newWorld(t)
	job := `
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: a, image: "x:1"}]
`
	config := w.yaml(job, map[string]cty.Value{"wait_for_jobs": cty.True})
	it := w.make(thing{}, config)
	if got := w.kubectl("get", "job", "j", "-o", "jsonpath={.status.succeeded}"); got != "1" {
		t.Errorf("apply ended before the job: %q", got)
	}
	it = w.empty(it, config)
	config = w.yaml(strings.Replace(job, "x:1", "x:2", 1), map[string]cty.Value{"wait_for_jobs": cty.True})
	pl := w.plan(it, config)
	if pl.Diagnostics.HasErrors() || len(pl.Replace) == 0 {
		t.Fatalf("a change of a job's template is no replacement: %v %v", pl.Replace, pl.Diagnostics)
	}
	// Beside others, the object alone is made anew.
	both := func(image string) cty.Value {
		return w.yaml(strings.ReplaceAll(strings.Replace(job, "x:1", image, 1), "name: j", "name: k") + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: beside}\n")
	}
	two := w.make(thing{}, both("x:1"))
	uid := w.kubectl("get", "configmap", "beside", "-o", "jsonpath={.metadata.uid}")
	pl = w.plan(two, both("x:2"))
	if pl.Diagnostics.HasErrors() || len(pl.Replace) != 0 || !strings.Contains(strings.Join(pl.notes, " "), "deleted and recreated") {
		t.Fatalf("%v %v %v", pl.Replace, pl.notes, pl.Diagnostics)
	}
	two = w.make(two, both("x:2"))
	if got := w.kubectl("get", "configmap", "beside", "-o", "jsonpath={.metadata.uid}"); got != uid {
		t.Error("what lies beside was made anew as well")
	}
	w.empty(two, both("x:2"))
}
