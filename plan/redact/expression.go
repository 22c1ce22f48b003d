package redact

import (
	"github.com/hashicorp/hcl/v2"
)

// AddReference takes in what is sensitive in what a reference leads to, as far
// as there are values, and in the object that it is a part of: one attribute
// may repeat another one, as the output of terraform_data does.
func (s *Secrets) AddReference(t hcl.Traversal, ctx *hcl.EvalContext) {
	for n := len(t); n > 0; n-- {
		v, diags := t[:n].TraverseAbs(ctx)
		if diags.HasErrors() {
			continue
		}
		s.AddValue(v, true)
		for _, whole := range PartOf(t[:n]) {
			if v, diags := whole.TraverseAbs(ctx); !diags.HasErrors() {
				s.AddValue(v, true)
			}
		}
		return
	}
}

// PartOf is what a reference leads to a part of: references to objects or less,
// the longest first, and not to all instances or to all objects of a type.
func PartOf(t hcl.Traversal) []hcl.Traversal {
	object := 2 // steps to it: its type and its name
	if t.RootName() == "data" {
		object = 3
	}
	if len(t) > object {
		if _, key := t[object].(hcl.TraverseIndex); key {
			object++
		}
	}
	var wholes []hcl.Traversal
	for n := len(t) - 1; n >= object; n-- {
		wholes = append(wholes, t[:n])
	}
	return wholes
}

// WithoutSecrets takes out of diagnostics the sensitive values of what their
// expressions refer to: a function that fails may say with what.
func WithoutSecrets(diags hcl.Diagnostics) hcl.Diagnostics {
	for i, d := range diags {
		if d == nil || d.Expression == nil || d.EvalContext == nil {
			continue
		}
		var s Secrets
		for _, traversal := range d.Expression.Variables() {
			s.AddReference(traversal, d.EvalContext)
		}
		if s.texts == nil {
			continue
		}
		if detail := s.Redact(d.Detail); detail != d.Detail {
			clean := *d
			clean.Detail = detail
			diags[i] = &clean
		}
	}
	return diags
}
