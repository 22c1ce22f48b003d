package connect

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
)

// MachineArgument is the required argument of a resource that works on one
// machine: the `ssh` of a metal_host. It is validated as soon as it is known.
func MachineArgument(description string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{
		Required: true, Description: description,
		Attributes: sshAttributes(kind{}),
		Validators: []validator.Object{machineValidator{}},
	}
}

// MachinesArgument is the required argument of a resource that works on several
// machines. Their validator asks for address and host key: the framework takes
// required attributes of list elements that are unknown as a whole for missing.
func MachinesArgument(description string) schema.ListNestedAttribute {
	return schema.ListNestedAttribute{
		Required: true, Description: description,
		NestedObject: schema.NestedAttributeObject{Attributes: sshAttributes(kind{listed: true}), Validators: []validator.Object{machineValidator{}}},
	}
}

// MachineResult is the computed attribute of a resource that is a machine.
func MachineResult(description string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{Computed: true, Description: description, Attributes: sshAttributes(kind{computed: true})}
}

// MachineTypes is the type of the value that leads to one machine, in the
// framework's terms.
func MachineTypes() map[string]attr.Type {
	return MachineArgument("").GetType().(types.ObjectType).AttrTypes
}

// MachineFromObject reads an argument. known is false when any part of it isn't
// known yet.
func MachineFromObject(ctx context.Context, o types.Object) (s SSH, known bool) {
	if v, err := o.ToTerraformValue(ctx); err != nil || o.IsNull() || !v.IsFullyKnown() {
		return SSH{}, false
	}
	w := new(wireSSH)
	return MustConvert(w, o.As(ctx, w, basetypes.ObjectAsOptions{})).ssh(), true
}

// Object is the value as the framework stores it.
func (s SSH) Object(ctx context.Context) (types.Object, diag.Diagnostics) {
	return types.ObjectValueFrom(ctx, MachineTypes(), wireOfSSH(s))
}

// machineValidator validates what leads to a machine, once all is known.
type machineValidator struct{}

func (machineValidator) Description(context.Context) string {
	return "The value leads to a machine whose host key is known."
}

func (v machineValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (machineValidator) ValidateObject(ctx context.Context, req validator.ObjectRequest, resp *validator.ObjectResponse) {
	if s, known := MachineFromObject(ctx, req.ConfigValue); known {
		resp.Diagnostics.Append(s.Validate(req.Path)...)
	}
}
