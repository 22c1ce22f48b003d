package gke

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Some attributes are read only where they are declared: what others have set there
// is not ours. An update that failed may have set them already. The state has to say
// so: else nothing takes them away when the configuration of before is declared again.

// declareTried declares in a state what a failed update has declared: for the read that follows,
// and after one that could not see it yet.
func declareTried[M any](state, plan *M) {
	if of, ok := any(state).(interface{ tried(plan *M) }); ok {
		of.tried(plan)
	}
}

func (m *clusterModel) tried(plan *clusterModel) {
	m.AuthorizedNetworks = eitherOf(m.AuthorizedNetworks, plan.AuthorizedNetworks)
	m.MaintenanceWindow = eitherOf(m.MaintenanceWindow, plan.MaintenanceWindow)
	if given(plan.Exclusions) {
		all := maps.Clone(plan.Exclusions.Elements())
		maps.Copy(all, m.Exclusions.Elements())
		m.Exclusions = types.MapValueMust(exclusionType(), all)
	}
}

func (m *poolModel) tried(plan *poolModel) {
	m.Kubelet = allOf(m.Kubelet, plan.Kubelet)
	m.Linux = allOf(m.Linux, plan.Linux)
	m.Drain = allOf(m.Drain, plan.Drain)
	m.BlueGreen = allOf(m.BlueGreen, plan.BlueGreen)
}

// eitherOf is what was declared before, else what a plan declares.
func eitherOf[V attr.Value](was, plan V) V {
	if was.IsNull() && given(plan) {
		return plan
	}
	return was
}

// allOf is eitherOf for each attribute of an object.
func allOf(was, plan types.Object) types.Object {
	if was.IsNull() || !given(plan) {
		return eitherOf(was, plan)
	}
	all := was.Attributes()
	for name, v := range plan.Attributes() {
		all[name] = eitherOf(all[name], v)
	}
	return types.ObjectValueMust(was.AttributeTypes(context.Background()), all)
}
