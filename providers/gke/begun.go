package gke

import (
	"context"
	"encoding/json"
	"maps"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// unfinishedReason is the recorded reason why an apply has not seen the object finished. An
// object that is not well for another reason is not stoke's to finish.
type unfinishedReason string

const (
	begunCreate unfinishedReason = "create"
	begunUpdate unfinishedReason = "update"
)

// begunKey and markKey are the keys of private data for this reason, and for the
// mark of an object that was not read yet.
const begunKey, markKey = "begun", "mark"

type privateGetter interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

type privateSetter interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func readBegun(ctx context.Context, p privateGetter) unfinishedReason {
	return unfinishedReason(readPrivate(ctx, p, begunKey))
}

func readPrivate(ctx context.Context, p privateGetter, key string) (s string) {
	if text, diags := p.GetKey(ctx, key); !diags.HasError() {
		_ = json.Unmarshal(text, &s) // what cannot be read was not written by us
	}
	return s
}

func writeBegun(ctx context.Context, p privateSetter, b unfinishedReason) diag.Diagnostics {
	return p.SetKey(ctx, begunKey, strconv.AppendQuote(nil, string(b)))
}

// Some attributes are read only where they are declared: what others have set there
// is not ours. An update that failed may have set them already. The state has to say
// so: else nothing takes them away when the configuration of before is declared again.

// declareTried declares in a state the arguments that a failed update has declared: for
// the read that follows, and after a read that could not see them yet.
func declareTried[M any](state, plan *M) {
	switch m := any(state).(type) {
	case *clusterModel:
		declareTriedCluster(m, any(plan).(*clusterModel))
	case *poolModel:
		declareTriedPool(m, any(plan).(*poolModel))
	}
}

func declareTriedCluster(m, plan *clusterModel) {
	m.AuthorizedNetworks = eitherOf(m.AuthorizedNetworks, plan.AuthorizedNetworks)
	m.MaintenanceWindow = eitherOf(m.MaintenanceWindow, plan.MaintenanceWindow)
	if isGiven(plan.Exclusions) {
		all := maps.Clone(plan.Exclusions.Elements())
		maps.Copy(all, m.Exclusions.Elements())
		m.Exclusions = types.MapValueMust(exclusionType(), all)
	}
}

func declareTriedPool(m, plan *poolModel) {
	m.Kubelet = allOf(m.Kubelet, plan.Kubelet)
	m.Linux = allOf(m.Linux, plan.Linux)
	m.Drain = allOf(m.Drain, plan.Drain)
	m.BlueGreen = allOf(m.BlueGreen, plan.BlueGreen)
}

// eitherOf returns the value that was declared before, else the value of a plan.
func eitherOf[V attr.Value](was, plan V) V {
	if was.IsNull() && isGiven(plan) {
		return plan
	}
	return was
}

// allOf is eitherOf for each attribute of an object.
func allOf(was, plan types.Object) types.Object {
	if was.IsNull() || !isGiven(plan) {
		return eitherOf(was, plan)
	}
	all := was.Attributes()
	for name, v := range plan.Attributes() {
		all[name] = eitherOf(all[name], v)
	}
	return types.ObjectValueMust(was.AttributeTypes(context.Background()), all)
}
