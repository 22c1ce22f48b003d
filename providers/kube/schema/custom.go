package schema

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"unicode/utf8"

	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Custom is a kind that a CRD brings, in one version.
type Custom struct {
	gvk.GroupVersionKind
	Namespaced bool

	schema *spec.Schema // nil: anything goes
}

// Customs are the kinds that a CRD serves. An object that is no CRD brings none. It
// is an error where a schema in it cannot be read.
func Customs(crd map[string]any) ([]Custom, error) {
	if crd["kind"] != "CustomResourceDefinition" {
		return nil, nil
	}
	var d struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Scope    string
			Versions []struct {
				Name   string
				Served bool
				Schema struct {
					OpenAPIV3Schema json.RawMessage `json:"openAPIV3Schema"`
				}
			}
		}
	}
	content, err := json.Marshal(crd)
	if err == nil {
		err = json.Unmarshal(content, &d)
	}
	if err != nil {
		return nil, fmt.Errorf("read CRD: %w", err)
	}
	var all []Custom
	for _, v := range d.Spec.Versions {
		if !v.Served {
			continue
		}
		one := Custom{GroupVersionKind: gvk.GroupVersionKind{Group: d.Spec.Group, Version: v.Name, Kind: d.Spec.Names.Kind}, Namespaced: d.Spec.Scope != "Cluster"}
		if len(v.Schema.OpenAPIV3Schema) > 0 {
			one.schema = &spec.Schema{}
			if err := json.Unmarshal(v.Schema.OpenAPIV3Schema, one.schema); err != nil {
				return nil, fmt.Errorf("read the schema of %s: %w", one.GroupVersionKind, err)
			}
		}
		all = append(all, one)
	}
	return all, nil
}

// Check is Minor.Check for an object of the kind. m knows what metadata is. Rules
// in CEL, and what allOf, anyOf, oneOf and not say, are a server's.
func (k Custom) Check(object map[string]any, m *Minor) ([]Finding, error) {
	head := &check{resolve: m.Schema}
	head.reference(fieldPath(nil).field("metadata"), object["metadata"], "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
	if k.schema == nil || head.err != nil {
		return head.findings, head.err
	}
	body := map[string]any{}
	for name, v := range object {
		if name != "apiVersion" && name != "kind" && name != "metadata" {
			body[name] = v
		}
	}
	root := *k.schema
	root.Required = nil
	for _, name := range k.schema.Required {
		if name != "apiVersion" && name != "kind" && name != "metadata" {
			root.Required = append(root.Required, name)
		}
	}
	c := &check{resolve: m.Schema, custom: true}
	c.value(nil, body, &root, "")
	return append(head.findings, c.findings...), c.err
}

// limits checks what a CRD says of values beside their types.
func (c *check) limits(p fieldPath, v any, s *spec.Schema) {
	if !c.custom {
		return
	}
	if len(s.Enum) > 0 && !isOneOf(v, s.Enum) {
		c.report(p, "has none of the values that it may have: %s", choices(s.Enum))
	}
	switch v := v.(type) {
	case string:
		n := int64(utf8.RuneCountInString(v))
		c.count(p, n, s.MinLength, s.MaxLength, "characters")
		if expression, err := regexp.Compile(s.Pattern); s.Pattern != "" && err == nil && !expression.MatchString(v) {
			c.report(p, "does not match %s", s.Pattern)
		}
	case int64:
		c.checkRange(p, float64(v), s)
	case float64:
		c.checkRange(p, v, s)
	case []any:
		c.count(p, int64(len(v)), s.MinItems, s.MaxItems, "items")
	case map[string]any:
		c.count(p, int64(len(v)), s.MinProperties, s.MaxProperties, "fields")
	}
}

func (c *check) count(p fieldPath, n int64, least, most *int64, of string) {
	switch {
	case least != nil && n < *least:
		c.report(p, "has %d %s, and has to have %d at least", n, of, *least)
	case most != nil && n > *most:
		c.report(p, "has %d %s, and may have %d", n, of, *most)
	}
}

func (c *check) checkRange(p fieldPath, v float64, s *spec.Schema) {
	switch {
	case s.Minimum != nil && (v < *s.Minimum || s.ExclusiveMinimum && v == *s.Minimum):
		c.report(p, "is too small: it has to be %s", bound("at least", "more than", s.ExclusiveMinimum, *s.Minimum))
	case s.Maximum != nil && (v > *s.Maximum || s.ExclusiveMaximum && v == *s.Maximum):
		c.report(p, "is too large: it has to be %s", bound("at most", "less than", s.ExclusiveMaximum, *s.Maximum))
	case s.MultipleOf != nil && *s.MultipleOf != 0 && math.Mod(v, *s.MultipleOf) != 0:
		c.report(p, "has to be a multiple of %v", *s.MultipleOf)
	}
}

func bound(with, without string, exclusive bool, limit float64) string {
	if exclusive {
		with = without
	}
	return fmt.Sprintf("%s %v", with, limit)
}

// isOneOf reports that a value is one of several, which come from JSON as it does.
func isOneOf(v any, all []any) bool {
	for _, one := range all {
		if f, ok := one.(float64); ok {
			switch v := v.(type) {
			case int64:
				if float64(v) == f {
					return true
				}
			case float64:
				if v == f {
					return true
				}
			}
			continue
		}
		if reflect.DeepEqual(v, one) {
			return true
		}
	}
	return false
}

func choices(all []any) string {
	out := ""
	for i, one := range all {
		if i > 0 {
			out += ", "
		}
		out += fmt.Sprint(one)
	}
	return out
}
