package kube

import (
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// sight is a review's view of one resource, in addition to its doubts.
type sight struct {
	cluster  *live.Cluster                // nil: it is not known yet
	unseen   []*unstructured.Unstructured // objects that could not be sent to an API server
	crds     []*unstructured.Unstructured // that the resource declares
	demands  []connect.Demand             // of pods that are new or changed
	assume   bool                         // that nodes take them
	discover []string                     // what it makes that may say more about nodes
	grows    []string                     // what it makes that may add nodes
	from     sourcePlace
}

// sourcePlace is where the objects of a resource are written.
type sourcePlace struct{ yaml, path string }

// readSource reads it from a configuration.
func (k kind) readSource(ctx context.Context, config tfsdk.Config) (s sourcePlace) {
	if k.name != manifest.name {
		return s
	}
	var yaml, from types.String
	if !config.GetAttribute(ctx, path.Root("yaml"), &yaml).HasError() {
		s.yaml = yaml.ValueString()
	}
	if !config.GetAttribute(ctx, path.Root("path"), &from).HasError() {
		s.path = from.ValueString()
	}
	return s
}

// placeOf returns the place of an object in the files, such as "web.yaml, document 2
// (line 9)"; "" if it is not known.
func (s sourcePlace) placeOf(u *unstructured.Unstructured) string {
	meant := func(other *unstructured.Unstructured) bool {
		return other.GroupVersionKind() == u.GroupVersionKind() && other.GetName() == u.GetName() && (other.GetNamespace() == "" || other.GetNamespace() == u.GetNamespace())
	}
	if s.yaml != "" {
		return object.Origin([]byte(s.yaml), "yaml", meant)
	}
	if s.path == "" {
		return ""
	}
	files, err := manifests(s.path)
	if err != nil {
		return ""
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		if at := object.Origin(text, name, meant); at != "" {
			return at
		}
	}
	return ""
}

// see remembers what a review has to look at.
func (d *doubts) see(address string, s sight) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.sights == nil {
		d.sights = map[string]sight{}
	}
	d.sights[address] = s
}

// declares looks at rendered objects for the kinds that they bring.
func (s *sight) declares(objects []*unstructured.Unstructured) {
	for _, u := range objects {
		if u.GetKind() == "CustomResourceDefinition" {
			s.crds = append(s.crds, u)
		}
	}
}

// changes looks at an object that is new, or not as it was.
func (s *sight) changes(u *unstructured.Unstructured) {
	if d := demandOf(u); d != nil {
		s.demands = append(s.demands, *d)
	}
	nodes, features := live.Brings(u.GetKind())
	if features {
		s.discover = append(s.discover, object.KeyOf(u).Title())
	}
	if nodes {
		s.grows = append(s.grows, object.KeyOf(u).Title())
	}
}
