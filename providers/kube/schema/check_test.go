package schema

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/kube/object"
)

// TestDocumentsHaveNoFinding: what people apply every day is right for every minor.
func TestDocumentsHaveNoFinding(t *testing.T) {
	files, err := filepath.Glob("../testdata/documents/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	minors, err := Minors()
	if err != nil {
		t.Fatal(err)
	}
	var library Library
	checked := 0
	for _, minor := range minors {
		m, err := library.Minor(minor)
		if err != nil {
			t.Fatal(err)
		}
		customs := map[string]Custom{}
		for _, pass := range []string{"kinds", "objects"} {
			for _, file := range files {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				objects, err := object.Parse([]byte(strings.ReplaceAll(string(text), "NS", "ns")), file)
				if err != nil {
					t.Fatal(err)
				}
				for _, u := range objects {
					if pass == "kinds" {
						brought, err := Customs(u.Object)
						if err != nil {
							t.Fatal(err)
						}
						for _, c := range brought {
							customs[c.GroupVersionKind.String()] = c
						}
						continue
					}
					object.Clean(u)
					var found []Finding
					if c, ok := customs[u.GroupVersionKind().String()]; ok {
						found, err = c.Check(u.Object, m)
					} else {
						found, err = m.Check(u.Object, u.GroupVersionKind())
					}
					if checked++; err != nil || len(found) > 0 {
						t.Errorf("%s: %s of %s: %v %v", minor, object.KeyOf(u).Title(), file, found, err)
					}
				}
			}
		}
	}
	if checked < 3*40 {
		t.Errorf("only %d objects checked", checked)
	}
}

// check gives what is found in a document.
func findings(t *testing.T, crd, document string) []string {
	t.Helper()
	var library Library
	m, err := library.Minor("1.37")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := object.Parse([]byte(document), "yaml")
	if err != nil || len(objects) != 1 {
		t.Fatal(err)
	}
	u := objects[0]
	var found []Finding
	if crd == "" {
		found, err = m.Check(u.Object, u.GroupVersionKind())
	} else {
		brings, parseErr := object.Parse([]byte(crd), "crd")
		if parseErr != nil {
			t.Fatal(parseErr)
		}
		customs, crdErr := Customs(brings[0].Object)
		if crdErr != nil || len(customs) != 1 {
			t.Fatal(crdErr, customs)
		}
		found, err = customs[0].Check(u.Object, m)
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, f := range found {
		all = append(all, f.String())
	}
	return all
}

func TestFindings(t *testing.T) {
	pod := func(container string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [" + container + "]}}"
	}
	for _, c := range []struct {
		document string
		want     []string
	}{
		{pod("{name: a, image: b}"), nil},
		{pod("{name: a, imgae: b}"), []string{"spec.containers[0].imgae is not a field: did you mean image?"}},
		{pod("{name: a, Image: b}"), []string{"spec.containers[0].Image is not a field: did you mean image?"}},
		{pod("{name: a}, {name: a}"), []string{"spec.containers[1] has the same name as item 0"}},
		{pod("{image: b}"), []string{"spec.containers[0].name lacks, and has to be there"}},
		{pod("{name: a, ports: [{containerPort: 80}, {containerPort: 80, protocol: TCP}]}"), []string{"spec.containers[0].ports[1] has the same containerPort and protocol as item 0"}},
		{pod("{name: a, env: [{name: X, value: 1}]}"), []string{"spec.containers[0].env[0].value is a whole number, and has to be a text"}},
		{pod("{name: a, tty: \"true\"}"), []string{"spec.containers[0].tty is a text, and has to be true or false"}},
		{pod("{name: a, command: sleep}"), []string{"spec.containers[0].command is a text, and has to be a list"}},
		{pod("{name: a, resources: {limits: {memory: 1 Gi}}}"), []string{`spec.containers[0].resources.limits["memory"] is not a quantity such as 500m, 2 or 16Gi`}},
		{pod("{name: a, resources: {limits: {memory: true}}}"), []string{`spec.containers[0].resources.limits["memory"] is true or false, and has to be a quantity such as 500m, 2 or 16Gi`}},
		{pod("{name: a, livenessProbe: {httpGet: {port: [80]}}}"), []string{"spec.containers[0].livenessProbe.httpGet.port is a list, and has to be a text or a whole number"}},
		{"{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {}}", []string{"spec.containers lacks, and has to be there"}},
		{"{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, data: {a.b: 1}}", []string{`data["a.b"] is a whole number, and has to be a text`}},
		{"{apiVersion: v1, kind: ConfigMap, metadata: {name: c}, binaryData: {a: \"%\"}}", []string{`binaryData["a"] is not in base64`}},
		{"{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: c}, spec: {replicas: 3000000000, selector: {}}}", []string{"spec.replicas is out of range: it has 32 bits"}},
		{"{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: c}, spec: {replicas: 1.5, selector: {}}}", []string{"spec.replicas is a number, and has to be a whole number"}},
		{"{apiVersion: v1, kind: Namespace, metadata: {name: c, finalizers: [a, a]}}", []string{"metadata.finalizers[1] is the same as item 0, and may be there once"}},
		{"{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: c}, spec: {controllers: a}}", []string{"spec.controllers is not a field: did you mean controller?"}},
		{"{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: c}, spec: {what: a}}", []string{"spec.what is not a field: there are controller, parameters"}},
	} {
		if got := findings(t, "", c.document); !slices.Equal(got, c.want) {
			t.Errorf("%s\ngives %q\nwant  %q", c.document, got, c.want)
		}
	}
}

const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: runs.example.com}
spec:
  group: example.com
  names: {kind: Run, plural: runs}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [model, steps]
            properties:
              model: {type: string, enum: [small, large]}
              steps: {type: integer, minimum: 1, maximum: 100, default: 10}
              rate: {type: number, minimum: 0, exclusiveMinimum: true}
              name: {type: string, pattern: "^[a-z]+$", maxLength: 5}
              port: {x-kubernetes-int-or-string: true}
              note: {type: string, nullable: true}
              more: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: integer}}}
              tags: {type: object, additionalProperties: {type: string}, maxProperties: 1}
              parts: {type: array, minItems: 1, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [id], items: {type: object, required: [id], properties: {id: {type: string}}}}
              pod: {type: object, x-kubernetes-embedded-resource: true, properties: {spec: {type: object}}}
  - {name: v0, served: false, storage: false}
`

func TestCustomFindings(t *testing.T) {
	for _, c := range []struct {
		spec string
		want []string
	}{
		{"{model: small, rate: 1, port: a, more: {b: 1}, tags: {a: b}, parts: [{id: a}], pod: {apiVersion: v1, kind: Pod, metadata: {name: a}}}", nil},
		{"{model: small, port: 80, rate: 0.5}", nil},
		{"{}", []string{"spec.model lacks, and has to be there"}},
		{"{model: tiny}", []string{"spec.model has none of the values that it may have: small, large"}},
		{"{model: small, modle: small}", []string{"spec.modle is not a field: did you mean model?"}},
		{"{model: small, steps: 0}", []string{"spec.steps is too small: it has to be at least 1"}},
		{"{model: small, steps: 101}", []string{"spec.steps is too large: it has to be at most 100"}},
		{"{model: small, rate: 0}", []string{"spec.rate is too small: it has to be more than 0"}},
		{"{model: small, name: A}", []string{"spec.name does not match ^[a-z]+$"}},
		{"{model: small, name: abcdef}", []string{"spec.name has 6 characters, and may have 5"}},
		{"{model: small, port: 1.5}", []string{"spec.port is a number, and has to be a text or a whole number"}},
		{"{model: small, more: {a: b}}", []string{"spec.more.a is a text, and has to be a whole number"}},
		{"{model: small, tags: {a: b, c: d}}", []string{"spec.tags has 2 fields, and may have 1"}},
		{"{model: small, tags: {a: 1}}", []string{`spec.tags["a"] is a whole number, and has to be a text`}},
		{"{model: small, parts: []}", []string{"spec.parts has 0 items, and has to have 1 at least"}},
		{"{model: small, parts: [{id: a}, {id: a}]}", []string{"spec.parts[1] has the same id as item 0"}},
		{"{model: small, parts: [{}]}", []string{"spec.parts[0].id lacks, and has to be there"}},
	} {
		document := "{apiVersion: example.com/v1, kind: Run, metadata: {name: a}, spec: " + c.spec + "}"
		if got := findings(t, crd, document); !slices.Equal(got, c.want) {
			t.Errorf("%s\ngives %q\nwant  %q", c.spec, got, c.want)
		}
	}
	if got := findings(t, crd, "{apiVersion: example.com/v1, kind: Run, metadata: {name: a, lables: {}}, spec: {model: small}}"); !slices.Equal(got, []string{"metadata.lables is not a field: did you mean labels?"}) {
		t.Errorf("got %q", got)
	}
}
