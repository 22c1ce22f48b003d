package kube

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8s "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/kube/live"
)

// source is a data source: its arguments and its result in a cluster.
type source struct {
	name, description string
	arguments         map[string]schema.Attribute
	// results are its computed attributes: the zero value of the struct that read
	// returns, whose fields have the tags tfsdk and is, which describes them.
	results any
	read    func(ctx context.Context, c *live.Cluster, config tfsdk.Config) (any, diag.Diagnostics)
}

// sources are all of them.
var sources = []source{serverSource, nodesSource, storageClassesSource, objectSource}

// dataSource is a source that the framework calls.
type dataSource struct {
	source
	settings *settings
}

var _ datasource.DataSourceWithConfigure = &dataSource{}

func (d *dataSource) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "kube_" + d.name
}

func (d *dataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	attributes := map[string]schema.Attribute{
		"cluster": connect.ForDataSource(connect.Argument(`Connection to the cluster. Left out: the one of the block provider "kube".`)),
	}
	for name, a := range d.arguments {
		attributes[name] = a
	}
	for name, a := range resultsOf(reflect.TypeOf(d.results)) {
		attributes[name] = a
	}
	resp.Schema = schema.Schema{Description: d.description, Attributes: attributes}
}

func (d *dataSource) Configure(_ context.Context, req datasource.ConfigureRequest, _ *datasource.ConfigureResponse) {
	if s, ok := req.ProviderData.(*settings); ok {
		d.settings = s
	}
}

func (d *dataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var argument types.Object
	if resp.Diagnostics.Append(req.Config.GetAttribute(ctx, clusterAt, &argument)...); resp.Diagnostics.HasError() {
		return
	}
	connection, known, diags := d.settings.connection(ctx, argument)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	if !known && req.ClientCapabilities.DeferralAllowed {
		resp.Deferred = &datasource.Deferred{Reason: datasource.DeferredReasonProviderConfigUnknown}
		return
	}
	if !known {
		resp.Diagnostics.AddAttributeError(clusterAt, "Cluster is not known yet", `Its connection depends on a value that is not known before apply. Give cluster in this data source instead of an unknown value in the block provider "kube", so that it is read during apply.`)
		return
	}
	cluster, err := d.settings.cluster(ctx, connection, "")
	if err != nil {
		summary, detail := kubernetes.Describe(err)
		resp.Diagnostics.AddAttributeError(clusterAt, summary, detail)
		return
	}
	providers.CallFrom(ctx).Report(providers.Progress{Step: "asking " + cluster.Name, Percent: -1})
	found, diags := d.read(ctx, cluster, req.Config)
	if resp.Diagnostics.Append(diags...); resp.Diagnostics.HasError() {
		return
	}
	resp.State.Raw = req.Config.Raw
	v := reflect.ValueOf(found)
	for i := range v.NumField() {
		at := path.Root(v.Type().Field(i).Tag.Get("tfsdk"))
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, at, v.Field(i).Interface())...)
	}
}

// resultsOf makes computed attributes of a struct's fields.
func resultsOf(t reflect.Type) map[string]schema.Attribute {
	out := make(map[string]schema.Attribute, t.NumField())
	for i := range t.NumField() {
		f := t.Field(i)
		out[f.Tag.Get("tfsdk")] = resultOf(f.Type, f.Tag.Get("is"))
	}
	return out
}

func resultOf(t reflect.Type, is string) schema.Attribute {
	switch t.Kind() {
	case reflect.Bool:
		return schema.BoolAttribute{Computed: true, Description: is}
	case reflect.Int64:
		return schema.Int64Attribute{Computed: true, Description: is}
	case reflect.Map:
		return schema.MapAttribute{Computed: true, Description: is, ElementType: types.StringType}
	case reflect.Slice:
		return schema.ListNestedAttribute{Computed: true, Description: is, NestedObject: schema.NestedAttributeObject{Attributes: resultsOf(t.Elem())}}
	}
	if t == reflect.TypeFor[types.Dynamic]() {
		return schema.DynamicAttribute{Computed: true, Description: is}
	}
	return schema.StringAttribute{Computed: true, Description: is} // a string, or a pointer to a nullable one
}

// listPages lists the objects of a kind in pages.
func listPages(ctx context.Context, c *live.Cluster, gvr k8s.GroupVersionResource, options metav1.ListOptions, do func(*unstructured.Unstructured)) error {
	options.Limit = 500
	for {
		found, err := c.Dynamic.Resource(gvr).List(ctx, options)
		if err != nil {
			return err
		}
		for i := range found.Items {
			do(&found.Items[i])
		}
		if options.Continue = found.GetContinue(); options.Continue == "" {
			return nil
		}
	}
}

// unreadable returns the error of a failed read.
func unreadable(at path.Path, what string, err error) (diags diag.Diagnostics) {
	switch {
	case apierrors.IsForbidden(err):
		diags.AddAttributeError(at, "Not allowed by the cluster", fmt.Sprintf("%s cannot be read: %s Give the user of the connection the right to it.", what, sentence(err)))
	case errors.As(err, new(*live.NoKindError)):
		diags.AddAttributeError(at, "Unknown kind", upper(sentence(err))+" Correct api_version and kind.")
	default:
		diags.AddAttributeError(at, what+" cannot be read", upper(sentence(err)))
	}
	return diags
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// texts reads a map of strings of an object; never nil.
func texts(u map[string]any, at ...string) map[string]string {
	m, _, _ := unstructured.NestedStringMap(u, at...)
	if m == nil {
		m = map[string]string{}
	}
	return m
}

func text(u map[string]any, at ...string) string {
	s, _, _ := unstructured.NestedString(u, at...)
	return s
}
