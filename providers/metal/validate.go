package metal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

type oneOf []string

func (o oneOf) Description(context.Context) string {
	return "One of " + strings.Join(o, ", ") + "."
}

func (o oneOf) MarkdownDescription(ctx context.Context) string { return o.Description(ctx) }

func (o oneOf) ValidateString(_ context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() || slices.Contains(o, req.ConfigValue.ValueString()) {
		return
	}
	detail := fmt.Sprintf("%q is not one of %s.", req.ConfigValue.ValueString(), strings.Join(o, ", "))
	if len(o) == 1 {
		detail = fmt.Sprintf("It is %q; omit it where stoke should not touch that; this is %q.", o[0], req.ConfigValue.ValueString())
	}
	resp.Diagnostics.AddAttributeError(req.Path, "Invalid value", detail)
}

// validateWay checks the connection arguments, and reports faults at their
// paths.
func (m *hostModel) validateWay(diags *diag.Diagnostics) {
	way, known := m.way()
	if !known {
		return
	}
	for _, d := range way.Validate(path.Empty()) {
		at := path.Empty()
		if on, ok := d.(diag.DiagnosticWithPath); ok {
			at = on.Path()
		}
		steps := at.Steps()
		switch {
		case at.Equal(path.Root("host_key")) && (m.HostKey.IsNull() || m.HostKey.IsUnknown()):
			continue // nothing that can be looked at
		case len(steps) == 3 && steps[0].Equal(path.PathStepAttributeName("hops")):
			last, _ := steps.LastStep()
			i, _ := steps[1].(path.PathStepElementKeyInt)
			name, _ := last.(path.PathStepAttributeName)
			at = path.Root("bastion").AtListIndex(int(i)).AtName(string(name))
		}
		diags.AddAttributeError(at, d.Summary(), d.Detail())
	}
}

type partialError struct {
	argument string
	err      error
}

// addPartly reports what is wrong with several arguments, each at its own; whole
// is what is wrong with them together, where each is right by itself.
func addPartly(diags *diag.Diagnostics, summary string, whole error, parts ...partialError) {
	if whole == nil {
		return
	}
	before := diags.ErrorsCount()
	for _, p := range parts {
		if p.err != nil {
			diags.AddAttributeError(path.Root(p.argument), summary, list(p.err))
		}
	}
	if diags.ErrorsCount() == before {
		diags.AddError(summary, list(whole))
	}
}
