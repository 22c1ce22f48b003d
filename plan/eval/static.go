package eval

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/lang"
)

// foresee holds a reference against the declaration and the schema of the
// resource that it names. An attribute that no object of the type can have is
// an error also in try and can, which only catch faults in values.
func (b *contextBuilder) foresee(s lang.Resource, ref lang.Reference) {
	r, rest := b.scope.module.Resource(s), ref.Remaining
	if r == nil || len(rest) == 0 {
		return
	}
	if lacksKey(r, ref) {
		b.fail(ref, "Missing resource instance key", missingKey(s, r.Repeated()))
		return
	}
	if _, index := rest[0].(hcl.TraverseIndex); index {
		if r.Repeated() == "" {
			b.fail(ref, "Unexpected resource instance key",
				fmt.Sprintf("The resource %s has neither \"count\" nor \"for_each\" set, so there is one object of it, which has no key. Remove the brackets.", s))
			return
		}
		rest = rest[1:]
	}
	if len(rest) == 0 || !b.ok {
		return // and where the resource is wrong, its type may be
	}
	ty, ok := r.Type(b.task)
	if !ok {
		return
	}
	if attr, ok := rest[0].(hcl.TraverseAttr); ok && !ty.Implied.HasAttribute(attr.Name) {
		detail := fmt.Sprintf("Objects of the type %s have no attribute named %q.", s.Type, attr.Name)
		if near := Nearest(attr.Name, keysOf(ty.Implied.AttributeTypes())); near != "" {
			detail += fmt.Sprintf(" Did you mean %q?", near)
		}
		b.fail(ref, "Unsupported attribute", detail)
		return
	}
	if _, diags := rest.TraverseRel(cty.UnknownVal(ty.Implied)); diags.HasErrors() {
		b.task.Report(diags...)
		b.ok = false
	}
}

// lacksKey reports whether a reference asks a repeated resource for what only
// its instances have. Keys of for_each that look like attributes are treated
// alike.
func lacksKey(r *Resource, ref lang.Reference) bool {
	if r.Repeated() == "" || len(ref.Remaining) == 0 {
		return false
	}
	_, attr := ref.Remaining[0].(hcl.TraverseAttr)
	return attr
}

func missingKey(s lang.Resource, argument string) string {
	key, all := "count.index", s.String()+"[*]"
	if argument == "for_each" {
		key, all = "each.key", "values("+s.String()+")"
	}
	return fmt.Sprintf("The resource %[1]s has %[2]q set, so only its instances have attributes. Name one of them, such as %[1]s[%[3]s] in a block that is repeated in the same way; all of them are %[4]s.",
		s, argument, key, all)
}
