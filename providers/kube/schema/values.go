package schema

import (
	"encoding/base64"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// What people call the types of values.
const (
	text    = "text"
	whole   = "whole number"
	number  = "number"
	boolean = "true or false"
	list    = "list"
	mapping = "object"
	null    = "null"
)

// kindOf is what a value is.
func kindOf(v any) string {
	switch v := v.(type) {
	case string:
		return text
	case bool:
		return boolean
	case int64, int:
		return whole
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return whole
		}
		return number
	case []any:
		return list
	case map[string]any:
		return mapping
	}
	return null
}

// expected is what a schema wants; "" for anything.
func expected(s *spec.Schema) string {
	if len(s.Type) != 1 {
		return ""
	}
	return map[string]string{"string": text, "integer": whole, "number": number, "boolean": boolean, "array": list, "object": mapping}[s.Type[0]]
}

func fits(v any, want string) bool {
	kind := kindOf(v)
	return kind == want || kind == whole && want == number
}

func article(kind string) string {
	switch kind {
	case mapping:
		return "an object"
	case boolean, null:
		return kind
	}
	return "a " + kind
}

// scalar checks how a text or a number is written.
func (c *check) scalar(p fieldPath, v any, s *spec.Schema) {
	switch v := v.(type) {
	case string:
		if problem := formatFault(v, s.Format, c.custom); problem != "" {
			c.report(p, "%s", problem)
		}
	case int64:
		if s.Format == "int32" && (v > math.MaxInt32 || v < math.MinInt32) {
			c.report(p, "is out of range: it has 32 bits")
		}
	}
}

// formatFault returns the fault of a text that does not have its format; "" where
// nothing is. CRDs may name any format; formats that an API server does not
// know mean nothing.
func formatFault(v, format string, custom bool) string {
	switch format {
	case "byte":
		if _, err := base64.StdEncoding.DecodeString(v); err != nil {
			return "is not in base64"
		}
	case "date-time":
		if _, err := time.Parse(time.RFC3339, v); err != nil && (v != "" || custom) {
			return "is not a time such as 2026-01-02T15:04:05Z"
		}
	case "date":
		if _, err := time.Parse(time.DateOnly, v); err != nil && custom {
			return "is not a date such as 2026-01-02"
		}
	}
	return ""
}

// quantity checks an amount such as "500m" or 2.
func (c *check) quantity(p fieldPath, v any) {
	switch v := v.(type) {
	case nil, int64, float64:
	case string:
		if _, err := resource.ParseQuantity(strings.TrimSpace(v)); err != nil {
			c.report(p, "is not a quantity such as 500m, 2 or 16Gi")
		}
	default:
		c.report(p, "is %s, and has to be a quantity such as 500m, 2 or 16Gi", article(kindOf(v)))
	}
}

// mayLack reports a field that is required by its schema, and that an API server
// does without: it fills it in, or takes its zero value.
func (c *check) mayLack(s *spec.Schema, name, field string) bool {
	property := s.Properties[field]
	if property.Default != nil && c.custom {
		return true
	}
	if c.custom {
		return false
	}
	short := name[strings.LastIndex(name, ".")+1:]
	return expected(&property) == boolean || slices.Contains(lacking[short], field)
}

// lacking are fields that no server misses, by the last part of their type's
// name: their zero values are good, or filled in.
var lacking = map[string][]string{
	"CSIDriver":                   {"spec"},
	"ControllerRevision":          {"revision"},
	"Event":                       {"metadata", "involvedObject"},
	"ForNode":                     {"name"},
	"ForZone":                     {"name"},
	"HTTPHeader":                  {"value"},
	"ISCSIPersistentVolumeSource": {"lun"},
	"ISCSIVolumeSource":           {"lun"},
	"LimitRangeSpec":              {"limits"},
	"PodFailurePolicy":            {"rules"},
	"PreferredSchedulingTerm":     {"preference"},
	"SleepAction":                 {"seconds"},
	"TokenRequest":                {"audience"},
	"Sysctl":                      {"value"},
}
