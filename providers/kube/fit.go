package kube

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/kube/live"
)

// supply is what a cluster has and will have.
type supply struct {
	connect.Capacity
	// doubt is why there may be more than that; "" where there is not.
	doubt string
	asked bool // whether the cluster grows is in doubt
}

// fit refuses pods that no node of their cluster could ever take.
func (r *reviewing) fit(ctx context.Context) {
	clusters := map[string]*supply{}
	for _, p := range r.all.Planned {
		s, ok := r.sights[p.Address]
		if !ok || p.Source != Source || !declares(p.Planned) || len(s.demands) == 0 {
			continue
		}
		if s.cluster == nil {
			r.untold(p, s.demands, "their cluster is not known yet")
			continue
		}
		key := s.cluster.ID
		if key == "" {
			key = s.cluster.Endpoint
		}
		have, seen := clusters[key]
		if !seen {
			have = r.supplyOf(ctx, s.cluster)
			clusters[key] = have
		}
		r.fitIn(ctx, p, s, have)
	}
}

// fitIn looks at the pods of one resource.
func (r *reviewing) fitIn(ctx context.Context, p providers.PlannedInstance, s sight, have *supply) {
	unsure := map[string][]connect.Demand{}
	var whys []string
	for _, d := range s.demands {
		v := d.On(have.Capacity)
		if v.Fit == connect.Never {
			have.growth(ctx, s.cluster)
		}
		if v.Fit == connect.Never && have.doubt == "" && v.Discovered {
			if by := r.discovers(s.cluster); by != "" {
				v.Fit, v.Why = connect.Unsure, v.Why+" now, and "+by+" may bring it"
			}
		}
		if v.Fit != connect.Fits && have.doubt != "" && d.Unclear == "" {
			v.Fit, v.Why = connect.Unsure, have.doubt
		}
		switch {
		case v.Fit == connect.Never:
			whose := "The pods of " + d.Name
			if strings.HasPrefix(d.Name, "Pod ") {
				whose = d.Name
			}
			r.refuse(p, "No node can take the pods", fmt.Sprintf("%s would wait for a node for ever: %s. Ask for less, or declare nodes that have it.", whose, v.Why))
		case v.Fit == connect.Unsure:
			if unsure[v.Why] == nil {
				whys = append(whys, v.Why)
			}
			unsure[v.Why] = append(unsure[v.Why], d)
		case v.Most != connect.NotKnown && v.Most < d.Count && !d.Each:
			r.notes = append(r.notes, providers.Note{Address: p.Address, Kind: providers.NoteForecast, Number: float64(v.Most),
				Text: fmt.Sprintf("%s has %d pods; even if nothing else ran, its cluster has room for %d of them at a time", d.Name, d.Count, v.Most)})
		}
	}
	for _, why := range whys {
		r.untold(p, unsure[why], why)
	}
}

// untold notes that nobody knows whether pods have a place.
func (r *reviewing) untold(p providers.PlannedInstance, of []connect.Demand, why string) {
	var names []string
	for _, d := range of {
		names = append(names, d.Name)
	}
	r.notes = append(r.notes, providers.Note{Address: p.Address, Kind: providers.NoteForecast,
		Text: fmt.Sprintf("whether a node can take the pods of %s cannot be told: %s", strings.Join(names, ", "), why)})
}

// supplyOf is what a cluster has and what the plan adds to it.
func (r *reviewing) supplyOf(ctx context.Context, c *live.Cluster) *supply {
	s := &supply{}
	nodes, err := c.Nodes(ctx)
	switch {
	case apierrors.IsForbidden(err):
		s.doubt = "the user of the connection may not list nodes"
	case err != nil:
		s.doubt = "the nodes cannot be listed (" + strings.TrimSuffix(sentence(err), ".") + ")"
	}
	for i := range nodes {
		s.Groups = append(s.Groups, groupOf(&nodes[i]))
	}
	if by := r.making(c, func(s sight) []string { return s.grows }); by != "" && s.doubt == "" {
		s.doubt = by + " may add nodes"
	}
	if len(r.all.Others) > 0 && s.doubt == "" {
		s.doubt = r.all.Others[0] + " may add nodes, or what they offer"
	}
	for _, p := range r.all.Planned {
		groups, doubt := plannedNodes(p, c)
		s.Groups = append(s.Groups, groups...)
		if doubt != "" && s.doubt == "" {
			s.doubt = doubt
		}
	}
	return s
}

// growth asks, once and where it matters, whether something adds nodes to the cluster.
func (s *supply) growth(ctx context.Context, c *live.Cluster) {
	if s.asked || s.doubt != "" {
		return
	}
	s.asked = true
	switch by, err := c.Grows(ctx); {
	case err != nil:
		s.doubt = "whether an autoscaler adds nodes cannot be read (" + strings.TrimSuffix(sentence(err), ".") + ")"
	case by != "":
		s.doubt = by + " adds nodes"
	}
}

// plannedNodes are the nodes that an instance will have in a cluster; doubt is why
// it may have others.
func plannedNodes(p providers.PlannedInstance, c *live.Cluster) (groups []connect.NodeGroup, doubt string) {
	if p.Source == Source || !isObject(p.Planned) || !p.Planned.IsKnown() {
		return nil, ""
	}
	where := within(p.Planned, c)
	if where == not {
		return nil, ""
	}
	if !p.Planned.Type().HasAttribute("capacity") || !p.Planned.Type().AttributeType("capacity").Equals(connect.CapacityType) {
		brings := strings.HasSuffix(p.Type, "_node") || strings.HasSuffix(p.Type, "_node_pool") || strings.HasSuffix(p.Type, "_gpu_driver")
		if brings && (p.Prior == cty.NilVal || p.Prior.IsNull() || !p.Prior.RawEquals(p.Planned)) {
			return nil, "what " + p.Address + " brings is not known"
		}
		return nil, ""
	}
	v := p.Planned.GetAttr("capacity")
	if v.IsKnown() && v.IsNull() {
		return nil, ""
	}
	capacity, err := connect.CapacityFromValue(v)
	switch {
	case err != nil:
		return nil, "what " + p.Address + " brings is not known yet"
	case where == perhaps:
		return nil, "whether the nodes of " + p.Address + " are in this cluster is not known yet"
	}
	for _, g := range capacity.Groups {
		if g.Name == "" {
			g.Name = p.Address
		}
		groups = append(groups, g)
	}
	return groups, ""
}

func isObject(v cty.Value) bool {
	return v != cty.NilVal && !v.IsNull() && v.Type().IsObjectType()
}

// belongs is whether an instance is a cluster's.
type belongs int

const (
	not belongs = iota
	perhaps
	certain
)

// within tells whether an instance is in a cluster, or is the cluster: by its
// cluster_id, or by the connection that is its access or its cluster.
func within(v cty.Value, c *live.Cluster) belongs {
	if is, told := same(v, "cluster_id", c.ID); told {
		return is
	}
	for _, name := range []string{"access", "cluster"} {
		if !v.Type().HasAttribute(name) || !v.Type().AttributeType(name).IsObjectType() {
			continue
		}
		connection := v.GetAttr(name)
		if !connection.IsKnown() {
			return perhaps
		}
		if connection.IsNull() {
			continue
		}
		if is, told := same(connection, "id", c.ID); told {
			return is
		}
		if is, told := same(connection, "endpoint", c.Endpoint); told {
			return is
		}
	}
	return perhaps
}

// same compares an attribute with what a cluster has; told is false where one of
// them says nothing.
func same(v cty.Value, attribute, want string) (is belongs, told bool) {
	if !v.Type().HasAttribute(attribute) || v.Type().AttributeType(attribute) != cty.String {
		return not, false
	}
	switch have := v.GetAttr(attribute); {
	case !have.IsKnown():
		return perhaps, true
	case have.IsNull() || have.AsString() == "" || want == "":
		return not, false
	case have.AsString() == want:
		return certain, true
	}
	return not, true
}

// discovers names what the plan makes in a cluster that may give its nodes labels
// and extended resources: device plugins and feature discovery run as DaemonSets.
func (r *reviewing) discovers(c *live.Cluster) string {
	return r.making(c, func(s sight) []string { return s.discover })
}

// making names the first of some things that the plan makes in a cluster.
func (r *reviewing) making(c *live.Cluster, what func(sight) []string) string {
	var all []string
	for address, s := range r.sights {
		if s.cluster != nil && (s.cluster == c || s.cluster.ID != "" && s.cluster.ID == c.ID) {
			for _, name := range what(s) {
				all = append(all, name+" of "+address)
			}
		}
	}
	if len(all) == 0 {
		return ""
	}
	return slices.Min(all)
}
