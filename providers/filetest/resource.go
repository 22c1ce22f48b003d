package filetest

import (
	"context"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// fileResource is test_file.
type fileResource struct{}

// fileModel is a test_file as the framework hands it over.
type fileModel struct {
	ID        types.String `tfsdk:"id"`
	Directory types.String `tfsdk:"directory"`
	Name      types.String `tfsdk:"name"`
	Content   types.String `tfsdk:"content"`
	Delay     types.String `tfsdk:"delay"`
	Fail      types.String `tfsdk:"fail"`
	Keep      types.Bool   `tfsdk:"keep"`
	Path      types.String `tfsdk:"path"`
	SHA256    types.String `tfsdk:"sha256"`
	Mark      types.String `tfsdk:"mark"`
}

// The places where a file can be told to fail.
const (
	failPlan          = "plan"
	failRead          = "read"
	failCreate        = "create"
	failCreatePartial = "create-partial"
	failUpdate        = "update"
	failDelete        = "delete"
	failPanic         = "panic"
)

var failures = []string{failCreate, failCreatePartial, failUpdate, failDelete, failRead, failPlan, failPanic}

func (fileResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "test_file"
}

func (fileResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	stable := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	resp.Schema = schema.Schema{
		Description: "One file, made slowly or failing on request. Import it by its path.",
		Attributes: map[string]schema.Attribute{
			"directory": schema.StringAttribute{Required: true, PlanModifiers: replace,
				Description: "The folder of the file. It is made when it is missing, and never removed."},
			"name": schema.StringAttribute{Required: true, PlanModifiers: replace,
				Description: "The file's name within the directory."},
			"content": schema.StringAttribute{Optional: true,
				Description: "The content of the file after its first line, which is the mark."},
			"delay": schema.StringAttribute{Optional: true,
				Description: `How long each create, update and delete works before anything happens, e.g. "200ms".`},
			"fail": schema.StringAttribute{Optional: true,
				Description: "The call that must fail: one of " + strings.Join(failures, ", ") + ". A create-partial leaves half of the content; a panic is one of the provider while it makes the file."},
			"keep": schema.BoolAttribute{Optional: true,
				Description: "With fail = \"create-partial\": the file is kept for an update to finish, rather than tainted."},
			"id":     schema.StringAttribute{Computed: true, PlanModifiers: stable, Description: "The same as path."},
			"path":   schema.StringAttribute{Computed: true, PlanModifiers: stable, Description: "The absolute path of the file."},
			"sha256": schema.StringAttribute{Computed: true, Description: "The checksum of the content, in hexadecimal."},
			"mark": schema.StringAttribute{Computed: true, PlanModifiers: stable,
				Description: "The operation that made the file; null for a foreign file."},
		},
	}
}

// ValidateConfig checks what can be checked while parts may be unknown.
func (fileResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m fileModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	if problem := badName(m.Name.ValueString()); problem != "" && !m.Name.IsUnknown() {
		resp.Diagnostics.AddAttributeError(path.Root("name"), "Invalid file name", problem)
	}
	if !m.Directory.IsUnknown() && (m.Directory.ValueString() == "" || hasControl(m.Directory.ValueString())) {
		resp.Diagnostics.AddAttributeError(path.Root("directory"), "Invalid directory", "Give the path of a folder, without control characters.")
	}
	if !m.Delay.IsUnknown() && !m.Delay.IsNull() {
		if d, err := time.ParseDuration(m.Delay.ValueString()); err != nil || d < 0 {
			resp.Diagnostics.AddAttributeError(path.Root("delay"), "Invalid delay", `Give a duration such as "200ms" or "1m30s".`)
		}
	}
	if !m.Fail.IsUnknown() && !m.Fail.IsNull() && !isFailure(m.Fail.ValueString()) {
		resp.Diagnostics.AddAttributeError(path.Root("fail"), "Invalid failure", "Give one of "+strings.Join(failures, ", ")+".")
	}
}

func isFailure(s string) bool {
	for _, f := range failures {
		if s == f {
			return true
		}
	}
	return false
}

func badName(name string) string {
	switch {
	case name == "" || name != filepath.Base(name) || name == "." || name == "..":
		return "Give a file name, without its folder."
	case name[0] == '.':
		return "Names that begin with a dot are for the provider itself."
	case name == logName:
		return "The provider keeps its log under this name."
	case hasControl(name):
		return "Leave out control characters."
	}
	return ""
}

func hasControl(s string) bool { return strings.ContainsFunc(s, unicode.IsControl) }

// ModifyPlan fills in the checksum as soon as the content is known.
func (fileResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return
	}
	var content, fail types.String
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("content"), &content)...)
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("fail"), &fail)...)
	if fail.ValueString() == failPlan {
		resp.Diagnostics.AddAttributeError(path.Root("fail"), "Planning failed as asked", `The argument fail is "plan".`)
	}
	if !req.State.Raw.IsNull() && !req.Plan.Raw.Equal(req.State.Raw) {
		// An imported file gets its first line with its first update.
		var mark types.String
		resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("mark"), &mark)...)
		if mark.IsNull() && len(resp.RequiresReplace) == 0 {
			resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("mark"), unmarked)...)
		}
	}
	if !content.IsUnknown() {
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root("sha256"), contentHash(content.ValueString()))...)
	}
}

func (fileResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	abs, err := filepath.Abs(req.ID)
	if err != nil || req.ID == "" {
		resp.Diagnostics.AddError("Import id is no path", "Give the path of the file as the id.")
		return
	}
	// The directory stays as it was written, so that the next plan finds no
	// difference.
	directory, name := ".", req.ID
	if i := strings.LastIndexByte(req.ID, '/'); i >= 0 {
		directory, name = req.ID[:max(i, 1)], req.ID[i+1:]
	}
	for name, value := range map[string]string{"id": abs, "path": abs, "directory": directory, "name": name} {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), value)...)
	}
}

// object is the file that m describes; it may not exist.
func (m fileModel) object(diags *diag.Diagnostics) object {
	abs := m.Path.ValueString()
	if abs == "" {
		var err error
		abs, err = filepath.Abs(filepath.Join(m.Directory.ValueString(), m.Name.ValueString()))
		if err != nil {
			diags.AddError("Path can't be made absolute", err.Error()+". Write an absolute directory.")
		}
	}
	return object{path: abs, mark: m.Mark.ValueString(), content: m.Content.ValueString()}
}

// setComputed makes m say what o is.
func (m *fileModel) setComputed(o object) {
	m.ID, m.Path = types.StringValue(o.path), types.StringValue(o.path)
	m.SHA256 = types.StringValue(o.sha256())
	m.Mark = types.StringNull()
	if o.mark != "" {
		m.Mark = types.StringValue(o.mark)
	}
}

// setContent makes m say what the file holds. No content and an empty file are
// the same.
func (m *fileModel) setContent(o object) {
	if o.content == "" && m.Content.IsNull() {
		return
	}
	m.Content = types.StringValue(o.content)
}
