package gke

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stokehq/stoke/providers/gke/cloud"
	"github.com/stokehq/stoke/runtime/pattern"
)

// The limits of Google on names and labels. Checked here, because the API
// reports only the first fault, in the middle of an apply.
var (
	objectName = pattern.New(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	labelName  = pattern.New(`^[\p{Ll}\p{Lo}][\p{Ll}\p{Lo}\p{N}_-]{0,62}$`)
	labelValue = pattern.New(`^[\p{Ll}\p{Lo}\p{N}_-]{0,63}$`)
)

// requiredName is the name of an object, of at most so many letters.
func requiredName(description string, most int) schema.StringAttribute {
	a := requiredFixed(description)
	a.Validators = []validator.String{words{most: most}}
	return a
}

// optionalLabels are labels of an object in Google Cloud.
func optionalLabels(description string) schema.MapAttribute {
	a := optionalMap(description)
	a.Validators = []validator.Map{words{}}
	return a
}

// nodeLabels are labels of nodes in Kubernetes.
func nodeLabels() schema.MapAttribute {
	a := optionalMap("Labels of the nodes in Kubernetes.")
	a.Validators = []validator.Map{words{kubernetes: true}}
	return a
}

// tagSet is a set of network tags, which pools have and firewall rules name.
func tagSet(description string) schema.SetAttribute {
	a := optionalSet(description)
	a.Validators = []validator.Set{words{most: 63}}
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
	*h.labels = mapOrNull(*h.labels, c.DeclaredLabels(there, declared))
	*h.allLabels = mapOrNull(types.MapNull(types.StringType), c.Effective(there, declared))
}

// words checks names, labels and tags.
type words struct {
	most       int  // letters of a name
	kubernetes bool // labels are those of Kubernetes
}

func (words) Description(context.Context) string { return "Google takes some letters only." }

func (w words) MarkdownDescription(ctx context.Context) string { return w.Description(ctx) }

// ValidateString is that of validator.String.
func (w words) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if isGiven(req.ConfigValue) {
		w.checkName(req.Path, req.ConfigValue.ValueString(), &resp.Diagnostics)
	}
}

// ValidateSet is that of validator.Set.
func (w words) ValidateSet(_ context.Context, req validator.SetRequest, resp *validator.SetResponse) {
	for _, v := range req.ConfigValue.Elements() {
		if s, ok := v.(types.String); ok && isGiven(s) {
			w.checkName(req.Path, s.ValueString(), &resp.Diagnostics)
		}
	}
}

func (w words) checkName(at path.Path, name string, diags *diag.Diagnostics) {
	if len(name) > w.most || !objectName.MatchString(name) {
		diags.AddAttributeError(at, "Not a name", fmt.Sprintf("Google refuses %q: "+
			"write up to %d small letters, digits and hyphens, a letter first, and no hyphen at the end.", name, w.most))
	}
}

// checkNodeLabel checks a label, or a taint, by the rules of Kubernetes.
func checkNodeLabel(at path.Path, key, value string, diags *diag.Diagnostics) {
	if wrong := validation.IsQualifiedName(key); len(wrong) > 0 {
		diags.AddAttributeError(at, "Not a key of Kubernetes", fmt.Sprintf("Kubernetes refuses %q: %s.", key, strings.Join(wrong, "; ")))
	}
	if wrong := validation.IsValidLabelValue(value); len(wrong) > 0 {
		diags.AddAttributeError(at, "Not a value of Kubernetes", fmt.Sprintf("Kubernetes refuses %q: %s.", value, strings.Join(wrong, "; ")))
	}
}

// ValidateMap is that of validator.Map.
func (w words) ValidateMap(_ context.Context, req validator.MapRequest, resp *validator.MapResponse) {
	for name, v := range req.ConfigValue.Elements() {
		if s, ok := v.(types.String); ok && w.kubernetes {
			checkNodeLabel(req.Path.AtMapKey(name), name, s.ValueString(), &resp.Diagnostics)
		}
	}
	if w.kubernetes {
		return
	}
	for name, v := range req.ConfigValue.Elements() {
		value := ""
		if s, ok := v.(types.String); ok {
			value = s.ValueString()
		}
		checkLabel(req.Path, name, value, &resp.Diagnostics)
	}
}

// checkLabel checks a label of an object in Google Cloud.
func checkLabel(at path.Path, name, value string, diags *diag.Diagnostics) {
	if !labelName.MatchString(name) {
		diags.AddAttributeError(at, "Not the name of a label", fmt.Sprintf("Google refuses %q: "+
			"write up to 63 small letters, digits, hyphens and underscores, a letter first.", name))
	}
	if !labelValue.MatchString(value) {
		diags.AddAttributeError(at.AtMapKey(name), "Not the value of a label", fmt.Sprintf("Google refuses %q: "+
			"write up to 63 small letters, digits, hyphens and underscores.", value))
	}
}
