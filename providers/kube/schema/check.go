package schema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/agext/levenshtein"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Finding is something in an object that no API server of the schema's version
// would take.
type Finding struct {
	// Path leads to the field, such as "spec.template.spec.containers[0].image".
	Path string
	// Problem is what is wrong with it, as the rest of a sentence that begins with
	// the path: "is a text, and has to be a whole number". It repeats no values.
	Problem string
}

func (f Finding) String() string { return f.Path + " " + f.Problem }

// Check looks for fields of an object that its kind does not have, that lack, or
// whose values are of another type, in the order of their paths. What the schema
// does not say (the names of objects, how fields belong together) only a server can
// tell. It is an error where the minor does not know the kind: see Kind.
func (m *Minor) Check(object map[string]any, of gvk.GroupVersionKind) ([]Finding, error) {
	k, ok := m.Kind(of)
	if !ok {
		return nil, fmt.Errorf("no %s of %s in Kubernetes %s", of.Kind, of.GroupVersion(), m.Version)
	}
	c := &check{resolve: m.Schema}
	c.reference(nil, object, k.Schema)
	return c.findings, c.err
}

// check is one look at an object.
type check struct {
	resolve  func(name string) (*spec.Schema, error)
	custom   bool // the schema is a CRD's, which also limits values
	findings []Finding
	err      error
}

// fieldPath is a path: names of fields, and indexes or keys in brackets.
type fieldPath []string

func (p fieldPath) field(name string) fieldPath {
	if strings.ContainsAny(name, "./[]") {
		return p.bracket(strconv.Quote(name))
	}
	return append(slices.Clip(p), "."+name)
}

func (p fieldPath) bracket(inside string) fieldPath { return append(slices.Clip(p), "["+inside+"]") }

func (p fieldPath) String() string {
	if len(p) == 0 {
		return "the object"
	}
	return strings.TrimPrefix(strings.Join(p, ""), ".")
}

func (c *check) report(p fieldPath, format string, args ...any) {
	c.findings = append(c.findings, Finding{p.String(), fmt.Sprintf(format, args...)})
}

// Names of types that are more than their schemas say.
const (
	quantityType = "io.k8s.apimachinery.pkg.api.resource.Quantity"
)

// reference checks a value against the schema of a name.
func (c *check) reference(p fieldPath, v any, name string) {
	name = strings.TrimPrefix(name, reference)
	if name == quantityType {
		c.quantity(p, v)
		return
	}
	s, err := c.resolve(name)
	if err != nil {
		c.err = err
		return
	}
	c.value(p, v, s, name)
}

// value checks a value; name is that of the schema, "" where it has none.
func (c *check) value(p fieldPath, v any, s *spec.Schema, name string) {
	if ref := s.Ref.String(); ref != "" {
		c.reference(p, v, ref)
		return
	}
	if !c.custom && len(s.AllOf) == 1 && len(s.Type) == 0 { // a reference with a default beside it
		c.value(p, v, &s.AllOf[0], name)
		return
	}
	if v == nil {
		if c.custom && !s.Nullable && !c.open(s) {
			c.report(p, "is null, and has to be %s", article(expected(s)))
		}
		return
	}
	if c.intOrString(s) {
		if kind := kindOf(v); kind != text && kind != whole {
			c.report(p, "is %s, and has to be a text or a whole number", article(kind))
			return
		}
		c.limits(p, v, s)
		return
	}
	if want := expected(s); want != "" && !fits(v, want) {
		c.report(p, "is %s, and has to be %s", article(kindOf(v)), article(want))
		return
	}
	switch v := v.(type) {
	case map[string]any:
		c.object(p, v, s, name)
	case []any:
		c.list(p, v, s)
	default:
		c.scalar(p, v, s)
	}
	c.limits(p, v, s)
}

// intOrString reports a schema of the kind of fields that ports have.
func (c *check) intOrString(s *spec.Schema) bool {
	if flag, _ := s.Extensions.GetBool("x-kubernetes-int-or-string"); flag {
		return true
	}
	return s.Format == "int-or-string"
}

// open reports a schema that says nothing of its values' types.
func (c *check) open(s *spec.Schema) bool {
	flag, _ := s.Extensions.GetBool("x-kubernetes-preserve-unknown-fields")
	return flag && len(s.Type) == 0
}

// object checks the fields of an object, or the values of a map.
func (c *check) object(p fieldPath, v map[string]any, s *spec.Schema, name string) {
	keep, _ := s.Extensions.GetBool("x-kubernetes-preserve-unknown-fields")
	embedded, _ := s.Extensions.GetBool("x-kubernetes-embedded-resource")
	for _, field := range s.Required {
		if _, there := v[field]; !there && !c.mayLack(s, name, field) {
			c.report(p.field(field), "lacks, and has to be there")
		}
	}
	free := !c.custom && len(s.Properties) == 0 && s.AdditionalProperties == nil || len(s.Type) == 0 && len(s.Properties) == 0
	for _, field := range slices.Sorted(maps.Keys(v)) {
		property, known := s.Properties[field]
		switch {
		case embedded && slices.Contains([]string{"apiVersion", "kind", "metadata"}, field):
		case known:
			c.value(p.field(field), v[field], &property, "")
		case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
			c.value(p.bracket(strconv.Quote(field)), v[field], s.AdditionalProperties.Schema, "")
		case keep || free || s.AdditionalProperties != nil && s.AdditionalProperties.Allows:
		default:
			c.report(p.field(field), "is not a field%s", suggestField(field, s))
		}
	}
}

// suggestField is what may have been meant in place of an unknown field.
func suggestField(field string, s *spec.Schema) string {
	best, least := "", 3
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		distance := levenshtein.Distance(strings.ToLower(field), strings.ToLower(name), nil)
		if distance < least && (distance == 0 || len(field) > 2*distance) {
			best, least = name, distance
		}
	}
	switch names := slices.Sorted(maps.Keys(s.Properties)); {
	case best != "":
		return ": did you mean " + best + "?"
	case len(names) > 0 && len(names) <= 8:
		return ": there are " + strings.Join(names, ", ")
	}
	return ""
}

// list checks items, and that they can be told apart.
func (c *check) list(p fieldPath, v []any, s *spec.Schema) {
	if s.Items != nil && s.Items.Schema != nil {
		for i, item := range v {
			c.value(p.bracket(strconv.Itoa(i)), item, s.Items.Schema, "")
		}
	}
	kind, _ := s.Extensions.GetString("x-kubernetes-list-type")
	seen := map[string]int{}
	switch kind {
	case "map":
		c.keyed(p, v, s)
	case "set":
		for i, item := range v {
			key := fmt.Sprintf("%T %v", item, item)
			if first, twice := seen[key]; twice {
				c.report(p.bracket(strconv.Itoa(i)), "is the same as item %d, and may be there once", first)
				continue
			}
			seen[key] = i
		}
	}
}

// keyed checks a list whose items are told apart by some of their fields.
func (c *check) keyed(p fieldPath, v []any, s *spec.Schema) {
	keys, _ := s.Extensions.GetStringSlice("x-kubernetes-list-map-keys")
	seen := map[string]int{}
	for i, item := range v {
		m, ok := item.(map[string]any)
		if !ok {
			continue // its type is wrong, which was said
		}
		var parts []string
		for _, key := range keys {
			value, there := m[key]
			if !there {
				value, there = c.defaultOf(s.Items, key)
			}
			if !there {
				parts = nil
				if !c.requires(s.Items, key) { // which was said otherwise
					c.report(p.bracket(strconv.Itoa(i)).field(key), "lacks, and tells the items of the list apart")
				}
				break
			}
			parts = append(parts, fmt.Sprintf("%T %v", value, value))
		}
		if parts == nil {
			continue
		}
		key := strings.Join(parts, "\n")
		if first, twice := seen[key]; twice {
			c.report(p.bracket(strconv.Itoa(i)), "has the same %s as item %d", strings.Join(keys, " and "), first)
			continue
		}
		seen[key] = i
	}
}

// item is the schema of a list's items, with its name.
func (c *check) item(items *spec.SchemaOrArray) (*spec.Schema, string) {
	if items == nil || items.Schema == nil {
		return &spec.Schema{}, ""
	}
	s := items.Schema
	if !c.custom && len(s.AllOf) == 1 {
		s = &s.AllOf[0]
	}
	ref := strings.TrimPrefix(s.Ref.String(), reference)
	if ref == "" {
		return s, ""
	}
	found, err := c.resolve(ref)
	if err != nil {
		c.err = err
		return &spec.Schema{}, ""
	}
	return found, ref
}

func (c *check) defaultOf(items *spec.SchemaOrArray, field string) (any, bool) {
	s, _ := c.item(items)
	v := s.Properties[field].Default
	return v, v != nil
}

func (c *check) requires(items *spec.SchemaOrArray, field string) bool {
	s, name := c.item(items)
	return slices.Contains(s.Required, field) && !c.mayLack(s, name, field)
}
