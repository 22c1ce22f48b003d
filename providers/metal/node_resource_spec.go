package metal

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/addons"
	"github.com/stokehq/stoke/providers/metal/drain"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
	"github.com/stokehq/stoke/providers/metal/member"
)

// The limits of waiting where timeouts says nothing.
const (
	nodeReadyLimit  = 15 * time.Minute
	nodeRemoveLimit = 20 * time.Minute
)

// gpuTaintValue is the value that NVIDIA uses: tolerations match only the key.
const gpuTaintValue = "present"

// declaredNode is what the model declares in the terms of Go.
type declaredNode struct {
	labels map[string]string
	taints []core.Taint // without the GPU taint
	gpus   map[string]int64
	ignore []string
}

// read takes the model apart; ok is false while something of it is unknown.
func (m *nodeModel) read(ctx context.Context, diags *diag.Diagnostics) (d declaredNode, ok bool) {
	if !isWhollyKnown(ctx, m.Labels, m.Taints, m.GPUs, m.GPUResources, m.Ignore, m.GPUTaint, m.MaxPods, m.ResolvConf, m.NodeName, m.PrivateAddress, m.Verify, m.VerifyImage) {
		return d, false
	}
	var taints []nodeTaintModel
	before := diags.ErrorsCount()
	diags.Append(m.Labels.ElementsAs(ctx, &d.labels, false)...)
	diags.Append(m.Taints.ElementsAs(ctx, &taints, false)...)
	diags.Append(m.GPUResources.ElementsAs(ctx, &d.gpus, false)...)
	diags.Append(m.Ignore.ElementsAs(ctx, &d.ignore, false)...)
	for _, t := range taints {
		d.taints = append(d.taints, core.Taint{Key: t.Key.ValueString(), Value: t.Value.ValueString(), Effect: core.TaintEffect(t.Effect.ValueString())})
	}
	if !m.GPUs.IsNull() && !m.GPUResources.IsNull() {
		diags.AddAttributeError(path.Root("gpu_resources"), "GPUs are declared twice", "Give gpus, a number of whole GPUs, or gpu_resources, where they are divided.")
	}
	if !m.GPUs.IsNull() {
		d.gpus = map[string]int64{member.GPU: m.GPUs.ValueInt64()}
	}
	return d, diags.ErrorsCount() == before
}

// gpuTaints are those that follow from the GPUs.
func (m *nodeModel) gpuTaints(d declaredNode, own bool) []core.Taint {
	if m.GPUTaint.IsNull() && own || !m.GPUTaint.IsNull() && !m.GPUTaint.ValueBool() {
		return nil
	}
	var all []core.Taint
	for _, name := range slices.Sorted(maps.Keys(d.gpus)) {
		if d.gpus[name] > 0 {
			all = append(all, core.Taint{Key: name, Value: gpuTaintValue, Effect: core.TaintEffectNoSchedule})
		}
	}
	return slices.DeleteFunc(all, func(t core.Taint) bool {
		return slices.ContainsFunc(d.taints, func(is core.Taint) bool { return is.MatchTaint(&t) })
	})
}

// allLabels are those declared, and the one by which NVIDIA's device plugin knows
// nodes with GPUs.
func (d declaredNode) allLabels() map[string]string {
	all := maps.Clone(d.labels)
	if _, declared := all[addons.GPUNode]; declared || !slices.ContainsFunc(slices.Collect(maps.Values(d.gpus)), func(n int64) bool { return n > 0 }) {
		return all
	}
	if all == nil {
		all = map[string]string{}
	}
	all[addons.GPUNode] = "true"
	return all
}

// node is what kubeadm is told of the machine, with all labels: see registered.
func (m *nodeModel) node(d declaredNode, name, ip string) kubeadm.Node {
	n := kubeadm.Node{Name: name, IP: ip, Labels: map[string]string{}, MaxPods: int(m.MaxPods.ValueInt64()), IgnorePreflight: d.ignore}
	if file := m.ResolvConf.ValueString(); file != "" {
		n.KubeletArgs = map[string]string{"resolv-conf": file}
	}
	for _, t := range slices.Concat(d.taints, m.gpuTaints(d, false)) {
		n.Taints = append(n.Taints, kubeadm.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
	}
	for key, value := range d.allLabels() {
		if kubeadm.MayRegister(key) {
			n.Labels[key] = value
		}
	}
	return n
}

// member is what the cluster's API is told.
func (m *nodeModel) member(d declaredNode, name string, own bool) member.Spec {
	return member.Spec{
		Name: name, ID: m.ID.ValueString(), Joined: !own, Labels: d.allLabels(), GPUs: d.gpus,
		Taints: slices.Concat(d.taints, m.gpuTaints(d, own)),
	}
}

// address is what the kubelet gives as the node's.
func (m *nodeModel) address(way connect.SSH) (netip.Addr, error) {
	text := m.PrivateAddress.ValueString()
	if text == "" {
		text = way.Address
	}
	ip, err := netip.ParseAddr(text)
	if err != nil {
		return ip, fmt.Errorf("%q is not an IP address: give the machine's address in the cluster's network as "+
			"private_address", text)
	}
	return ip, nil
}

// nodePolicy is what may be done to pods: the cluster's max_unavailable wins.
func (m *nodeModel) nodePolicy(j joinModel) drain.Policy {
	p := m.policy()
	p.Turn = true
	if !j.MaxUnavailable.IsNull() && !j.MaxUnavailable.IsUnknown() {
		p.MaxUnavailable = int(j.MaxUnavailable.ValueInt64())
	}
	return p
}

// validate checks the configuration without the machine, and reports faults at
// their arguments.
func (m *nodeModel) validate(ctx context.Context, diags *diag.Diagnostics) {
	d, ok := m.read(ctx, diags)
	if !ok {
		return
	}
	n := m.node(d, m.NodeName.ValueString(), m.PrivateAddress.ValueString())
	if m.NodeName.IsNull() {
		n.Name = "node"
	}
	if m.PrivateAddress.IsNull() {
		n.IP = "192.0.2.1" // of the way, which is checked for itself
	}
	// A wrong GPU resource is wrong there, and not in the taint that follows.
	n.Taints = nil
	for _, t := range d.taints {
		n.Taints = append(n.Taints, kubeadm.Taint{Key: t.Key, Value: t.Value, Effect: "NoSchedule"}) // its validator knows the effects
	}
	for key := range d.labels {
		if !kubeadm.MayRegister(key) {
			for _, why := range append(validation.IsQualifiedName(key), validation.IsValidLabelValue(d.labels[key])...) {
				diags.AddAttributeError(path.Root("labels").AtMapKey(key), "Invalid label", why+".")
			}
		}
	}
	arguments := map[string]string{"Name": "node_name", "IP": "private_address", "Labels": "labels", "Taints": "taints", "MaxPods": "max_pods", "KubeletArgs": "resolv_conf", "IgnorePreflight": "ignore_preflight_errors"}
	for _, p := range n.Check() {
		field, key, _ := strings.Cut(p.Field, "[")
		at := path.Root(arguments[field])
		if field == "Labels" && key != "" {
			at = at.AtMapKey(strings.Trim(key, `"]`))
		}
		diags.AddAttributeError(at, "Invalid node", fmt.Sprintf("%q %s.", p.Value, p.Why))
	}
	for name, n := range d.gpus {
		if m.GPUResources.IsNull() {
			break // its own number is checked
		}
		if why := validation.IsQualifiedName(name); len(why) > 0 || !strings.Contains(name, "/") || n < 0 {
			diags.AddAttributeError(path.Root("gpu_resources").AtMapKey(name), "Invalid GPU resource", fmt.Sprintf("%q = %d: give names such as nvidia.com/mig-1g.10gb, and 0 or more of them.", name, n))
		}
	}
	if file := m.ResolvConf.ValueString(); !m.ResolvConf.IsNull() && !strings.HasPrefix(file, "/") {
		diags.AddAttributeError(path.Root("resolv_conf"), "Invalid path", fmt.Sprintf("%q: it is a file on the machine, by its absolute path.", file))
	}
}

// observed puts what the cluster has of what is declared into the model; what has
// no attribute is in drift.
func (m *nodeModel) observed(ctx context.Context, want member.Spec, have *member.State, drift map[string]string) diag.Diagnostics {
	var diags diag.Diagnostics
	add := func(more diag.Diagnostics) { diags.Append(more...) }
	if have != nil {
		labels, taints := map[string]attr.Value{}, []nodeTaintModel{}
		var declared []nodeTaintModel
		add(m.Taints.ElementsAs(ctx, &declared, false))
		differs := map[string]member.Difference{}
		for _, d := range member.Diff(want, have) {
			differs[d.What+" "+d.Key] = d
		}
		for key, value := range m.Labels.Elements() {
			switch is, there := have.Node.Labels[key]; {
			case there && differs["label "+key].What != "":
				labels[key] = types.StringValue(is)
			case there:
				labels[key] = value
			}
			delete(differs, "label "+key)
		}
		for _, t := range declared {
			key := "taint " + t.Key.ValueString() + ":" + t.Effect.ValueString()
			if d, changed := differs[key]; changed && d.Have == "" {
				delete(differs, key)
				continue
			} else if changed {
				_, value, _ := strings.Cut(strings.TrimSuffix(d.Have, ":"+t.Effect.ValueString()), "=")
				t.Value = types.StringValue(value)
				delete(differs, key)
			}
			taints = append(taints, t)
		}
		for key, d := range differs { // the GPU taint
			drift[key] = d.Have
		}
		if !m.Labels.IsNull() {
			is, more := types.MapValue(types.StringType, labels)
			m.Labels = is
			add(more)
		}
		if !m.Taints.IsNull() {
			is, more := types.ListValueFrom(ctx, m.Taints.ElementType(ctx), taints)
			m.Taints = is
			add(more)
		}
	}
	all := map[string]attr.Value{}
	for fact, is := range drift {
		if is == "" {
			is = "missing"
		}
		all[fact] = types.StringValue(is)
	}
	var more diag.Diagnostics
	m.Drift, more = types.MapValue(types.StringType, all)
	add(more)
	m.Capacity, more = nodeCapacity(ctx, want, have)
	add(more)
	return diags
}

// nodeCapacity is what pods may have of a node; null where nobody knows.
func nodeCapacity(ctx context.Context, want member.Spec, have *member.State) (types.Object, diag.Diagnostics) {
	if have == nil {
		return types.ObjectNull(connect.CapacityAttribute("").GetType().(types.ObjectType).AttrTypes), nil
	}
	n := have.Node
	amount := func(name core.ResourceName) int64 {
		q, ok := n.Status.Allocatable[name]
		switch {
		case !ok:
			return connect.NotKnown
		case name == core.ResourceCPU:
			return q.MilliValue()
		}
		return q.Value()
	}
	g := connect.NodeGroup{
		Name: n.Name, Min: 1, Max: 1, CPU: amount(core.ResourceCPU), Memory: amount(core.ResourceMemory), EphemeralStorage: amount(core.ResourceEphemeralStorage),
		Pods: amount(core.ResourcePods), Extended: map[string]int64{}, GPUModel: n.Labels["nvidia.com/gpu.product"], Labels: map[string]string{},
	}
	// GPUs that device plugins give the node change by themselves: not a change of
	// this resource.
	for name, count := range want.GPUs {
		g.Extended[name] = count
	}
	for _, key := range []string{core.LabelHostname, core.LabelOSStable, core.LabelArchStable} {
		if value, ok := n.Labels[key]; ok {
			g.Labels[key] = value
		}
	}
	maps.Copy(g.Labels, want.Labels)
	for _, t := range n.Spec.Taints {
		declared := slices.ContainsFunc(want.Taints, func(is core.Taint) bool { return is.MatchTaint(&t) })
		if declared || t.Key == "node-role.kubernetes.io/control-plane" {
			g.Taints = append(g.Taints, connect.Taint{Key: t.Key, Value: t.Value, Effect: string(t.Effect)})
		}
	}
	return connect.Capacity{Groups: []connect.NodeGroup{g}}.Object(ctx)
}
