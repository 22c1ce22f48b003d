package schema

import (
	"slices"
	"strings"
	"testing"

	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var deployment = gvk.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

func TestEveryKindHasASchema(t *testing.T) {
	names, err := Minors()
	if err != nil || !slices.Equal(names, []string{"1.35", "1.36", "1.37"}) {
		t.Fatalf("got the minors %v (%v)", names, err)
	}
	var library Library
	for _, name := range names {
		m, err := library.Minor(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(m.Version, "v"+name+".") || len(m.Kinds()) < 80 {
			t.Errorf("%s is of %s and has %d kinds", name, m.Version, len(m.Kinds()))
		}
		for _, of := range m.Kinds() {
			k, ok := m.Kind(of)
			if !ok || k.Resource == "" {
				t.Errorf("%s: %s is %+v", name, of, k)
			}
			s, err := m.Schema(k.Schema)
			if err != nil || s.Properties["kind"].Type == nil {
				t.Errorf("%s: the schema of %s: %v", name, of, err)
			}
		}
		all, err := m.Schemas()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := managedfields.NewTypeConverter(all, false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKind(t *testing.T) {
	var library Library
	for _, version := range []string{"1.36", "v1.36.3", "v1.36.2-gke.1000"} {
		m, err := library.Minor(version)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := m.Kind(deployment)
		want := Kind{Resource: "deployments", Namespaced: true, Schema: "io.k8s.api.apps.v1.Deployment"}
		if !ok || got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if k, ok := m.Kind(gvk.GroupVersionKind{Version: "v1", Kind: "Namespace"}); !ok || k.Namespaced {
			t.Errorf("a namespace is %+v", k)
		}
		if _, ok := m.Kind(gvk.GroupVersionKind{Group: "cert-manager.io", Version: "v1", Kind: "Issuer"}); ok {
			t.Error("a custom resource is known")
		}
		again, err := library.Minor("1.36.0")
		if err != nil || again != m {
			t.Errorf("read again: %v", err)
		}
	}
}

func TestSchemasAreReadWhenNeeded(t *testing.T) {
	var library Library
	m, err := library.Minor("1.37")
	if err != nil {
		t.Fatal(err)
	}
	k, _ := m.Kind(deployment)
	s, err := m.Schema(k.Schema)
	if err != nil || len(m.decoded) != 1 {
		t.Fatalf("%v; %d schemas are decoded, want 1", err, len(m.decoded))
	}
	property := s.Properties["spec"]
	inner, err := m.Schema(property.AllOf[0].Ref.String())
	if err != nil || len(m.decoded) != 2 {
		t.Fatalf("%v; %d schemas are decoded, want 2", err, len(m.decoded))
	}
	replicas := inner.Properties["replicas"]
	if !replicas.Type.Contains("integer") || replicas.Format != "int32" || !slices.Contains(inner.Required, "selector") {
		t.Errorf("the schema of a deployment's spec has replicas %+v and requires %v", replicas, inner.Required)
	}
}

// TestFieldsAreKnown shows that the schemas are enough for a typed object, whose
// lists are known by keys and whose unknown fields are refused.
func TestFieldsAreKnown(t *testing.T) {
	var library Library
	m, err := library.Minor("1.35")
	if err != nil {
		t.Fatal(err)
	}
	all, err := m.Schemas()
	if err != nil {
		t.Fatal(err)
	}
	converter, err := managedfields.NewTypeConverter(all, false)
	if err != nil {
		t.Fatal(err)
	}
	object := func(field string, value any) error {
		_, err := converter.ObjectToTyped(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"}, "spec": map[string]any{field: value},
		}})
		return err
	}
	if err := object("replicas", int64(3)); err != nil {
		t.Errorf("a known field: %v", err)
	}
	if err := object("replicaz", int64(3)); err == nil || !strings.Contains(err.Error(), "replicaz") {
		t.Errorf("an unknown field: got %v", err)
	}
	if err := object("replicas", "three"); err == nil || !strings.Contains(err.Error(), "replicas") {
		t.Errorf("a field of another type: got %v", err)
	}
}

func TestUnknownMinor(t *testing.T) {
	var library Library
	for _, version := range []string{"1.34", "v1.38.0", "", "latest", "../1.36"} {
		_, err := library.Minor(version)
		if err == nil || !strings.Contains(err.Error(), "only of 1.35, 1.36, 1.37") {
			t.Errorf("%q: got %v", version, err)
		}
	}
}
