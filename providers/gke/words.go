package gke

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/gke/cloud"
	"github.com/stokehq/stoke/runtime/pattern"
)

// What Google takes for names and labels, which it says of the first one that is
// wrong, in the middle of an apply.
var (
	objectName = pattern.New(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	labelName  = pattern.New(`^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}$`)
	labelValue = pattern.New(`^[\p{Ll}\p{Lo}\p{N}_-]{0,63}$`)
)

// requiredName is the name of an object.
func requiredName(description string) schema.StringAttribute {
	a := requiredFixed(description)
	a.Validators = []validator.String{words{}}
	return a
}

// optionalLabels are labels of something in Google Cloud.
func optionalLabels() schema.MapAttribute {
	a := optionalMap("Labels. Google's own are left alone.")
	a.Validators = []validator.Map{words{}}
	return a
}

// planLabels plans all labels of an object, as far as they are known.
func (h head) planLabels(c *cloud.Cloud) {
	if h.allLabels == nil {
		return
	}
	*h.allLabels = types.MapUnknown(types.StringType)
	if v, err := h.labels.ToTerraformValue(context.Background()); err == nil && v.IsFullyKnown() {
		*h.allLabels = mapOrNull(types.MapNull(types.StringType), c.Marked(texts(*h.labels), ""))
	}
}

// readLabels sets the labels of an object that has these.
func (h head) readLabels(c *cloud.Cloud, there map[string]string) {
	declared := texts(*h.labels)
	*h.labels = mapOrNull(*h.labels, c.Declared(there, declared))
	*h.allLabels = mapOrNull(types.MapNull(types.StringType), c.Effective(there, declared))
}

// words looks at names and labels.
type words struct{}

func (words) Description(context.Context) string { return "Google takes some letters only." }

func (w words) MarkdownDescription(ctx context.Context) string { return w.Description(ctx) }

// ValidateString is that of validator.String.
func (words) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if given(req.ConfigValue) && !objectName.MatchString(req.ConfigValue.ValueString()) {
		resp.Diagnostics.AddAttributeError(req.Path, "Not a name", fmt.Sprintf("%q is none that Google takes: write up to 63 small letters, digits and hyphens, a letter first, and no hyphen at the end.", req.ConfigValue.ValueString()))
	}
}

// ValidateMap is that of validator.Map.
func (words) ValidateMap(_ context.Context, req validator.MapRequest, resp *validator.MapResponse) {
	for name, v := range req.ConfigValue.Elements() {
		if !labelName.MatchString(name) {
			resp.Diagnostics.AddAttributeError(req.Path, "Not the name of a label", fmt.Sprintf("%q is none that Google takes: write up to 63 small letters, digits, hyphens and underscores, a letter first.", name))
		}
		if s, ok := v.(types.String); ok && given(s) && !labelValue.MatchString(s.ValueString()) {
			resp.Diagnostics.AddAttributeError(req.Path.AtMapKey(name), "Not the value of a label", fmt.Sprintf("%q is none that Google takes: write up to 63 small letters, digits, hyphens and underscores.", s.ValueString()))
		}
	}
}
