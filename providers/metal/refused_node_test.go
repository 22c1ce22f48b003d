package metal

import (
	"maps"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// nodeConfigs are configurations of a node whose updates change its labels, its taints
// and arguments of its kubelet, and then its name.
func nodeConfigs(x *plant) (all []cty.Value) {
	cluster := planted{"metal_cluster", cty.NullVal(x.schema.Resources["metal_cluster"].Block.ImpliedType()), nil}
	join := x.made(cluster, clusterConfigs(x)[0], "the cluster").state.GetAttr("join")
	ty := x.schema.Resources["metal_node"].Block.ImpliedType()
	taint := func(key string) cty.Value {
		return cty.ListVal([]cty.Value{fillObject(ty.AttributeType("taints").ElementType(), map[string]cty.Value{"key": cty.StringVal(key), "effect": cty.StringVal("NoSchedule")})})
	}
	given := map[string]cty.Value{
		"host": x.way(x.worker, ty.AttributeType("host")), "cluster": join, "private_address": cty.StringVal(x.worker.ip), "node_name": cty.StringVal("worker"),
		"labels": cty.MapVal(map[string]cty.Value{"pool": cty.StringVal("a"), "node-role.kubernetes.io/worker": cty.StringVal("")}), "taints": taint("a"),
	}
	all = append(all, x.declared("metal_node", given))
	maps.Copy(given, map[string]cty.Value{
		"labels": cty.MapVal(map[string]cty.Value{"pool": cty.StringVal("b")}), "taints": taint("b"), "max_pods": cty.NumberIntVal(60),
	})
	all = append(all, x.declared("metal_node", given))
	given["node_name"] = cty.StringVal("renamed")
	return append(all, x.declared("metal_node", given))
}

// TestPlanAfterARefusedNode: each command over SSH, on the node's machine and on the
// control plane's machine, and each request of each apply of a node fails once. The next
// plan has the missing part, also where the change is taken back, and the next apply makes
// it.
func TestPlanAfterARefusedNode(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of applies")
	}
	refusedLife{kind: "metal_node", configs: nodeConfigs}.run(t)
}
