package live

import (
	"context"
	"fmt"
	"strings"

	"github.com/zclconf/go-cty/cty"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/kube/object"
)

// Room is what the nodes of a cluster have for pods: those that it has, and those
// that a plan brings.
type Room struct {
	cluster  *Cluster
	capacity connect.Capacity
	doubt    string // why there may be more than that; "" where there is not
	asked    bool   // whether the cluster grows is in doubt
}

// Room looks at the nodes once; all is the plan. grows is what the plan makes in the
// cluster that may add nodes, "" for nothing.
func (c *Cluster) Room(ctx context.Context, all providers.Review, grows string) *Room {
	r := &Room{cluster: c}
	nodes, err := c.Nodes(ctx)
	switch {
	case apierrors.IsForbidden(err):
		r.doubt = "the user of the connection may not list nodes"
	case err != nil:
		r.doubt = "the nodes cannot be listed (" + strings.TrimSuffix(err.Error(), ".") + ")"
	}
	for i := range nodes {
		r.capacity.Groups = append(r.capacity.Groups, groupOf(&nodes[i]))
	}
	if grows != "" && r.doubt == "" {
		r.doubt = grows + " may add nodes"
	}
	if len(all.Others) > 0 && r.doubt == "" {
		r.doubt = all.Others[0] + " may add nodes, or what they offer"
	}
	for _, p := range all.Planned {
		groups, doubt := c.plannedNodes(p)
		r.capacity.Groups = append(r.capacity.Groups, groups...)
		if doubt != "" && r.doubt == "" {
			r.doubt = doubt
		}
	}
	return r
}

// Refusal says of pods that no node could ever take them.
type Refusal struct {
	connect.Demand
	Why string // a sentence without its end
}

// Detail is the text of a diagnostic.
func (r Refusal) Detail() string {
	return r.Why + ". Ask for less, or declare nodes that have it. Where nodes come in a way that stoke does not see, set assume_nodes = true."
}

// Assumed returns the note about pods whose nodes the configuration assumes.
func (r Refusal) Assumed(address string) providers.Note {
	return providers.Note{Address: address, Kind: providers.NoteForecast, Text: r.Why + "; assume_nodes promises one"}
}

// CheckRoom looks at what pods of the resource with an address ask for: refused are those
// that no node could ever take, notes are remarks on the others. discovers is what
// the plan makes in the cluster that may give its nodes labels and extended
// resources, "" for nothing.
func (r *Room) CheckRoom(ctx context.Context, address string, demands []connect.Demand, discovers string) (refused []Refusal, notes []providers.Note) {
	unsure := map[string][]connect.Demand{}
	var whys []string
	for _, d := range demands {
		v := r.verdict(ctx, d, discovers)
		switch {
		case v.Fit == connect.Never:
			whose := "The pods of " + d.Name
			if strings.HasPrefix(d.Name, "Pod ") {
				whose = d.Name
			}
			refused = append(refused, Refusal{d, fmt.Sprintf("%s would wait for a node for ever: %s", whose, v.Why)})
		case v.Fit == connect.Unsure:
			if unsure[v.Why] == nil {
				whys = append(whys, v.Why)
			}
			unsure[v.Why] = append(unsure[v.Why], d)
		case v.Most != connect.NotKnown && v.Most < d.Count && !d.Each:
			notes = append(notes, providers.Note{Address: address, Kind: providers.NoteForecast, Number: float64(v.Most),
				Text: fmt.Sprintf("%s has %d pods; even if nothing else ran, its cluster has room for %d of them at a time", d.Name, d.Count, v.Most)})
		}
	}
	for _, why := range whys {
		notes = append(notes, UnknownRoom(address, unsure[why], why))
	}
	return refused, notes
}

// UnknownRoom notes that nobody knows whether pods have a place.
func UnknownRoom(address string, of []connect.Demand, why string) providers.Note {
	var names []string
	for _, d := range of {
		names = append(names, d.Name)
	}
	return providers.Note{Address: address, Kind: providers.NoteForecast,
		Text: fmt.Sprintf("stoke cannot tell whether a node can take the pods of %s: %s", strings.Join(names, ", "), why)}
}

// verdict is whether nodes can take the pods of a demand, as far as all that may
// come is known.
func (r *Room) verdict(ctx context.Context, d connect.Demand, discovers string) connect.Verdict {
	v := d.CheckOn(r.capacity)
	if v.Fit == connect.Never {
		r.growth(ctx)
	}
	if v.Fit == connect.Never && r.doubt == "" && v.Discovered && discovers != "" {
		v.Fit, v.Why = connect.Unsure, v.Why+" now, and "+discovers+" may bring it"
	}
	if v.Fit != connect.Fits && r.doubt != "" && d.Unclear == "" {
		v.Fit, v.Why = connect.Unsure, r.doubt
	}
	return v
}

// growth asks, once and where it matters, whether something adds nodes to the cluster.
func (r *Room) growth(ctx context.Context) {
	if r.asked || r.doubt != "" {
		return
	}
	r.asked = true
	switch by, err := r.cluster.Grows(ctx); {
	case err != nil:
		r.doubt = "whether an autoscaler adds nodes cannot be read (" + strings.TrimSuffix(err.Error(), ".") + ")"
	case by != "":
		r.doubt = by + " adds nodes"
	}
}

// plannedNodes are the nodes that an instance will have in a cluster; doubt is why
// it may have others.
func (c *Cluster) plannedNodes(p providers.PlannedInstance) (groups []connect.NodeGroup, doubt string) {
	if !isObject(p.Planned) || !p.Planned.IsKnown() {
		return nil, ""
	}
	where := c.belongsTo(p.Planned)
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

// belongsTo tells whether an instance is in a cluster, or is the cluster: by its
// cluster_id, or by the connection that is its access or its cluster.
func (c *Cluster) belongsTo(v cty.Value) belongs {
	if is, told := compareAttribute(v, "cluster_id", c.ID); told {
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
		if is, told := compareAttribute(connection, "id", c.ID); told {
			return is
		}
		if is, told := compareAttribute(connection, "endpoint", c.Endpoint); told {
			return is
		}
	}
	return perhaps
}

// compareAttribute compares an attribute with what a cluster has; told is false where one of
// them says nothing.
func compareAttribute(v cty.Value, attribute, want string) (is belongs, told bool) {
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

// Brings reports what an object of a kind may do to the nodes of its cluster: add
// some, like objects of Karpenter and the Cluster API, or give them labels and
// extended resources, like device plugins, feature discovery and their operators.
func Brings(kind string) (nodes, features bool) {
	switch kind {
	case "NodePool", "NodeClaim", "Machine", "MachineSet", "MachineDeployment", "MachinePool":
		return true, false
	case "DaemonSet", "Node", "NodeFeatureRule", "ClusterPolicy":
		return false, true
	}
	return false, false
}

// PlannedNodes names, of what a plan makes or changes in the cluster, the first objects
// that may add nodes, and the first that may give them labels and extended
// resources, as "DaemonSet kube-system/plugin of kube_manifest.plugin"; "" for none.
func (c *Cluster) PlannedNodes(all []providers.PlannedInstance) (grows, discovers string) {
	for _, p := range all {
		if !isObject(p.Planned) || !p.Planned.Type().HasAttribute("objects") || c.belongsTo(p.Planned) == not || p.Prior != cty.NilVal && p.Prior.RawEquals(p.Planned) {
			continue
		}
		objects := p.Planned.GetAttr("objects")
		if !objects.IsKnown() {
			grows, discovers = first(grows, p.Address), first(discovers, p.Address)
			continue
		}
		if objects.IsNull() || !objects.CanIterateElements() {
			continue
		}
		for name := range objects.AsValueMap() {
			k, err := object.ParseKey(name)
			if err != nil {
				continue
			}
			nodes, features := Brings(k.Kind)
			if nodes {
				grows = first(grows, k.Title()+" of "+p.Address)
			}
			if features {
				discovers = first(discovers, k.Title()+" of "+p.Address)
			}
		}
	}
	return grows, discovers
}

// first is the one of two names that comes first; "" is none.
func first(a, b string) string {
	if a == "" {
		return b
	}
	return min(a, b)
}
