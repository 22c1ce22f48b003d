package modules

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

var settingsSchema = newSchema(
	[]string{"required_version", "experiments", "language"},
	map[string][]string{
		"required_providers": nil, "backend": {"type"}, "cloud": nil,
		"provider_meta": {"provider"}, "encryption": nil, "state_store": {"type"},
	},
)

// settings reads a terraform or stoke block. There may be several; each
// thing in them may be said once.
func (d *decoder) settings(block *hcl.Block) {
	content, diags := settingsSchema.all(block.Body)
	d.diags = append(d.diags, diags...)
	s := &d.module.Settings
	if attr := content.Attributes["required_version"]; attr != nil {
		if text := d.str(attr); text != "" {
			s.RequiredVersion = append(s.RequiredVersion, VersionConstraint{Text: text, Range: attr.Expr.Range()})
		}
	}
	for _, name := range []string{"experiments", "language"} {
		if attr := content.Attributes[name]; attr != nil {
			d.fail(&attr.NameRange, "Setting not supported", "There are no language editions or experiments here. Remove the argument %q.", name)
		}
	}
	for _, b := range content.Blocks {
		switch b.Type {
		case "required_providers":
			d.requiredProviders(b)
		case "backend":
			if first := s.Backend; first != nil {
				d.duplicate("block", "backend", b.DefRange, first.Range)
				continue
			}
			s.Backend = &Backend{Type: b.Labels[0], Body: b.Body, Range: b.DefRange}
		default:
			d.fail(&b.DefRange, "Block not supported yet", "Blocks of type %q come with a later version of stoke.", b.Type)
		}
	}
}

func (d *decoder) requiredProviders(block *hcl.Block) {
	attrs, diags := block.Body.JustAttributes()
	d.diags = append(d.diags, diags...)
	for name, attr := range attrs {
		if !d.name("provider", name, attr.NameRange) {
			continue
		}
		if first, ok := d.module.Settings.RequiredProviders[name]; ok {
			d.duplicate("required provider", name, attr.NameRange, first.Range)
			continue
		}
		required := RequiredProvider{Range: attr.NameRange}
		if text, diags := attr.Expr.Value(nil); !diags.HasErrors() && text.Type() == cty.String && !text.IsNull() {
			required.Version = text.AsString()
		} else {
			d.requirement(name, attr, &required)
		}
		d.module.Settings.RequiredProviders[name] = required
	}
}

// requirement reads { source = "…", version = "…", configuration_aliases = […] }.
func (d *decoder) requirement(name string, attr *hcl.Attribute, required *RequiredProvider) {
	pairs, diags := hcl.ExprMap(attr.Expr)
	if diags.HasErrors() {
		d.fail(attr.Expr.Range().Ptr(), "Invalid provider requirement",
			"Write an object in braces: %s = { source = \"NAMESPACE/%s\", version = \"…\" }.", name, name)
		return
	}
	for _, pair := range pairs {
		key, _ := pair.Key.Value(nil)
		if key == cty.NilVal || key.Type() != cty.String || key.IsNull() || !key.IsKnown() {
			d.fail(pair.Key.Range().Ptr(), "Invalid provider requirement", "The names in it are source, version and configuration_aliases.")
			continue
		}
		switch key.AsString() {
		case "source":
			required.Source = d.text("source", pair.Value)
		case "version":
			required.Version = d.text("version", pair.Value)
		case "configuration_aliases":
			exprs, diags := hcl.ExprList(pair.Value)
			d.diags = append(d.diags, diags...)
			for _, expr := range exprs {
				if ref, ok := d.providerRef(expr); ok {
					required.Aliases = append(required.Aliases, ref.Key())
				}
			}
		default:
			d.fail(pair.Key.Range().Ptr(), "Unsupported argument", "A provider requirement has no argument %q.%s",
				key.AsString(), didYouMean(key.AsString(), []string{"source", "version", "configuration_aliases"}))
		}
	}
}

// text reads a literal string within an object.
func (d *decoder) text(name string, expr hcl.Expression) string {
	v, diags := expr.Value(nil)
	if !diags.HasErrors() {
		if v, err := convert.Convert(v, cty.String); err == nil && !v.IsNull() && v.IsKnown() {
			return v.AsString()
		}
	}
	d.fail(expr.Range().Ptr(), "Literal value required", "%q must be a plain string.", name)
	return ""
}
