package metal

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/facts"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/nvidia"
	"github.com/stokehq/stoke/runtime/gpu"
)

type hostFacts struct{ configured }

// configured has the settings of a data source; they are nil while validating.
type configured struct{ settings *settings }

// Configure takes the settings.
func (c *configured) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	if s, ok := req.ProviderData.(*settings); ok {
		c.settings = s
	}
}

func (d *hostFacts) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_host_facts"
}

func (d *hostFacts) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "Facts of a machine: operating system, hardware, network, clock, and running software. It changes nothing. Sizes are bytes; what the machine does not tell is \"\", 0 or empty.",
		Attributes:  map[string]schema.Attribute{"host": connect.ForDataSource(connect.MachineArgument("The machine: the ssh of a metal_host, or an object with address, host_key and whatever else it takes to get there."))},
	}
	t := reflect.TypeFor[facts.Facts]()
	for i := range t.NumField() {
		name := nameOf(t.Field(i))
		resp.Schema.Attributes[name] = computed(typeOf(t.Field(i).Type), t.Field(i).Tag.Get("is"))
	}
	resp.Schema.Attributes["gpu_health"] = gpuHealthAttribute()
}

func computed(t attr.Type, description string) schema.Attribute {
	switch t := t.(type) {
	case types.ListType:
		return schema.ListAttribute{Computed: true, ElementType: t.ElemType, Description: description}
	case types.MapType:
		return schema.MapAttribute{Computed: true, ElementType: t.ElemType, Description: description}
	case types.ObjectType:
		return schema.ObjectAttribute{Computed: true, AttributeTypes: t.AttrTypes, Description: description}
	}
	switch t {
	case types.BoolType:
		return schema.BoolAttribute{Computed: true, Description: description}
	case types.Int64Type:
		return schema.Int64Attribute{Computed: true, Description: description}
	case types.Float64Type:
		return schema.Float64Attribute{Computed: true, Description: description}
	}
	return schema.StringAttribute{Computed: true, Description: description}
}

func (d *hostFacts) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var argument types.Object
	if resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("host"), &argument)...); resp.Diagnostics.HasError() {
		return
	}
	way, known := connect.MachineFromObject(ctx, argument)
	if known {
		resp.Diagnostics.Append(way.Validate(path.Root("host"))...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	var f facts.Facts
	m, err := d.settings.machine(ctx, argument)
	if err == nil {
		host.Step(ctx, "looking at %s", way.Address)
		f, err = d.settings.gather(ctx, m)
	}
	switch {
	case errors.Is(err, connect.ErrUnknown):
		resp.Diagnostics.AddError("Machine is not known yet", fmt.Sprintf("Its connection depends on a value that is "+
			"not known before apply: %s.", err))
		return
	case err != nil:
		summary, detail := unreachable(way.Address, err)
		resp.Diagnostics.AddAttributeError(path.Root("host"), summary, detail)
		return
	}
	health, diags := gpuHealth(ctx, m, f)
	resp.Diagnostics.Append(diags...)
	resp.Diagnostics.Append(setFacts(ctx, &resp.State, argument, f)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("gpu_health"), health)...)
}

func setFacts(ctx context.Context, state *tfsdk.State, argument types.Object, f facts.Facts) (diags diag.Diagnostics) {
	o, d := factsObject(ctx, f)
	diags.Append(d...)
	diags.Append(state.SetAttribute(ctx, path.Root("host"), argument)...)
	for name, v := range o.Attributes() {
		diags.Append(state.SetAttribute(ctx, path.Root(name), v)...)
	}
	return diags
}

// gpuVerdict is the health of one GPU.
type gpuVerdict struct {
	Index   int64  `tfsdk:"index"`
	UUID    string `tfsdk:"uuid"`
	Name    string `tfsdk:"name"`
	Verdict string `tfsdk:"verdict"`
	Reasons string `tfsdk:"reasons"`
}

func gpuVerdictType() attr.Type {
	return types.ObjectType{AttrTypes: map[string]attr.Type{
		"index": types.Int64Type, "uuid": types.StringType, "name": types.StringType,
		"verdict": types.StringType, "reasons": types.StringType,
	}}
}

func gpuHealthAttribute() schema.Attribute {
	return schema.ListAttribute{Computed: true, ElementType: gpuVerdictType(),
		Description: "Health of each GPU by the rules of docs/gpu-health.md, from nvidia-smi: verdict is fit, warning or unfit, " +
			"and reasons has the broken rules. Empty without NVIDIA's driver; " +
			"null, with a warning, where the driver is loaded and nvidia-smi prints no readings."}
}

// judgeEach returns the verdict on each GPU.
func judgeEach(s gpu.Snapshot) []gpuVerdict {
	all := []gpuVerdict{}
	for _, r := range s.GPUs {
		h := gpu.Judge(gpu.Snapshot{GPUs: []gpu.Reading{r}}, gpu.Expectation{})
		v := gpuVerdict{Index: int64(r.Index), UUID: r.UUID, Name: r.Name, Verdict: string(h.Verdict)}
		for i, f := range h.Findings {
			if i > 0 {
				v.Reasons += "; "
			}
			v.Reasons += f.Text
		}
		all = append(all, v)
	}
	return all
}

// gpuHealth returns the verdicts on the GPUs of a machine. Where the driver is loaded, and
// nvidia-smi prints no readings, the list is null, with a warning.
func gpuHealth(ctx context.Context, m host.Machine, f facts.Facts) (types.List, diag.Diagnostics) {
	if f.NVIDIADriver == "" {
		return types.ListValueFrom(ctx, gpuVerdictType(), []gpuVerdict{})
	}
	s, err := nvidia.Readings(ctx, m)
	if err != nil {
		return types.ListNull(gpuVerdictType()), diag.Diagnostics{diag.NewWarningDiagnostic("GPUs cannot be judged", err.Error()+".")}
	}
	return types.ListValueFrom(ctx, gpuVerdictType(), judgeEach(s))
}
