package providers

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	dschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	pschema "github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// fakeProvider is a framework provider with one resource that has every kind
// of attribute and block, and a behaviour that its argument "do" picks.
type fakeProvider struct{ seen *seen }

// seen is what the provider noticed, for the test to look at.
type seen struct {
	terraformVersion string
	region           types.String
	calls            []string // "create op-1" and the like
	writeOnly        string
	planned          string // private data, as Create was told
}

func (p *fakeProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "fake"
}

func (p *fakeProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = pschema.Schema{Attributes: map[string]pschema.Attribute{
		"region": pschema.StringAttribute{Optional: true},
		"token":  pschema.StringAttribute{Optional: true, Sensitive: true},
	}}
}

func (p *fakeProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	p.seen.terraformVersion = req.TerraformVersion
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("region"), &p.seen.region)...)
	if p.seen.region.ValueString() == "atlantis" {
		resp.Diagnostics.AddAttributeError(path.Root("region"), "No such region", "It sank.")
	}
}

func (p *fakeProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return &thing{seen: p.seen} }}
}

func (p *fakeProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{func() datasource.DataSource { return &fact{} }}
}

type thing struct{ seen *seen }

func (t *thing) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "fake_thing"
}

func leafAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name": schema.StringAttribute{Required: true},
		"size": schema.StringAttribute{Optional: true, Computed: true, Default: stringdefault.StaticString("small")},
	}
}

func (t *thing) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	keep := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	leaf := schema.NestedAttributeObject{Attributes: leafAttributes()}
	block := schema.NestedBlockObject{Attributes: leafAttributes()}
	resp.Schema = schema.Schema{
		Version:     3,
		Description: "A thing.",
		Attributes: map[string]schema.Attribute{
			"id":     schema.StringAttribute{Computed: true, PlanModifiers: keep},
			"name":   schema.StringAttribute{Required: true, PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()}},
			"do":     schema.StringAttribute{Optional: true, Description: "What to do."},
			"colour": schema.StringAttribute{Optional: true, Computed: true, Default: stringdefault.StaticString("blue")},
			"rev":    schema.Int64Attribute{Computed: true},
			"secret": schema.StringAttribute{Optional: true, Sensitive: true},
			"wo":     schema.StringAttribute{Optional: true, WriteOnly: true},
			"old":    schema.StringAttribute{Optional: true, DeprecationMessage: "Use name."},
			"any":    schema.DynamicAttribute{Optional: true},
			"nums":   schema.ListAttribute{Optional: true, ElementType: types.NumberType},
			"obj":    schema.ObjectAttribute{Optional: true, AttributeTypes: map[string]attr.Type{"x": types.BoolType}},
			"tags":   schema.SetAttribute{Optional: true, ElementType: types.StringType, PlanModifiers: []planmodifier.Set{setplanmodifier.RequiresReplace()}},
			"one":    schema.SingleNestedAttribute{Optional: true, Attributes: leafAttributes()},
			"list":   schema.ListNestedAttribute{Optional: true, NestedObject: leaf},
			"set":    schema.SetNestedAttribute{Optional: true, NestedObject: leaf},
			"map":    schema.MapNestedAttribute{Optional: true, NestedObject: leaf},
		},
		Blocks: map[string]schema.Block{
			"bone":     schema.SingleNestedBlock{Attributes: map[string]schema.Attribute{"name": schema.StringAttribute{Optional: true}}},
			"blist":    schema.ListNestedBlock{NestedObject: block},
			"bset":     schema.SetNestedBlock{NestedObject: block},
			"timeouts": timeouts.Block(ctx, timeouts.Opts{Create: true}),
		},
	}
}

// note reports what the call's context carries.
func (t *thing) note(ctx context.Context, what string) {
	t.seen.calls = append(t.seen.calls, fmt.Sprintf("%s %s", what, CallFrom(ctx).Operation))
}

func (t *thing) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var do types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("do"), &do)...)
	switch do.ValueString() {
	case "bad":
		resp.Diagnostics.AddAttributeError(path.Root("list").AtListIndex(1).AtName("name"), "Bad name", "Choose another.")
		resp.Diagnostics.AddAttributeWarning(path.Root("map").AtMapKey("k"), "Odd key", "It is odd.")
		resp.Diagnostics.AddAttributeWarning(path.Root("tags").AtSetValue(types.StringValue("t")), "Odd tag", "It is odd.")
	case "panic-validate":
		panic("out of cheese")
	}
}

func (t *thing) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	t.note(ctx, "plan")
	if req.Plan.Raw.IsNull() {
		resp.Diagnostics.AddWarning("Going away", "For good.")
		return
	}
	CallFrom(ctx).AddNote(Note{Kind: NoteCost, Text: "a penny", Number: 0.01})
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, "planned", []byte(`"yes"`))...)
}

func (t *thing) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	t.note(ctx, "create")
	var do, wo types.String
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("do"), &do)...)
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("wo"), &wo)...)
	t.seen.writeOnly, t.seen.planned = wo.ValueString(), string(CallFrom(ctx).Planned)
	var limit timeouts.Value
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("timeouts"), &limit)...)
	_, diags := limit.Create(ctx, 0)
	resp.Diagnostics.Append(diags...)
	if do.ValueString() == "panic" {
		panic("out of cheese")
	}
	if do.ValueString() == "fail" {
		resp.Diagnostics.AddError("Could not make it", "Nothing is there.")
		return
	}
	if do.ValueString() == "wait" {
		CallFrom(ctx).Report(Progress{Step: "waiting", Percent: 50})
		<-ctx.Done()
		resp.Diagnostics.AddError("Interrupted", ctx.Err().Error())
	}
	resp.State.Raw = req.Plan.Raw
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), "id-1")...)
	switch do.ValueString() {
	case "partial", "keep":
		resp.Diagnostics.AddError("Half done", "The rest is missing.")
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("rev"), types.Int64Null())...)
		if do.ValueString() == "keep" {
			CallFrom(ctx).KeepOnError()
		}
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("rev"), 1)...)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, "made", []byte(`"yes"`))...)
	resp.Diagnostics.AddWarning("Slow", "It took a while.")
}

func (t *thing) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	t.note(ctx, "read")
	var do types.String
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("do"), &do)...)
	switch do.ValueString() {
	case "gone":
		resp.State.RemoveResource(ctx)
	case "unreachable":
		resp.Diagnostics.AddError("Unreachable", "Nobody answers.")
	case "drift":
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("colour"), "red")...)
		made, _ := req.Private.GetKey(ctx, "made")
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, "read", made)...)
	}
}

func (t *thing) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	t.note(ctx, "update")
	if planned, _ := req.Private.GetKey(ctx, "planned"); planned == nil {
		resp.Diagnostics.AddError("Private data lost", "What the plan noted is gone.")
	}
	resp.State.Raw = req.Plan.Raw
	var rev types.Int64
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("rev"), &rev)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("rev"), rev.ValueInt64()+1)...)
}

func (t *thing) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	t.note(ctx, "delete")
	var do types.String
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("do"), &do)...)
	if do.ValueString() == "stuck" {
		resp.Diagnostics.AddError("Stuck", "It won't go.")
	}
}

func (t *thing) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("id"), req, resp)
}

func (t *thing) UpgradeState(context.Context) map[int64]resource.StateUpgrader {
	return map[int64]resource.StateUpgrader{2: {StateUpgrader: func(ctx context.Context, req resource.UpgradeStateRequest, resp *resource.UpgradeStateResponse) {
		ty := resp.State.Schema.Type().TerraformType(ctx).(tftypes.Object)
		nulls := map[string]tftypes.Value{}
		for name, at := range ty.AttributeTypes {
			nulls[name] = tftypes.NewValue(at, nil)
		}
		resp.State.Raw = tftypes.NewValue(ty, nulls)
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), "upgraded "+string(req.RawState.JSON))...)
	}}}
}

// fact is a data source.
type fact struct{}

func (f *fact) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "fake_fact"
}

func (f *fact) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = dschema.Schema{Attributes: map[string]dschema.Attribute{
		"name":  dschema.StringAttribute{Required: true},
		"value": dschema.StringAttribute{Computed: true},
	}}
}

func (f *fact) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var name types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("name"), &name)...)
	if name.ValueString() == "lost" {
		resp.Diagnostics.AddAttributeError(path.Root("name"), "No such fact", "Nobody knows it.")
		return
	}
	resp.State.Raw = req.Config.Raw
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("value"), "known")...)
}
