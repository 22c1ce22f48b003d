package kube

import (
	"context"
	"fmt"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	k8s "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// foundObject is what kube_object finds.
type foundObject struct {
	UID    string        `tfsdk:"uid" is:"Its UID."`
	Object types.Dynamic `tfsdk:"object" is:"All of it, as the API server has it: object.spec, object.status, …; without metadata.managedFields."`
}

var objectSource = source{
	name: "object", description: "Any object of a cluster. Secrets are not read, since what a data source finds is stored in the state.", results: foundObject{},
	arguments: map[string]schema.Attribute{
		"api_version": schema.StringAttribute{Required: true, Description: `Group and version of its kind, such as "apps/v1", or "v1".`},
		"kind":        schema.StringAttribute{Required: true, Description: `Its kind, such as "Deployment".`},
		"name":        schema.StringAttribute{Required: true, Description: "Its name."},
		"namespace":   schema.StringAttribute{Optional: true, Description: "Its namespace. Default: default, where the kind has namespaces."},
	},
	read: readObject,
}

func readObject(ctx context.Context, c *live.Cluster, config tfsdk.Config) (any, diag.Diagnostics) {
	var version, kind, name, namespace types.String
	var diags diag.Diagnostics
	for at, to := range map[string]*types.String{"api_version": &version, "kind": &kind, "name": &name, "namespace": &namespace} {
		diags.Append(config.GetAttribute(ctx, path.Root(at), to)...)
	}
	gv, err := k8s.ParseGroupVersion(version.ValueString())
	if err != nil || gv.Version == "" {
		diags.AddAttributeError(path.Root("api_version"), "Invalid API version", fmt.Sprintf(`%q is none. Write VERSION or GROUP/VERSION, such as "v1" or "apps/v1".`, version.ValueString()))
	}
	if gv.Group == "" && kind.ValueString() == "Secret" {
		diags.AddAttributeError(path.Root("kind"), "Secrets are not read", "The result of a data source is stored in "+
			"the state. Let what needs the values read the Secret itself.")
	}
	if name.ValueString() == "" {
		diags.AddAttributeError(path.Root("name"), "Name missing", "Give the object's name.")
	}
	if diags.HasError() {
		return nil, diags
	}
	k := object.Key{GroupVersionKind: gv.WithKind(kind.ValueString()), Namespace: namespace.ValueString(), Name: name.ValueString()}
	_, namespaced, err := c.Mapping(k.GroupVersionKind)
	switch {
	case err != nil:
		return nil, unreadable(path.Root("kind"), "The object", err)
	case namespaced && k.Namespace == "":
		k.Namespace = "default"
	case !namespaced && k.Namespace != "":
		diags.AddAttributeError(path.Root("namespace"), "Kind without namespaces", fmt.Sprintf("A %s is not in a "+
			"namespace. Leave the argument out.", k.Kind))
		return nil, diags
	}
	u, err := c.Get(ctx, k)
	if err != nil {
		return nil, unreadable(path.Root("name"), k.Title(), err)
	}
	if u == nil {
		diags.AddAttributeError(path.Root("name"), "No such object", fmt.Sprintf("%s does not exist in the cluster %s.", k.Title(), c.Name))
		return nil, diags
	}
	uid := string(u.GetUID())
	u.SetManagedFields(nil)
	return foundObject{UID: uid, Object: types.DynamicValue(value(u.Object))}, diags
}

// value is a JSON value as the language has it: lists are tuples and maps
// objects.
func value(v any) attr.Value {
	switch v := v.(type) {
	case map[string]any:
		values, kinds := make(map[string]attr.Value, len(v)), make(map[string]attr.Type, len(v))
		for name, e := range v {
			values[name] = value(e)
			kinds[name] = values[name].Type(context.Background())
		}
		return types.ObjectValueMust(kinds, values)
	case []any:
		values, kinds := make([]attr.Value, len(v)), make([]attr.Type, len(v))
		for i, e := range v {
			values[i] = value(e)
			kinds[i] = values[i].Type(context.Background())
		}
		return types.TupleValueMust(kinds, values)
	case string:
		return types.StringValue(v)
	case bool:
		return types.BoolValue(v)
	case int64:
		return types.NumberValue(new(big.Float).SetInt64(v))
	case float64:
		return types.NumberValue(big.NewFloat(v))
	}
	return types.StringNull() // null: JSON has nothing else
}
