package filetest

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
)

// secretResource is test_secret: a file that holds the checksum of a
// write-only argument.
type secretResource struct{}

type secretModel struct {
	ID            types.String `tfsdk:"id"`
	Directory     types.String `tfsdk:"directory"`
	Name          types.String `tfsdk:"name"`
	Secret        types.String `tfsdk:"secret"`
	SecretVersion types.Int64  `tfsdk:"secret_version"`
	Password      types.String `tfsdk:"password"`
	Mark          types.String `tfsdk:"mark"`
}

func (secretResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "test_secret"
}

func (secretResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	stable := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	resp.Schema = schema.Schema{
		Description: "A file with the checksum of a secret, which itself is stored nowhere.",
		Attributes: map[string]schema.Attribute{
			"directory": schema.StringAttribute{Required: true, PlanModifiers: replace, Description: "The folder of the file."},
			"name":      schema.StringAttribute{Required: true, PlanModifiers: replace, Description: "The file's name within the directory."},
			"secret": schema.StringAttribute{Optional: true, WriteOnly: true,
				Description: "The secret. It is written when the object is made, and whenever secret_version changes."},
			"secret_version": schema.Int64Attribute{Optional: true, Description: "Another number says that there is another secret."},
			"password": schema.StringAttribute{Optional: true, Sensitive: true,
				Description: "A sensitive value that the state stores."},
			"id":   schema.StringAttribute{Computed: true, PlanModifiers: stable, Description: "The absolute path of the file."},
			"mark": schema.StringAttribute{Computed: true, PlanModifiers: stable, Description: "The operation that made the file."},
		},
	}
}

func (secretResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m secretModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	if problem := badName(m.Name.ValueString()); problem != "" && !m.Name.IsUnknown() {
		resp.Diagnostics.AddAttributeError(path.Root("name"), "Invalid file name", problem)
	}
}

func (secretResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var m, config secretModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...) // the plan has no write-only values
	abs, err := filepath.Abs(filepath.Join(m.Directory.ValueString(), m.Name.ValueString()))
	if err != nil {
		resp.Diagnostics.AddError("Path can't be made absolute", err.Error()+". Write an absolute directory.")
	}
	if resp.Diagnostics.HasError() {
		return
	}
	o := object{path: abs, mark: providers.CallFrom(ctx).Operation, content: contentHash(config.Secret.ValueString())}
	if o.mark == "" {
		o.mark = unmarked
	}
	if err := o.create(); err != nil {
		resp.Diagnostics.AddError("File not made", err.Error()+".")
		return
	}
	m.ID, m.Mark = types.StringValue(o.path), types.StringValue(o.mark)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (secretResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var m secretModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	call := providers.CallFrom(ctx)
	abs, err := filepath.Abs(filepath.Join(m.Directory.ValueString(), m.Name.ValueString()))
	if err != nil {
		resp.Diagnostics.AddError("Path can't be made absolute", err.Error()+".")
		return
	}
	o, err := load(abs)
	switch {
	case errors.Is(err, fs.ErrNotExist) || call.Settling && o.mark != call.Operation:
		resp.State.RemoveResource(ctx)
		return
	case err != nil:
		resp.Diagnostics.AddError("File not read", err.Error()+".")
		return
	}
	m.ID, m.Mark = types.StringValue(o.path), types.StringValue(o.mark)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (secretResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var m, config secretModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &m)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	o := object{path: m.ID.ValueString(), mark: m.Mark.ValueString(), content: contentHash(config.Secret.ValueString())}
	if err := o.update(); err != nil {
		resp.Diagnostics.AddError("File not written", err.Error()+".")
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (secretResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var m secretModel
	if resp.Diagnostics.Append(req.State.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	if err := (object{path: m.ID.ValueString(), mark: m.Mark.ValueString()}).delete(); err != nil {
		resp.Diagnostics.AddError("File not removed", err.Error()+".")
	}
}
