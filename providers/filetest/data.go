package filetest

import (
	"context"
	"path/filepath"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// fileData is the data source test_file: a file as it is.
type fileData struct{}

type dataModel struct {
	Directory types.String `tfsdk:"directory"`
	Name      types.String `tfsdk:"name"`
	Content   types.String `tfsdk:"content"`
	Path      types.String `tfsdk:"path"`
	SHA256    types.String `tfsdk:"sha256"`
	Mark      types.String `tfsdk:"mark"`
}

func (fileData) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "test_file"
}

func (fileData) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "A file as it is.",
		Attributes: map[string]schema.Attribute{
			"directory": schema.StringAttribute{Required: true, Description: "The folder of the file."},
			"name":      schema.StringAttribute{Required: true, Description: "The file's name within the directory."},
			"content":   schema.StringAttribute{Computed: true, Description: "The content of the file, without the mark."},
			"path":      schema.StringAttribute{Computed: true, Description: "The absolute path of the file."},
			"sha256":    schema.StringAttribute{Computed: true, Description: "The checksum of the content, in hexadecimal."},
			"mark":      schema.StringAttribute{Computed: true, Description: "The operation that made the file; null for a foreign file."},
		},
	}
}

func (fileData) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m dataModel
	if resp.Diagnostics.Append(req.Config.Get(ctx, &m)...); resp.Diagnostics.HasError() {
		return
	}
	abs, err := filepath.Abs(filepath.Join(m.Directory.ValueString(), m.Name.ValueString()))
	if err != nil {
		resp.Diagnostics.AddError("Path can't be made absolute", err.Error()+". Write an absolute directory.")
		return
	}
	o, err := load(abs)
	if err != nil {
		resp.Diagnostics.AddError("File not read", err.Error()+".")
		return
	}
	m.Content, m.Path = types.StringValue(o.content), types.StringValue(o.path)
	m.SHA256 = types.StringValue(o.sha256())
	m.Mark = types.StringNull()
	if o.mark != "" {
		m.Mark = types.StringValue(o.mark)
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
