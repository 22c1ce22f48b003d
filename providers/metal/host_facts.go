package metal

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/metal/facts"
	"github.com/stokehq/stoke/providers/metal/host"
)

type factsModel struct {
	Facts         types.Object `tfsdk:"facts"`
	AllowCgroupV1 types.Bool   `tfsdk:"allow_cgroup_v1"`
}

// factsSection observes the facts of the machine and checks whether it is fit
// for its role. It changes nothing. It is the last section, so that the facts
// are read after the changes of an apply.
type factsSection struct{ settings *settings }

func (factsSection) attributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"facts": schema.ObjectAttribute{
			Computed: true, AttributeTypes: factsTypes(),
			Description: "Facts of the machine: operating system, kernels, processors, memory, disks, network, GPUs. " +
				"Values that differ from one look to the next (boot_id, addresses of docker0 and other such bridges, free " +
				"space, listeners, who logged in, an offset of the clock below 5 s) are null here: the data source " +
				"metal_host_facts has them.",
		},
		"allow_cgroup_v1": schema.BoolAttribute{
			Optional: true, Description: "Let a node have control groups of version 1, which the kubelet refuses from " +
				"1.35 on without a setting for them.",
		},
	}
}

func (factsSection) plan(context.Context, *hostModel, *hostModel, *diag.Diagnostics) {}

func (factsSection) validate(context.Context, *hostModel, *diag.Diagnostics) {}

func (s factsSection) observe(ctx context.Context, m host.Machine, _, into *hostModel) error {
	f, err := s.settings.gather(ctx, m)
	if err != nil {
		return err
	}
	zeros, o, diags := recorded(ctx, f)
	if !into.Facts.Equal(zeros) { // the format of earlier versions, not a change of the machine
		into.Facts = o
	}
	return failed(diags)
}

// recorded are the facts as the state has them: what changes from one look to the
// next, or with who looks, is null there. zeros has 0 and nothing in its place.
func recorded(ctx context.Context, f facts.Facts) (zeros, o types.Object, diags diag.Diagnostics) {
	f = f.Stable()
	zeros, diags = factsObject(ctx, f)
	if diags.HasError() {
		return zeros, zeros, diags
	}
	all := zeros.Attributes()
	all["boot_id"] = types.StringNull()
	all["listeners"] = types.ListNull(all["listeners"].(types.List).ElementType(ctx))
	all["filesystems"] = withoutFields(ctx, all["filesystems"], "free")
	all["space"] = withoutFields(ctx, all["space"], "free", "free_inodes")
	all["clock"] = withoutFields(ctx, all["clock"], "resolution")
	all["sudo"] = withoutFields(ctx, all["sudo"], "user") // of the connection, not of the machine
	if f.Clock.Offset == 0 {
		all["clock"] = withoutFields(ctx, all["clock"], "offset")
	}
	o, diags = types.ObjectValue(factsTypes(), all)
	return zeros, o, diags
}

// withoutFields returns an object, or a list of objects, with some fields set to
// null.
func withoutFields(ctx context.Context, v attr.Value, names ...string) attr.Value {
	switch v := v.(type) {
	case types.List:
		all := v.Elements()
		for i := range all {
			all[i] = withoutFields(ctx, all[i], names...)
		}
		return types.ListValueMust(v.ElementType(ctx), all)
	case types.Object:
		fields := v.Attributes()
		for _, name := range names {
			switch fields[name].(type) {
			case types.Int64:
				fields[name] = types.Int64Null()
			case types.Float64:
				fields[name] = types.Float64Null()
			case types.String:
				fields[name] = types.StringNull()
			}
		}
		return types.ObjectValueMust(v.AttributeTypes(ctx), fields)
	}
	return v
}

func (factsSection) undoing(context.Context, host.Machine, *host.Record, *hostModel) ([]host.Change, error) {
	return nil, nil
}

// changes reports all obstacles, and returns no changes.
func (s factsSection) changes(ctx context.Context, m host.Machine, want *hostModel, diags *diag.Diagnostics) []host.Change {
	f, err := s.settings.gather(ctx, m)
	if err != nil {
		diags.AddWarning("Machine cannot be examined", err.Error()+".")
		return nil
	}
	needs := want.needs()
	if f.Node.Joined && needs.Hostname != "" && needs.Hostname != f.Hostname {
		needs.NodeName = s.nodeName(ctx, m)
	}
	for _, p := range facts.Preflight(f, needs) {
		at := path.Root("address")
		if len(p.Path) > 0 {
			at = path.Root(p.Path[0])
		}
		if p.Severity == providers.Warning {
			diags.AddAttributeWarning(at, p.Summary, p.Detail)
		} else {
			diags.AddAttributeError(at, p.Summary, p.Detail)
		}
	}
	return nil
}

// nodeName is what the machine's kubelet calls its node; "" where nobody can tell.
func (s factsSection) nodeName(ctx context.Context, m host.Machine) string {
	node, err := s.settings.shared.roll.Look(ctx, m)
	if err != nil || node == nil {
		return ""
	}
	return node.Name
}

func (m *hostModel) needs() facts.Needs {
	n := facts.Needs{
		Role: m.Role.ValueString(), Hostname: m.Hostname.ValueString(), PrivateAddress: m.PrivateAddress.ValueString(), AllowCgroupV1: m.AllowCgroupV1.ValueBool(),
		Packages: !m.Packages.IsNull() || !m.ContainerdPackage.IsNull() || !m.CUDA.IsNull(), SwapOff: !m.Swap.IsNull(), TimeSync: !m.Time.IsNull(),
	}
	if m.Hostname.IsUnknown() {
		n.Hostname = facts.UnknownHostname // its own validator will see it
	}
	return n
}

func (s factsSection) apply(ctx context.Context, m host.Machine, _ *host.Record, want *hostModel) error {
	return s.observe(ctx, m, want, want)
}

func (factsSection) restore(context.Context, host.Machine, *host.Record) ([]host.Outcome, error) {
	return nil, nil
}
