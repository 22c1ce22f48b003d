package schema

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stokehq/stoke/providers/connect/kubetest"
)

var shared = kubetest.Shared{Options: kubetest.Options{APIOnly: true}}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// TestServerSaysTheSame compares the schemas of the API server's minor, and
// what its kinds are called, with what it serves itself.
func TestServerSaysTheSame(t *testing.T) {
	c := shared.Cluster(t)
	var library Library
	m, err := library.Minor(c.Version)
	if err != nil {
		t.Fatal(err)
	}
	paths, err := c.Client.Discovery().OpenAPIV3().Paths()
	if err != nil {
		t.Fatal(err)
	}
	compared := map[string]bool{}
	for path, group := range paths {
		if path != "api/v1" && strings.Count(path, "/") != 2 {
			continue // it is of no group and version
		}
		text, err := group.Schema("application/json")
		if err != nil {
			t.Fatal(err)
		}
		var document struct {
			Components struct{ Schemas map[string]any }
		}
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		for name, served := range document.Components.Schemas {
			if strings.HasSuffix(name, ".meta.v1.DeleteOptions") || strings.HasSuffix(name, ".meta.v1.WatchEvent") || compared[name] {
				continue
			}
			compared[name] = true
			var ours any
			if err := json.Unmarshal(m.raw[name], &ours); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if diff := cmp.Diff(bare(served), bare(ours)); diff != "" {
				t.Errorf("%s (-served +ours):\n%s", name, diff)
			}
		}
	}
	if len(compared) < 500 {
		t.Errorf("only %d schemas compared", len(compared))
	}

	_, lists, err := c.Client.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	kinds := 0
	for _, list := range lists {
		version, err := gvk.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "create") {
				continue
			}
			kinds++
			got, _ := m.Kind(version.WithKind(r.Kind))
			if got.Resource != r.Name || got.Namespaced != r.Namespaced {
				t.Errorf("%s %s: the server says %s, namespaced: %t; we say %+v", list.GroupVersion, r.Kind, r.Name, r.Namespaced, got)
			}
		}
	}
	if kinds < 50 {
		t.Errorf("only %d kinds compared", kinds)
	}
}

// bare takes out of a schema what ours do not have: descriptions, and the
// values that a string may have.
func bare(schema any) any {
	switch s := schema.(type) {
	case map[string]any:
		s = maps.Clone(s)
		delete(s, "description")
		if s["type"] == "string" {
			delete(s, "enum")
		}
		for key, value := range s {
			if properties, ok := value.(map[string]any); ok && key == "properties" {
				for name, property := range properties {
					properties[name] = bare(property)
				}
				continue
			}
			s[key] = bare(value)
		}
		return s
	case []any:
		for i := range s {
			s[i] = bare(s[i])
		}
	}
	return schema
}
