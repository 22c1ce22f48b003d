package gke

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/stokehq/stoke/providers/connect"
)

// windowModel is when upgrades may happen.
type windowModel struct {
	Start      types.String `tfsdk:"start"`
	End        types.String `tfsdk:"end"`
	Recurrence types.String `tfsdk:"recurrence"`
}

// excludeModel is when they may not.
type excludeModel struct {
	Start types.String `tfsdk:"start"`
	End   types.String `tfsdk:"end"`
	Scope types.String `tfsdk:"scope"`
}

func windowSchema() schema.Attribute {
	return schema.SingleNestedAttribute{Optional: true, Description: "When Google may upgrade things. Taken out, upgrades may happen at any time again; a window that was set elsewhere stays while none is declared.", Attributes: map[string]schema.Attribute{
		"start":      schema.StringAttribute{Required: true, Description: `Beginning of the first window, such as "2026-01-03T02:00:00Z".`},
		"end":        schema.StringAttribute{Required: true, Description: "End of the first window."},
		"recurrence": schema.StringAttribute{Required: true, Description: `How it is repeated, such as "FREQ=WEEKLY;BYDAY=SA,SU".`},
	}}
}

func exclusionSchema() schema.Attribute {
	return schema.MapNestedAttribute{Optional: true, Description: "Periods without maintenance, by name. Exclusions with other names, set outside stoke, stay.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
		"start": schema.StringAttribute{Required: true, Description: "Beginning."},
		"end":   schema.StringAttribute{Required: true, Description: "End."},
		"scope": schema.StringAttribute{Optional: true, Description: "NO_UPGRADES, which is the default, NO_MINOR_UPGRADES, or NO_MINOR_OR_NODE_UPGRADES."},
	}}}
}

func exclusionType() attr.Type {
	return exclusionSchema().(schema.MapNestedAttribute).NestedObject.Type()
}

// exclusions are those declared; nil where they are not known yet.
func (m *clusterModel) exclusions() map[string]excludeModel {
	if !isGiven(m.Exclusions) || !allGiven(slices.Collect(maps.Values(m.Exclusions.Elements()))) {
		return nil
	}
	var all map[string]excludeModel
	diags := m.Exclusions.ElementsAs(context.Background(), &all, false)
	return connect.MustConvert(all, diags)
}

// checkMaintenance rejects invalid windows, which would otherwise be sent as
// the year 1.
func (m *clusterModel) checkMaintenance(j job) {
	moments := func(at path.Path, start, end types.String) {
		from, known := readTime(j, at.AtName("start"), start)
		to, also := readTime(j, at.AtName("end"), end)
		if known && also && !to.After(from) {
			j.diags.AddAttributeError(at.AtName("end"), "End before the start", "The end of a window must be after its start.")
		}
	}
	if w := objectOf[windowModel](m.MaintenanceWindow); w != nil {
		at := path.Root("maintenance_window")
		moments(at, w.Start, w.End)
		if r := w.Recurrence.ValueString(); isGiven(w.Recurrence) && !strings.HasPrefix(r, "FREQ=") {
			j.diags.AddAttributeError(at.AtName("recurrence"), "Invalid recurrence", fmt.Sprintf("%q is not a rule of "+
				"RFC 5545 such as FREQ=WEEKLY;BYDAY=SA,SU.", r))
		}
	}
	for name, e := range m.exclusions() {
		at := path.Root("maintenance_exclusions").AtMapKey(name)
		moments(at, e.Start, e.End)
		all := slices.Sorted(maps.Keys(containerpb.MaintenanceExclusionOptions_Scope_value))
		if s := e.Scope.ValueString(); s != "" && !slices.Contains(all, s) {
			j.diags.AddAttributeError(at.AtName("scope"), "Unknown scope", fmt.Sprintf("%q is not valid: give one of %s.", s, strings.Join(all, ", ")))
		}
	}
}

// readTime reads a time; ok is false for a text that is not a time or is not
// known yet.
func readTime(j job, at path.Path, v types.String) (t time.Time, ok bool) {
	if !isGiven(v) {
		return t, false
	}
	t, err := time.Parse(time.RFC3339, v.ValueString())
	if err != nil {
		j.diags.AddAttributeError(at, "Invalid time", fmt.Sprintf("%q is not a time such as 2026-01-03T02:00:00Z.", v.ValueString()))
	}
	return t, err == nil
}

// maintenance returns the planned policy: the declared arguments over the
// observed policy. Settings from the console are kept, a daily window and a
// disruption budget too; entries that were declared before and are no longer
// declared are removed.
func (m *clusterModel) maintenance(prior *clusterModel, now *containerpb.MaintenancePolicy) *containerpb.MaintenancePolicy {
	p := &containerpb.MaintenancePolicy{}
	if now != nil {
		p = proto.Clone(now).(*containerpb.MaintenancePolicy)
	}
	if p.Window == nil {
		p.Window = &containerpb.MaintenanceWindow{}
	}
	w := p.Window
	if d := objectOf[windowModel](m.MaintenanceWindow); d != nil {
		w.Policy = &containerpb.MaintenanceWindow_RecurringWindow{RecurringWindow: &containerpb.RecurringTimeWindow{Window: window(d.Start, d.End), Recurrence: d.Recurrence.ValueString()}}
	} else if !prior.MaintenanceWindow.IsNull() {
		w.Policy = nil
	}
	for name := range prior.exclusions() {
		delete(w.MaintenanceExclusions, name)
	}
	for name, e := range m.exclusions() {
		if w.MaintenanceExclusions == nil {
			w.MaintenanceExclusions = map[string]*containerpb.TimeWindow{}
		}
		t := window(e.Start, e.End)
		t.Options = &containerpb.TimeWindow_MaintenanceExclusionOptions{MaintenanceExclusionOptions: &containerpb.MaintenanceExclusionOptions{
			Scope: containerpb.MaintenanceExclusionOptions_Scope(containerpb.MaintenanceExclusionOptions_Scope_value[e.Scope.ValueString()])}}
		w.MaintenanceExclusions[name] = t
	}
	return p
}

func window(start, end types.String) *containerpb.TimeWindow {
	stamp := func(s types.String) *timestamppb.Timestamp {
		t, _ := time.Parse(time.RFC3339, s.ValueString()) // checkMaintenance has rejected invalid ones
		return timestamppb.New(t)
	}
	return &containerpb.TimeWindow{StartTime: stamp(start), EndTime: stamp(end)}
}

// sendMaintenance replaces the whole policy, of the version that is there.
func sendMaintenance(ctx context.Context, m, prior *clusterModel, j job) (*containerpb.Operation, error) {
	now, err := m.get(ctx, j.cloud)
	if err != nil {
		return nil, err
	}
	policy := m.maintenance(prior, now.GetMaintenancePolicy())
	policy.ResourceVersion = now.GetMaintenancePolicy().GetResourceVersion()
	return j.cloud.Clusters.SetMaintenancePolicy(ctx, &containerpb.SetMaintenancePolicyRequest{Name: m.path(j.cloud.Project), MaintenancePolicy: policy})
}

// readMaintenance reads the declared arguments, and all of an imported cluster.
func (m *clusterModel) readMaintenance(p *containerpb.MaintenancePolicy, imported bool) {
	if r := p.GetWindow().GetRecurringWindow(); r == nil {
		m.MaintenanceWindow = types.ObjectNull(typesOf(windowSchema()))
	} else if isGiven(m.MaintenanceWindow) || imported {
		was := windowModel{}
		if d := objectOf[windowModel](m.MaintenanceWindow); d != nil {
			was = *d
		}
		now := windowModel{moment(was.Start, r.GetWindow().GetStartTime()), moment(was.End, r.GetWindow().GetEndTime()), recurrence(was.Recurrence, r.GetRecurrence())}
		m.MaintenanceWindow = connect.MustConvert(types.ObjectValueFrom(context.Background(), typesOf(windowSchema()), now))
	}
	declared, all := m.exclusions(), map[string]excludeModel{}
	for name, e := range p.GetWindow().GetMaintenanceExclusions() {
		was, ours := declared[name]
		if !ours && !imported {
			continue
		}
		scope := e.GetMaintenanceExclusionOptions().GetScope()
		x := excludeModel{moment(was.Start, e.GetStartTime()), moment(was.End, e.GetEndTime()), types.StringValue(scope.String())}
		if scope == 0 && was.Scope.ValueString() == "" { // the default, which need not be declared
			x.Scope = types.StringNull()
		}
		all[name] = x
	}
	if m.Exclusions.IsNull() && len(all) == 0 {
		m.Exclusions = types.MapNull(exclusionType())
		return
	}
	m.Exclusions = connect.MustConvert(types.MapValueFrom(context.Background(), exclusionType(), all))
}

// recurrence keeps the declared form of a rule: every day is FREQ=DAILY, and also all days of the
// week in any order.
func recurrence(was types.String, now string) types.String {
	if isGiven(was) && slices.Equal(ruleParts(was.ValueString()), ruleParts(now)) {
		return was
	}
	return types.StringValue(now)
}

// ruleParts are the parts of a rule of RFC 5545, in an order that does not depend on its text.
func ruleParts(rule string) []string {
	parts := strings.Split(strings.ToUpper(strings.TrimPrefix(strings.TrimPrefix(rule, "RRULE:"), "rrule:")), ";")
	for i, p := range parts {
		if days, ok := strings.CutPrefix(p, "BYDAY="); ok {
			all := strings.Split(days, ",")
			slices.Sort(all)
			parts[i] = "BYDAY=" + strings.Join(slices.Compact(all), ",")
		}
	}
	slices.Sort(parts)
	parts = slices.DeleteFunc(slices.Compact(parts), func(p string) bool { return p == "INTERVAL=1" || p == "" })
	if slices.Equal(parts, []string{"BYDAY=FR,MO,SA,SU,TH,TU,WE", "FREQ=WEEKLY"}) {
		return []string{"FREQ=DAILY"}
	}
	return parts
}

// moment keeps the declared form of a time.
func moment(was types.String, t *timestamppb.Timestamp) types.String {
	if is, err := time.Parse(time.RFC3339, was.ValueString()); err == nil && is.Equal(t.AsTime()) {
		return was
	}
	return types.StringValue(t.AsTime().Format(time.RFC3339))
}
