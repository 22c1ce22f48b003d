package gke

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// An attribute is one of these: required; servers, where what is left out is the
// server's choice and stays as it is; optional, where leaving out takes away what
// was there; computed. Fixed ones cannot be changed: another value replaces.

func requiredFixed(description string) schema.StringAttribute {
	return schema.StringAttribute{Required: true, Description: description, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()}}
}

func servers(description string) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, Computed: true, Description: description, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}}
}

func serversFixed(description string) schema.StringAttribute {
	a := servers(description)
	a.PlanModifiers = append(a.PlanModifiers, stringplanmodifier.RequiresReplace())
	return a
}

// referenceAttribute is an argument that names another thing: another thing replaces, the same one
// by other words does not. A name alone is one of a project, which the first of some
// arguments says that is given; "project" when there are none.
func referenceAttribute(a schema.StringAttribute, same func(was, is naming) bool, projects ...string) schema.StringAttribute {
	if projects == nil {
		projects = []string{"project"}
	}
	a.PlanModifiers = append(a.PlanModifiers, sameThing{same, projects}, stringplanmodifier.RequiresReplace())
	return a
}

func serversNumber(description string) schema.Int64Attribute {
	return schema.Int64Attribute{Optional: true, Computed: true, Description: description, PlanModifiers: []planmodifier.Int64{int64planmodifier.UseStateForUnknown()}}
}

func serversNumberFixed(description string) schema.Int64Attribute {
	a := serversNumber(description)
	a.PlanModifiers = append(a.PlanModifiers, int64planmodifier.RequiresReplace())
	return a
}

func serversFlag(description string) schema.BoolAttribute {
	return schema.BoolAttribute{Optional: true, Computed: true, Description: description, PlanModifiers: []planmodifier.Bool{boolplanmodifier.UseStateForUnknown()}}
}

func serversFlagFixed(description string) schema.BoolAttribute {
	a := serversFlag(description)
	a.PlanModifiers = append(a.PlanModifiers, boolplanmodifier.RequiresReplace())
	return a
}

func serversSet(description string) schema.SetAttribute {
	return schema.SetAttribute{Optional: true, Computed: true, ElementType: types.StringType, Description: description, PlanModifiers: []planmodifier.Set{setplanmodifier.UseStateForUnknown()}}
}

func serversSetFixed(description string) schema.SetAttribute {
	a := serversSet(description)
	a.PlanModifiers = append(a.PlanModifiers, setplanmodifier.RequiresReplace())
	return a
}

func optionalSet(description string) schema.SetAttribute {
	return schema.SetAttribute{Optional: true, ElementType: types.StringType, Description: description}
}

func optionalMap(description string) schema.MapAttribute {
	return schema.MapAttribute{Optional: true, ElementType: types.StringType, Description: description}
}

func computed(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, Description: description, PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()}}
}

// settles keeps a status. Of an object that an apply has begun and not seen finished
// it is not known, which makes the plan an update that finishes it; one whose create
// ended badly is made anew.
type settles struct{ kind kind }

func (s settles) Description(context.Context) string {
	return "An object that is not finished is finished by an update."
}

func (s settles) MarkdownDescription(ctx context.Context) string { return s.Description(ctx) }

// PlanModifyString is that of planmodifier.String.
func (s settles) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	begun, status := readBegun(ctx, req.Private), req.StateValue.ValueString()
	switch {
	case req.State.Raw.IsNull():
	case status == "STOPPING", begun == begunCreate && slices.Contains(s.kind.failed, status): // another one is made when it is gone
		resp.PlanValue, resp.RequiresReplace = types.StringUnknown(), true
	case begun != "" && slices.Contains(s.kind.unfinished, status):
		resp.PlanValue = types.StringUnknown()
	default:
		resp.PlanValue = req.StateValue
	}
}
