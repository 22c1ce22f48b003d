package modules

import (
	"fmt"
	"strings"

	goversion "github.com/hashicorp/go-version"
	"github.com/hashicorp/hcl/v2"
	tfaddr "github.com/hashicorp/terraform-registry-address"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
)

func (d *decoder) requiredProviders(block *hcl.Block, overriding bool) {
	if first := d.required; first != nil && !overriding {
		d.fail(&block.DefRange, "Duplicate required_providers block",
			"A module has one block required_providers, and there is one at %s. Put everything into that one.", first.DefRange)
		return
	}
	if !overriding {
		d.required = block
	}
	attrs, diags := block.Body.JustAttributes()
	d.diags = append(d.diags, diags...)
	for name, attr := range attrs {
		if !d.providerName(name, attr.NameRange) {
			continue
		}
		required := RequiredProvider{Range: attr.NameRange}
		if text, diags := attr.Expr.Value(nil); !diags.HasErrors() && text.Type() == cty.String && !text.IsNull() {
			required.Version = text.AsString()
			d.constraint(required.Version, attr.Expr.Range())
		} else {
			d.requirement(name, attr, &required)
		}
		d.module.Settings.RequiredProviders[name] = required
	}
}

// providerName checks the local name of a provider, which is stricter than
// other names.
func (d *decoder) providerName(name string, at hcl.Range) bool {
	normal, err := tfaddr.ParseProviderPart(name)
	if err == nil && normal == name {
		return true
	}
	advice := ""
	if err == nil {
		advice = fmt.Sprintf(" Write %q.", normal)
	}
	d.fail(&at, "Invalid provider name",
		"%q cannot be the name of a provider. Names of providers consist of lower-case letters, digits and dashes inside.%s", clip(name), advice)
	return false
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
			if required.Source = d.text("source", pair.Value); required.Source != "" {
				d.providerSource(required.Source, pair.Value.Range())
			}
		case "version":
			if required.Version = d.text("version", pair.Value); required.Version != "" {
				d.constraint(required.Version, pair.Value.Range())
			}
		case "configuration_aliases":
			d.configurationAliases(name, pair.Value, required)
		default:
			d.fail(pair.Key.Range().Ptr(), "Unsupported argument", "A provider requirement has no argument %q.%s",
				key.AsString(), didYouMean(key.AsString(), []string{"source", "version", "configuration_aliases"}))
		}
	}
}

func (d *decoder) providerSource(source string, at hcl.Range) {
	if _, err := tfaddr.ParseProviderSource(source); err != nil {
		d.fail(&at, "Invalid provider source",
			"%q is not a source of a provider. It has the form NAMESPACE/NAME, such as stokehq/train, with the registry's host in front where that is not registry.terraform.io.", clip(source))
	}
}

// constraint checks that a version constraint can be read.
func (d *decoder) constraint(text string, at hcl.Range) bool {
	if _, err := goversion.NewConstraint(text); err == nil || strings.TrimSpace(text) == "" {
		return true
	}
	d.fail(&at, "Invalid version constraint",
		"%q cannot be read as a version constraint, such as \"~> 1.0\" or \">= 1.2, < 2.0\".", clip(text))
	return false
}

func (d *decoder) configurationAliases(name string, list hcl.Expression, required *RequiredProvider) {
	exprs, diags := hcl.ExprList(list)
	d.diags = append(d.diags, diags...)
	for _, expr := range exprs {
		ref, ok := d.providerRef(expr)
		switch {
		case !ok:
		case ref.Name != name || ref.Alias == "":
			d.fail(expr.Range().Ptr(), "Invalid configuration alias",
				"An alias of this provider is written as %s.ALIAS.", name)
		default:
			required.Aliases = append(required.Aliases, ref.Key())
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
