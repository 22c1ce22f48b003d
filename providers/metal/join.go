package metal

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/stokehq/stoke/providers/connect"
)

// joinModel is what a machine has to know to join a cluster: the attribute join
// of metal_cluster, the argument cluster of metal_node. It has no token: each
// join makes its own, on the control plane.
type joinModel struct {
	Endpoint       types.String `tfsdk:"endpoint"`        // HOST:PORT of the API server
	CAHash         types.String `tfsdk:"ca_hash"`         // as kubeadm.CAHash has it
	Version        types.String `tfsdk:"version"`         // the full one, such as "1.36.3"
	ControlPlane   types.Object `tfsdk:"control_plane"`   // the way to its machine
	MaxUnavailable types.Int64  `tfsdk:"max_unavailable"` // how many nodes may be unavailable at a time; null: as each host says
	KubeletHash    types.String `tfsdk:"kubelet_hash"`    // of the declared configuration of all kubelets, by kubeadm.Hash
}

// joinTypes is the type of that value.
func joinTypes() map[string]attr.Type {
	return map[string]attr.Type{
		"endpoint":        types.StringType,
		"ca_hash":         types.StringType,
		"version":         types.StringType,
		"control_plane":   types.ObjectType{AttrTypes: connect.MachineTypes()},
		"max_unavailable": types.Int64Type,
		"kubelet_hash":    types.StringType,
	}
}

func (j joinModel) object(ctx context.Context) (types.Object, diag.Diagnostics) {
	return types.ObjectValueFrom(ctx, joinTypes(), j)
}

// joinFrom reads an argument. Parts of it may be unknown; known is false where
// all of it is, or it is null.
func joinFrom(ctx context.Context, o types.Object) (j joinModel, known bool) {
	if o.IsNull() || o.IsUnknown() {
		return j, false
	}
	return *connect.MustConvert(&j, o.As(ctx, &j, basetypes.ObjectAsOptions{})), true
}
