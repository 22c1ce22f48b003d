package kube

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
)

// later is the configuration of a manifest whose cluster the plan makes.
func (w *world) later(text string, more ...map[string]cty.Value) cty.Value {
	return w.yaml(text, append(more, map[string]cty.Value{"cluster": cty.UnknownVal(connect.Type)})...)
}

// folder is a new one with files.
func (w *world) folder(files map[string]string) string {
	w.t.Helper()
	dir := w.t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	return dir
}

const replicated = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: nginx}]}}
---
`

const shape = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shapes.NS.example.com}
spec:
  group: NS.example.com
  names: {kind: Shape, plural: shapes}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, required: [sides], properties: {sides: {type: integer, minimum: 3}, color: {type: string, enum: [red, blue]}}}}
---
`

const oneShape = "apiVersion: NS.example.com/v1\nkind: Shape\nmetadata: {name: a}\nspec: "

// TestUnknownCluster: where no API server can be asked, schemas are.
func TestUnknownCluster(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct{ text, detail string }{
		"unknown field":      {strings.Replace(replicated, "replicas", "replcas", 1), "Deployment NS/web (yaml, document 1 (line 1)): spec.replcas is not a field: did you mean replicas? (by Kubernetes v1.37"},
		"another document":   {configMap1("a", "1") + "---\n" + strings.Replace(replicated, "image", "imag", 1), "(yaml, document 2 (line 6)): spec.template.spec.containers[0].imag is not a field: did you mean image?"},
		"type":               {strings.Replace(replicated, "replicas: 2", "replicas: two", 1), "spec.replicas is a text, and has to be a whole number"},
		"required":           {strings.Replace(replicated, "selector: {matchLabels: {app: web}}", "paused: false", 1), "spec.selector lacks, and has to be there"},
		"custom":             {shape + oneShape + "{sides: 2, colour: red}", "Shape NS/a (yaml, document 2 (line 18)): spec.colour is not a field: did you mean color?; spec.sides is too small: it has to be at least 3 (by its CRD)"},
		"several":            {strings.NewReplacer("replicas: 2", "replicas: two", "image", "imag").Replace(replicated), "; spec.template.spec.containers[0].imag is not a field"},
		"namespaced by name": {"{apiVersion: v1, kind: Namespace, metadata: {name: a}, spec: {finalizer: [a]}}", "Namespace NS/a (yaml, document 1 (line 1)): spec.finalizer is not a field: did you mean finalizers?"},
	} {
		t.Run(name, func(t *testing.T) {
			pl := w.plan(thing{}, w.later(c.text))
			says(t, pl.said(), badObject, strings.ReplaceAll(c.detail, "NS", w.ns))
		})
	}
	pl := w.plan(thing{}, w.later(replicated+shape+oneShape+"{sides: 3}\n---\n{apiVersion: other.example.com/v1, kind: Thing, metadata: {name: a}}"))
	notes := strings.ReplaceAll(strings.Join(pl.notes, "\n"), w.ns, "NS")
	if pl.said().HasErrors() {
		t.Error(pl.said())
	}
	for _, want := range []string{
		"Deployment NS/web is checked at apply: its cluster is not known yet; its fields and their types are right for Kubernetes v1.37",
		"Shape NS/a is checked at apply: its cluster is not known yet; its fields and their types are right for its CRD",
		"Thing NS/a is checked at apply: its cluster is not known yet, and Thing of other.example.com/v1 is not a kind of Kubernetes v1.37",
		"stoke cannot tell whether a node can take the pods of Deployment NS/web: their cluster is not known yet",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in\n%s", want, notes)
		}
	}
	if v := pl.Planned.GetAttr("objects"); v.IsKnown() {
		t.Errorf("the objects are planned as %#v", v)
	}
}

// TestUnknownClusterOfAFolder names the file.
func TestUnknownClusterOfAFolder(t *testing.T) {
	w := newWorld(t)
	dir := w.folder(map[string]string{"a.yaml": configMap1("a", "1"), "b.yaml": strings.Replace(replicated, "replicas", "replcas", 1)})
	pl := w.plan(thing{}, w.conf("kube_manifest", map[string]cty.Value{"path": cty.StringVal(dir), "cluster": cty.UnknownVal(connect.Type)}))
	says(t, pl.said(), badObject, "Deployment web ("+dir+"/b.yaml, document 1 (line 1)): spec.replcas")
	for _, d := range pl.said() {
		if !d.Path.Equals(cty.GetAttrPath("path")) {
			t.Errorf("it is shown at %#v", d.Path)
		}
	}
}

// TestPlannedVersion: the version of the cluster that the plan makes is the one
// that counts.
func TestPlannedVersion(t *testing.T) {
	w := newWorld(t)
	cluster := func(version string) providers.PlannedInstance {
		return providers.PlannedInstance{Source: "registry.terraform.io/x/x", Address: "x_cluster.c", Type: "x_cluster", Prior: cty.NullVal(cty.DynamicPseudoType), Planned: cty.ObjectVal(map[string]cty.Value{
			"version": cty.StringVal(version), "access": cty.UnknownVal(connect.Type),
		})}
	}
	old := "{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: a}, spec: {minAvailable: 1}}"
	for name, c := range map[string]struct {
		text    string
		planned []providers.PlannedInstance
		bad     string
		note    string
	}{
		"nobody knows":  {old, nil, "", "is not a kind of Kubernetes v1.37"},
		"not there":     {old, []providers.PlannedInstance{cluster("1.36")}, "does not serve PodDisruptionBudget in policy/v1beta1: use policy/v1", ""},
		"its version":   {replicated, []providers.PlannedInstance{cluster("1.35")}, "", "right for Kubernetes v1.35"},
		"newer":         {replicated, []providers.PlannedInstance{cluster("1.39")}, "", "stoke has no schemas of Kubernetes 1.39"},
		"wrong for all": {strings.Replace(replicated, "replicas", "replcas", 1), []providers.PlannedInstance{cluster("1.35"), cluster("1.36")}, "by Kubernetes v1.35", ""},
	} {
		pl := w.plan(thing{}, w.later(c.text))
		notes, diags := w.entry.Review(t.Context(), providers.Review{Planned: append(c.planned, providers.PlannedInstance{Source: Source, Address: pl.prior.address(), Type: pl.kind, Prior: pl.prior.state, Planned: pl.Planned})})
		text := ""
		for _, n := range notes {
			text += n.Text + "\n"
		}
		if c.bad != "" {
			says(t, diags, badObject, c.bad)
		} else if diags.HasErrors() || !strings.Contains(text, c.note) {
			t.Errorf("%s: %v %q", name, diags, text)
		}
	}
}

// TestNamespaceOfThePlan: where the cluster is there, but not the namespace or the
// kind.
func TestNamespaceOfThePlan(t *testing.T) {
	w := newWorld(t)
	in := "apiVersion: v1\nkind: Namespace\nmetadata: {name: NS-made}\n---\n"
	config := func(text string) cty.Value {
		return w.yaml(in+text, map[string]cty.Value{"namespace": cty.StringVal(w.ns + "-made")})
	}
	says(t, w.plan(thing{}, config(strings.Replace(replicated, "matchLabels: {app: web}", "matchLabel: {app: web}", 1))).said(), "", "matchLabel")
	says(t, w.plan(thing{}, config(strings.Replace(replicated, "containers", "initContainers", 1))).said(), badObject, "spec.template.spec.containers lacks")
	says(t, w.plan(thing{}, config(shape+oneShape+"{sides: 3, color: green}")).said(), badObject, "spec.color has none of the values that it may have: red, blue (by its CRD)")
	if pl := w.plan(thing{}, config(replicated+shape+oneShape+"{sides: 3, color: red}")); pl.said().HasErrors() {
		t.Error(pl.said())
	}
	one, two := w.plan(named("crd"), w.yaml(shape)), w.plan(named("shape"), w.later(oneShape+"{sides: 1}"))
	diags, _ := w.review(one, two)
	says(t, diags, badObject, "spec.sides is too small") // another resource's CRD
}

// TestSecretsAreNotQuoted: what is wrong with a Secret is said without its values.
func TestSecretsAreNotQuoted(t *testing.T) {
	w := newWorld(t)
	dir := w.folder(map[string]string{"a.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {key: Y2FuYXJ5}\ntyp: canary\nimmutable: canary\n"})
	pl := w.plan(thing{}, w.conf("kube_manifest", map[string]cty.Value{"path": cty.StringVal(dir), "cluster": cty.UnknownVal(connect.Type)}))
	says(t, pl.said(), badObject, "immutable is a text, and has to be true or false; typ is not a field: did you mean type?")
	for _, d := range pl.said() {
		if strings.Contains(d.Detail, "canary") || strings.Contains(d.Detail, "Y2FuYXJ5") {
			t.Error(d.Detail)
		}
	}
}
