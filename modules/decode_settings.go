package modules

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

var settingsSchema = newSchema(
	[]string{"required_version", "experiments", "language"},
	map[string][]string{
		"required_providers": nil, "backend": {"type"}, "cloud": nil,
		"provider_meta": {"provider"}, "encryption": nil, "state_store": {"type"},
	},
)

// settings reads a terraform or stoke block. There may be several; each
// thing in them may be said once. One in an override file replaces the
// version and where the state is kept, and each required provider by itself.
func (d *decoder) settings(block *hcl.Block, overriding bool) {
	content, diags := settingsSchema.all(block.Body)
	d.diags = append(d.diags, diags...)
	s := &d.module.Settings
	if attr := content.Attributes["required_version"]; attr != nil {
		if overriding {
			s.RequiredVersion = nil
		}
		if text := d.str(attr); text != "" {
			s.RequiredVersion = append(s.RequiredVersion, VersionConstraint{Text: text, Range: attr.Expr.Range()})
		}
	}
	d.editions(content.Attributes)
	var kept *hcl.Block // where this block keeps the state
	for _, b := range content.Blocks {
		switch b.Type {
		case "required_providers":
			d.requiredProviders(b, overriding)
		case "backend", "cloud":
			if overriding && kept == nil {
				s.Backend, d.cloud = nil, nil
			}
			kept = b
			d.keep(b)
		case "provider_meta":
			d.fail(&b.DefRange, "Provider takes no metadata",
				"The provider %q has no use for a provider_meta block. Remove the block.", b.Labels[0])
		default:
			d.fail(&b.DefRange, "Block not supported", "Stoke has no %s block in its settings. Remove the block.", b.Type)
		}
	}
}

// sniffVersion finds required_version in a file with mistakes: they may be
// what another version of the language is like.
func (d *decoder) sniffVersion(body hcl.Body) {
	content, _, _ := body.PartialContent(&hcl.BodySchema{Blocks: []hcl.BlockHeaderSchema{{Type: "terraform"}}})
	for _, block := range content.Blocks {
		inner, _, _ := block.Body.PartialContent(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "required_version"}}})
		attr := inner.Attributes["required_version"]
		if attr == nil {
			continue
		}
		if text, diags := attr.Expr.Value(nil); !diags.HasErrors() && text.Type() == cty.String && text.IsWhollyKnown() && !text.IsNull() {
			s := &d.module.Settings
			s.RequiredVersion = append(s.RequiredVersion, VersionConstraint{Text: text.AsString(), Range: attr.Expr.Range()})
		}
	}
}

// editions refuses what would choose another edition of the language.
func (d *decoder) editions(attrs hcl.Attributes) {
	if attr := attrs["experiments"]; attr != nil {
		if list, diags := hcl.ExprList(attr.Expr); diags.HasErrors() || len(list) > 0 {
			d.fail(&attr.NameRange, "Experiments are not available", "No experimental features can be turned on. Remove the argument \"experiments\".")
		}
	}
	if attr := attrs["language"]; attr != nil && hcl.ExprAsKeyword(attr.Expr) != "TF2021" {
		d.fail(&attr.NameRange, "Unknown edition of the language",
			"The only edition is TF2021, which needs no declaration. Remove the argument \"language\", or use a stoke that has the other one.")
	}
}

// keep remembers where the state is kept, which can be said once.
func (d *decoder) keep(block *hcl.Block) {
	s := &d.module.Settings
	switch {
	case s.Backend != nil:
		d.duplicate("block", block.Type, block.DefRange, s.Backend.Range)
	case d.cloud != nil:
		d.duplicate("block", block.Type, block.DefRange, d.cloud.DefRange)
	case block.Type == "cloud":
		d.cloud = block
	default:
		s.Backend = &Backend{Type: block.Labels[0], Body: block.Body, Range: block.DefRange}
	}
}

// checkCloud refuses a cloud block, unless an override has replaced it.
func (d *decoder) checkCloud() {
	if d.cloud != nil {
		d.fail(&d.cloud.DefRange, "HCP Terraform is not supported",
			"Stoke runs where it is started and keeps its state in a backend. Replace the cloud block by a backend block, such as backend \"gcs\" or backend \"s3\"; in a copy that must stay as it is, do so in a file that ends in _override.tf.")
	}
}
