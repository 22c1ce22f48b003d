package gke

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// finding is the value of a data source: arguments and results.
type finding[M any] interface {
	*M
	// looksFor returns the name behind gke_, and the description.
	looksFor() (name, description string)
	// arguments are the declared attributes; the others are found.
	arguments() map[string]schema.Attribute
	// location is the project that is looked in; "" for the provider's.
	location() string
	find(ctx context.Context, j job) error
}

// source is what data sources have in common.
type source[M any, F finding[M]] struct{ settings *settings }

// Metadata names the type.
func (s *source[M, F]) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	name, _ := F(new(M)).looksFor()
	resp.TypeName = req.ProviderTypeName + "_" + name
}

// Schema has the arguments, and a result for every other field, whose tag "is"
// describes it.
func (s *source[M, F]) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	_, description := F(new(M)).looksFor()
	attributes := F(new(M)).arguments()
	t := reflect.TypeFor[M]()
	for i := range t.NumField() {
		f := t.Field(i)
		if name := f.Tag.Get("tfsdk"); attributes[name] == nil {
			attributes[name] = resultOf(f.Type, f.Tag.Get("is"))
		}
	}
	resp.Schema = schema.Schema{Description: description, Attributes: attributes}
}

func resultOf(t reflect.Type, is string) schema.Attribute {
	switch {
	case t == reflect.TypeFor[types.Int64]():
		return schema.Int64Attribute{Computed: true, Description: is}
	case t == reflect.TypeFor[types.Map]():
		return schema.MapAttribute{Computed: true, Description: is, ElementType: types.StringType}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String:
		return schema.ListAttribute{Computed: true, Description: is, ElementType: types.StringType}
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Map:
		attributes := map[string]schema.Attribute{}
		for i := range t.Elem().NumField() {
			f := t.Elem().Field(i)
			attributes[f.Tag.Get("tfsdk")] = resultOf(f.Type, f.Tag.Get("is"))
		}
		nested := schema.NestedAttributeObject{Attributes: attributes}
		if t.Kind() == reflect.Map {
			return schema.MapNestedAttribute{Computed: true, Description: is, NestedObject: nested}
		}
		return schema.ListNestedAttribute{Computed: true, Description: is, NestedObject: nested}
	}
	return schema.StringAttribute{Computed: true, Description: is}
}

// Configure takes the settings; there are none while validating.
func (s *source[M, F]) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	if of, ok := req.ProviderData.(*settings); ok {
		s.settings = of
	}
}

// Read looks.
func (s *source[M, F]) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	m := F(new(M))
	if resp.Diagnostics.Append(req.Config.Get(ctx, m)...); resp.Diagnostics.HasError() {
		return
	}
	name, _ := m.looksFor()
	what := strings.ToUpper(name[:1]) + strings.ReplaceAll(name[1:], "_", " ")
	if s.settings == nil && req.ClientCapabilities.DeferralAllowed {
		resp.Deferred = &datasource.Deferred{Reason: datasource.DeferredReasonProviderConfigUnknown}
		return
	}
	if s.settings == nil {
		resp.Diagnostics.AddError(what+" cannot be read", sentence(errUnconfigured))
		return
	}
	j := job{settings: s.settings, cloud: s.settings.cloud.ForProject(m.location()), diags: &resp.Diagnostics}
	if err := m.find(ctx, j); err != nil {
		addError(&resp.Diagnostics, path.Empty(), what+" cannot be read", err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

func argument(description string) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, Computed: true, Description: description}
}

func requiredArgument(description string) schema.StringAttribute {
	return schema.StringAttribute{Required: true, Description: description}
}

// absent is the error for a missing object.
func absent(what, path string) error {
	return fmt.Errorf("%s %s does not exist: look at its name, its place and the project", what, path)
}

// located returns the arguments of an object in a location.
func located(more map[string]schema.Attribute) map[string]schema.Attribute {
	more["project"] = argument("Project that it is in. Default: that of the provider.")
	more["location"] = argument("Zone or region that it is in. Default: zone or region of the provider.")
	return more
}

// reportNoLocation reports a missing location.
func reportNoLocation(diags *diag.Diagnostics, name string) {
	diags.AddAttributeError(path.Root(name), "No place", fmt.Sprintf("Give %s here, or zone in the block provider \"gke\".", name))
}
