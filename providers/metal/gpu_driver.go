package metal

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/nvidia"
)

const gpuDriverRecord = "gpu-driver"

type gpuDriverResource struct {
	life[gpuDriverModel, *gpuDriverModel]
}

type gpuDriverModel struct {
	onMachine
	Branch            types.String        `tfsdk:"branch"`
	Version           types.String        `tfsdk:"version"`
	Modules           types.String        `tfsdk:"modules"`
	Source            types.String        `tfsdk:"source"`
	Server            types.Bool          `tfsdk:"server"`
	FabricManager     types.String        `tfsdk:"fabric_manager"`
	Toolkit           types.String        `tfsdk:"toolkit"`
	Persistence       types.Bool          `tfsdk:"persistence"`
	NoNouveau         types.Bool          `tfsdk:"blacklist_nouveau"`
	Reboot            types.String        `tfsdk:"reboot"`
	DriverRepository  *gpuRepositoryModel `tfsdk:"driver_repository"`
	ToolkitRepository *gpuRepositoryModel `tfsdk:"toolkit_repository"`
	DebianRepository  *gpuRepositoryModel `tfsdk:"debian_repository"`
	Drift             types.Map           `tfsdk:"drift"`
	Installed         types.String        `tfsdk:"installed"`
	GPUs              types.List          `tfsdk:"gpus"`
	GPUCount          types.Int64         `tfsdk:"gpu_count"`
	disruptionModel
}

type gpuRepositoryModel struct {
	URL         types.String `tfsdk:"url"`
	KeyURL      types.String `tfsdk:"key_url"`
	Fingerprint types.String `tfsdk:"key_fingerprint"`
}

// repositoryAttribute is an argument of that kind.
func repositoryAttribute(description string) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{Optional: true, Description: description, Attributes: map[string]schema.Attribute{
		"url":     schema.StringAttribute{Optional: true, Description: "Where the repository is."},
		"key_url": schema.StringAttribute{Optional: true, Description: "Where its signing key is."},
		"key_fingerprint": schema.StringAttribute{Optional: true, Description: "Fingerprint of the key in full, in upper case; " +
			"by default the key of the original."},
	}}
}

type gpuModel struct {
	Address types.String `tfsdk:"address"`
	Device  types.String `tfsdk:"device"`
	Name    types.String `tfsdk:"name"`
	UUID    types.String `tfsdk:"uuid"`
	Memory  types.Int64  `tfsdk:"memory_mib"`
}

func gpuDriverSchema() schema.Schema {
	keep := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	word := func(otherwise, description string, words ...string) schema.StringAttribute {
		return schema.StringAttribute{
			Optional: true, Computed: true, Default: stringdefault.StaticString(otherwise),
			Validators: []validator.String{oneOf(words)}, Description: description,
		}
	}
	flag := func(description string) schema.BoolAttribute {
		return schema.BoolAttribute{Optional: true, Computed: true, Default: booldefault.StaticBool(true), Description: description}
	}
	described := schema.Schema{
		Description: "The NVIDIA driver of one machine, with container toolkit, fabric manager and persistence daemon. " +
			"Everything is checked before anything is changed, and in the end the driver itself is tested.",
		Attributes: map[string]schema.Attribute{
			"id":      schema.StringAttribute{Computed: true, PlanModifiers: keep, Description: "Identifies this owner in the record on the machine."},
			"host":    connect.MachineArgument("The machine: the ssh of a metal_host."),
			"branch":  schema.StringAttribute{Required: true, Description: `Branch of the driver, such as "580".`},
			"version": schema.StringAttribute{Optional: true, Description: `Exact version, such as "580.126.20"; any of the branch when left out.`},
			"modules": word(nvidia.Open, "Kernel modules: open (Turing and newer) or proprietary.", nvidia.Open, nvidia.Proprietary),
			"source": schema.StringAttribute{
				Optional: true, Computed: true, PlanModifiers: keep, Validators: []validator.String{oneOf{nvidia.Distribution, nvidia.NVIDIA}},
				Description: "The source of the packages: distribution (on Ubuntu built and signed for its kernels) or " +
					"nvidia's repository (built on the machine). When left out, the distribution's on Ubuntu, nvidia's on Debian.",
			},
			"server":             flag("Ubuntu's -server packages, which are for data centres. Elsewhere it means nothing."),
			"fabric_manager":     word(nvidia.Auto, "The fabric manager for NVSwitches: auto (where there are any), always or never.", nvidia.Auto, nvidia.Always, nvidia.Never),
			"toolkit":            schema.StringAttribute{Optional: true, Computed: true, Default: stringdefault.StaticString("1.20.0"), Description: `Version of the container toolkit; "" for none.`},
			"persistence":        flag("Whether the persistence daemon keeps the GPUs initialized."),
			"blacklist_nouveau":  flag("Whether the kernel's own driver is kept away."),
			"reboot":             word(nvidia.Never, "Whether the machine may be rebooted where nothing else helps: never or if-needed.", nvidia.Never, nvidia.IfNeeded),
			"driver_repository":  repositoryAttribute("A mirror of NVIDIA's repository of drivers."),
			"toolkit_repository": repositoryAttribute("A mirror of NVIDIA's repository of the container toolkit."),
			"debian_repository":  repositoryAttribute("Debian's archive with contrib and non-free, where the machine's own sources lack them."),
			"drift": schema.MapAttribute{
				Computed: true, ElementType: types.StringType,
				Description: "Facts that are not as declared and have no attribute of their own, such as a kernel without the module: what they are. Applying empties it.",
			},
			"installed": schema.StringAttribute{Computed: true, Description: "Version of the driver that is installed."},
			"gpu_count": schema.Int64Attribute{Computed: true, Description: "How many GPUs are on the PCI bus: known while planning, for gpus of a metal_node."},
			"gpus": schema.ListNestedAttribute{Computed: true, Description: "The machine's GPUs.", NestedObject: schema.NestedAttributeObject{
				Attributes: map[string]schema.Attribute{
					"address":    schema.StringAttribute{Computed: true, Description: "Address on the PCI bus."},
					"device":     schema.StringAttribute{Computed: true, Description: "Vendor and device on the PCI bus, such as 10de:2330."},
					"name":       schema.StringAttribute{Computed: true, Description: "Its name in the driver."},
					"uuid":       schema.StringAttribute{Computed: true, Description: "Its unique name, once the driver knows it."},
					"memory_mib": schema.Int64Attribute{Computed: true, Description: "Memory in MiB."},
				},
			}},
		},
	}
	maps.Copy(described.Attributes, disruptionAttributes())
	return described
}

func (r *gpuDriverResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config gpuDriverModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() || config.Branch.IsUnknown() || config.Version.IsUnknown() || config.Toolkit.IsUnknown() {
		return
	}
	s := config.spec()
	// Arguments with a few valid words are left out here: their validators check
	// them.
	s.Modules, s.Source, s.FabricManager, s.Reboot = nvidia.Open, nvidia.NVIDIA, nvidia.Auto, nvidia.Never
	for _, m := range s.Mistakes() {
		resp.Diagnostics.AddAttributeError(path.Root(m.Argument), "Invalid driver", m.Text+".")
	}
}
