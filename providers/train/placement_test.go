package train

import (
	"math/big"
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/stokehq/stoke/providers/train/launch"
)

// given is a value for each argument that only clusters know.
func given(t *testing.T, s schema.Schema, o placementOption) attr.Value {
	t.Helper()
	text := func(v string) attr.Value { return types.StringValue(v) }
	number := func(v int64) attr.Value { return types.NumberValue(new(big.Float).SetInt64(v)) }
	object := func(typ attr.Type, values map[string]attr.Value) attr.Value {
		all := make(map[string]attr.Value)
		for name, at := range typ.(types.ObjectType).AttrTypes {
			if all[name] = values[name]; all[name] == nil {
				all[name] = nullOf(t, at)
			}
		}
		return types.ObjectValueMust(typ.(types.ObjectType).AttrTypes, all)
	}
	element := func() attr.Type { return s.Attributes[o.name].GetType().(types.ListType).ElemType }
	switch o.name {
	case "image_pull_secrets":
		return types.ListValueMust(types.StringType, []attr.Value{text("registry")})
	case "environment", "node_selector":
		return types.MapValueMust(types.StringType, map[string]attr.Value{"name": text("value")})
	case "tolerations":
		return types.ListValueMust(element(), []attr.Value{object(element(), map[string]attr.Value{"key": text("team"), "value": text("a"), "effect": text("NoSchedule")})})
	case "volumes":
		var all []attr.Value
		nfs := object(element().(types.ObjectType).AttrTypes["nfs"], map[string]attr.Value{"server": text("nas"), "path": text("/export")})
		for name, v := range map[string]attr.Value{"claim": text("a"), "host_path": text("/a"), "nfs": nfs, "config_map": text("a"), "secret": text("a"), "empty_dir": text("1Gi")} {
			all = append(all, object(element(), map[string]attr.Value{"mount_path": text("/" + name), "sub_path": text("b"), "read_only": types.BoolValue(true), name: v}))
		}
		return types.ListValueMust(element(), all)
	case "port", "bandwidth_mbps", "high_priority_replicas":
		return number(9)
	case "image_pull_policy":
		return text("Always")
	case "priority":
		return text("low")
	case "dataset_path", "place":
		return text("/data")
	case "gpu_resource":
		return text("nvidia.com/mig-1g.10gb")
	}
	return text("3")
}

func nullOf(t *testing.T, of attr.Type) attr.Value {
	t.Helper()
	v, err := of.ValueFromTerraform(t.Context(), tftypes.NewValue(of.TerraformType(t.Context()), nil))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestEveryOptionIsRead has each argument that only clusters know change the
// placement, and all of them together fill every field of it.
func TestEveryOptionIsRead(t *testing.T) {
	var resp resource.SchemaResponse
	new(experimentResource).Schema(t.Context(), resource.SchemaRequest{}, &resp)
	if resp.Diagnostics.HasError() {
		t.Fatal(resp.Diagnostics)
	}
	with := func(left *placementOption) launch.Placement {
		var m experimentModel
		blocks := make(map[string]map[string]attr.Value)
		set := func(name string, v attr.Value) {
			for _, f := range reflect.VisibleFields(reflect.TypeOf(m)) {
				if f.Tag.Get("tfsdk") == name {
					reflect.ValueOf(&m).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(v))
					return
				}
			}
			t.Fatalf("the model has no %s", name)
		}
		for _, o := range append(placementOptions(), placementOption{"worker", "gpus"}) {
			if left != nil && o == *left {
				continue
			}
			v := given(t, resp.Schema, o)
			if o.name == "gpus" {
				v = types.NumberValue(big.NewFloat(2))
			}
			if o.in == "" {
				set(o.name, v)
				continue
			}
			if blocks[o.in] == nil {
				blocks[o.in] = make(map[string]attr.Value)
			}
			blocks[o.in][o.name] = v
		}
		for name, values := range blocks {
			typ := resp.Schema.Blocks[name].Type().(types.ObjectType)
			for attribute, of := range typ.AttrTypes {
				if values[attribute] == nil {
					values[attribute] = nullOf(t, of)
				}
			}
			set(name, types.ObjectValueMust(typ.AttrTypes, values))
		}
		p, known, diags := m.placement("")
		if !known || diags.HasError() {
			t.Fatalf("known: %v, %v", known, diags)
		}
		return p
	}
	all := with(nil)
	options := placementOptions()
	if len(options) < 30 {
		t.Errorf("only %d options found", len(options))
	}
	for _, o := range options {
		if reflect.DeepEqual(with(&o), all) {
			t.Errorf("nobody reads %s.%s", o.in, o.name)
		}
	}
	for i := range reflect.TypeOf(all).NumField() {
		if name := reflect.TypeOf(all).Field(i).Name; name == "AgentImage" || name == "Program" {
			continue // of a program: see TestImagesOfAProgram
		}
		if reflect.ValueOf(all).Field(i).IsZero() {
			t.Errorf("no argument gives %s", reflect.TypeOf(all).Field(i).Name)
		}
	}
}
