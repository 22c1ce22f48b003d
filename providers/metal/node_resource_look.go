package metal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
	"github.com/stokehq/stoke/providers/metal/member"
	"github.com/stokehq/stoke/providers/metal/packages"
)

// nodeLook is what a look at a machine and at its cluster found out about a node.
type nodeLook struct {
	settings *settings
	on       host.Machine
	join     joinModel
	own      bool // it is the control plane's own machine
	head     *host.Remote
	client   *kubernetes.Client

	facts     kubeadm.Facts
	local     nodeLocal
	name      string // the node's, as it is: "" where the machine has joined nothing
	node      kubeadm.Node
	ip        netip.Addr
	wantPkgs  packages.Spec
	packages  packages.State
	want      member.Spec
	have      *member.State // nil: the cluster has no such node
	fields    []string      // of the kubelet's configuration that differ
	wasReady  bool          // it had the GPUs that are declared before
	cutOff    bool          // a join, or what follows it, has begun and did not end
	untried   bool          // its GPUs must be tested and were not yet
	users     []string      // pods that have GPUs, where they are untried
	gpuTaints []core.Taint  // of the control plane's own node
	kept      []core.Taint  // those of them that the cluster's DNS does not tolerate
	rec       *host.Record  // nil: the machine has none
	verify    bool          // its GPUs are to be tried
	// probeImage is what pods that try them run.
	probeImage string
	// untriedNote says why not all of them could be tried.
	untriedNote string
	lost        []string // GPUs that it had, for people
	skew        string   // why its kubelet would not fit the API server; "" where it does
	unmatched   error    // why the address cannot be
}

// nodeLocal are facts of the machine that kubeadm.Observe does not look for.
type nodeLocal struct {
	hostname   string
	addresses  []string
	containerd bool // its socket is there
}

const lookLocal = `# look at what a node needs of its machine
printf 'hostname\t%s\n' "$(tr 'A-Z' 'a-z' </proc/sys/kernel/hostname)"
ip -o addr show 2>/dev/null | while read -r _ _ _ a _; do printf 'address\t%s\n' "${a%%/*}"; done
[ ! -S /run/containerd/containerd.sock ] || printf 'containerd\tyes\n'
echo end`

func observeLocal(ctx context.Context, m host.Machine) (l nodeLocal, err error) {
	err = host.Look(ctx, m, "name and addresses", lookLocal, host.Lines{
		"hostname":   host.Fields(1, host.Text(&l.hostname)).ExactlyOnce(),
		"address":    host.Fields(1, host.Append(&l.addresses)),
		"containerd": host.Fields(1, host.FirstFieldIs(&l.containerd, "yes")),
	})
	return l, err
}

// lookNode looks at the machine, and at the cluster where one is declared.
func (s *settings) lookNode(ctx context.Context, on host.Machine, m *nodeModel) (l *nodeLook, err error) {
	l = &nodeLook{settings: s, on: on}
	if l.facts, err = kubeadm.Observe(ctx, on); err != nil {
		return nil, err
	}
	if l.local, err = observeLocal(ctx, on); err != nil {
		return nil, err
	}
	l.name = l.facts.NodeName
	if l.rec, err = host.OpenRecord(ctx, on, nodeRecord); err != nil && !errors.Is(err, host.ErrNoRecord) {
		return nil, err
	}
	l.verify, l.probeImage = m.Verify.ValueBool(), cmp.Or(m.VerifyImage.ValueString(), member.ProbeImage)
	if l.cutOff, err = cutOff(l.rec); err != nil {
		return nil, err
	}
	var diags diag.Diagnostics
	d, _ := m.read(ctx, &diags)
	j, known := joinFrom(ctx, m.Cluster)
	if err := failed(diags); err != nil || !known {
		return l, err
	}
	l.join, l.own = j, ownNode(ctx, m.Host, j)
	if err := l.declare(ctx, m, d); err != nil {
		return nil, err
	}
	return l, l.ask(ctx)
}

// declare turns what is declared into what kubeadm, apt and the API are told.
func (l *nodeLook) declare(ctx context.Context, m *nodeModel, d declaredNode) error {
	way, _ := connect.MachineFromObject(ctx, m.Host)
	name := m.NodeName.ValueString()
	switch {
	case name != "":
	case !m.Name.IsNull() && !m.Name.IsUnknown() && m.Name.ValueString() != "": // as it has joined
		name = m.Name.ValueString()
	case l.name != "":
		name = l.name
	default:
		name = l.local.hostname
	}
	if l.own {
		name = l.facts.NodeName
	}
	l.ip, l.unmatched = m.address(way)
	l.node = m.node(d, name, l.ip.String())
	l.want = m.member(d, name, l.own)
	if l.own {
		l.gpuTaints = m.gpuTaints(d, true)
		return nil
	}
	release, err := kubeadm.ParseRelease(l.join.Version.ValueString())
	if err != nil {
		return err
	}
	l.wantPkgs = l.settings.kubernetes(nodeRecord, "metal_node", release, m.Repository)
	l.packages, err = packages.Observe(ctx, l.on, l.wantPkgs)
	return err
}

// ask asks the cluster.
func (l *nodeLook) ask(ctx context.Context) (err error) {
	if l.client, l.head, err = l.settings.cluster(ctx, l.join); err != nil {
		return err
	}
	if l.have, err = member.Observe(ctx, l.client, l.want.Name); err != nil {
		return &clusterError{l.client.Endpoint, err}
	}
	if !l.own {
		server, err := l.client.Version(ctx)
		if err != nil {
			return &clusterError{l.client.Endpoint, err}
		}
		l.skew = kubeadm.Skew(l.join.Version.ValueString(), server.GitVersion)
	}
	if l.hasJoined() && !l.own {
		config, err := member.KubeletConfiguration(ctx, l.client)
		if err != nil {
			return &clusterError{l.client.Endpoint, err}
		}
		l.fields = kubeadm.DifferentFields(config, l.facts.KubeletConfig)
	}
	if l.kept, err = member.KeptFromDNS(ctx, l.client, l.gpuTaints); err != nil {
		return &clusterError{l.client.Endpoint, err}
	}
	if l.rec == nil || l.have == nil {
		return nil
	}
	if err := l.gpus(ctx); err != nil {
		return err
	}
	return l.checkVerified(ctx)
}

// hasJoined tells whether the machine has joined this cluster as the node that is
// declared.
func (l *nodeLook) hasJoined() bool {
	return l.facts.Whole && l.facts.CAHash == l.join.CAHash.ValueString() && l.facts.NodeName == l.node.Name
}

// nodeReady is the record's note of the GPUs that the node had when it became
// ready.
const nodeReady = "node ready"

// gpus finds out which GPUs are lost that the node had.
func (l *nodeLook) gpus(ctx context.Context) error {
	var had map[string]int64
	if ok, err := l.rec.ReadNote(nodeReady, &had); err != nil || !ok {
		return err
	}
	l.wasReady = true
	for name, n := range l.want.GPUs {
		l.wasReady = l.wasReady && had[name] == n
	}
	short := l.have.Shortages(l.want)
	if !l.wasReady || len(short) == 0 {
		return nil
	}
	said, err := gpuFailures(ctx, l.on)
	if err != nil {
		return err
	}
	for _, s := range short {
		text := s.String()
		if len(said) > 0 {
			text += "; the kernel says " + strings.Join(said, ", ")
		}
		l.lost = append(l.lost, text+". It had them: apply does not wait for GPUs that broke")
	}
	return nil
}

// xids prints the last errors of NVIDIA's driver, one for each GPU and number.
const xids = `# look for errors of GPUs
{ dmesg 2>/dev/null; journalctl -k -b -q -o cat --no-pager 2>/dev/null; } | sed -n 's/.*NVRM: Xid (PCI:\([0-9a-fA-F:.]*\)): \([0-9]*\).*/PCI \1: XID \2/p' | sort -u | tail -n 8`

// gpuFailures are GPUs of which the kernel's log tells an error.
func gpuFailures(ctx context.Context, m host.Machine) ([]string, error) {
	out, err := host.LookScript(ctx, m, xids)
	if err != nil {
		return nil, err
	}
	var all []string
	for line := range strings.Lines(string(out)) {
		all = append(all, strings.TrimSpace(line))
	}
	return all, nil
}

// changes are what apply would do to a machine that has joined.
func (l *nodeLook) changes() []host.Change {
	if l.own || l.facts.Role == kubeadm.NoRole || !l.facts.Whole {
		return nil
	}
	var all []host.Change
	if l.facts.NodeName != l.node.Name {
		all = append(all, host.Change{Fact: "name of the node, which leaves the cluster and joins it again", Path: []string{"node_name"}, Have: l.facts.NodeName, Want: l.node.Name, Disruption: host.Drains})
	}
	for _, c := range packages.Diff(l.wantPkgs, l.packages) {
		c.Path = nil
		all = append(all, c)
	}
	for _, name := range l.facts.DifferentArguments(l.node) {
		if name == "hostname-override" && l.facts.NodeName != l.node.Name {
			continue
		}
		all = append(all, host.Change{Fact: "kubelet argument " + name, Have: l.facts.Arguments()[name], Want: l.node.KubeletArguments()[name], Disruption: host.RestartsKubelet})
	}
	if len(l.fields) > 0 {
		all = append(all, host.Change{Fact: "kubelet configuration", Have: "other " + strings.Join(l.fields, ", "), Disruption: host.RestartsKubelet})
	}
	switch {
	case !l.facts.KubeletActive:
		all = append(all, host.Change{Fact: "kubelet", Have: "stopped", Want: "running", Disruption: host.RestartsKubelet})
	case l.facts.RestartDue && len(all) == 0:
		all = append(all, host.Change{Fact: "kubelet", Have: "runs with its former settings", Want: "restarted", Disruption: host.RestartsKubelet})
	case !l.facts.KubeletEnabled:
		all = append(all, host.Change{Fact: "kubelet at boot", Have: "disabled", Want: "enabled", Disruption: host.RestartsKubelet})
	case l.have == nil && l.hasJoined():
		all = append(all, host.Change{Fact: "node in the cluster", Want: l.node.Name, Disruption: host.RestartsKubelet})
	}
	return all
}

// drift is what has no attribute of its own.
func (l *nodeLook) drift() map[string]string {
	drift := map[string]string{}
	if l.join.CAHash.IsNull() {
		return drift // imported: nothing is declared yet
	}
	if !l.own && !l.hasJoined() && l.facts.NodeName == "" {
		drift["node"] = "not in the cluster"
	}
	// A kubeadm that stoke was killed under goes on: the node may be there, and all
	// that is left to do is what no fact of it shows, such as to end its token.
	if l.cutOff && drift["node"] == "" {
		drift["node"] = "not finished"
	}
	for _, c := range l.changes() {
		drift[c.Fact] = c.Have
	}
	if l.have == nil {
		return drift
	}
	if l.have.Mark.ID != l.want.ID {
		drift["mark of the node"] = l.have.Mark.ID
	}
	if l.have.IsOutOfService() {
		drift["out of service"] = "the machine answers again"
	}
	for name := range l.have.Mark.Labels {
		if _, declared := l.want.Labels[name]; !declared {
			drift["label "+name] = "still there"
		}
	}
	for _, key := range l.have.Mark.Taints {
		if !slices.ContainsFunc(l.want.Taints, func(t core.Taint) bool { return key == t.Key+":"+string(t.Effect) }) {
			drift["taint "+key] = "still there"
		}
	}
	for _, t := range l.kept {
		drift["tolerations of CoreDNS"] = "none of " + t.ToString()
	}
	if l.untried && len(l.users) == 0 {
		drift["verification"] = "not done yet"
	}
	if !l.wasReady && l.rec != nil {
		for _, s := range l.have.Shortages(l.want) {
			drift["GPUs"] = s.String()
		}
	}
	return drift
}

// nodeProblem is something that no apply can fix.
type nodeProblem struct {
	at              path.Path
	summary, detail string
}

// problems returns the obstacles to the declared node.
func (l *nodeLook) problems(ctx context.Context, m *nodeModel) (all []nodeProblem) {
	add := func(at, summary, format string, args ...any) {
		all = append(all, nodeProblem{path.Root(at), summary, fmt.Sprintf(format, args...)})
	}
	ca := l.join.CAHash.ValueString()
	if l.own {
		if l.facts.Role != kubeadm.ControlPlane || !l.facts.Whole || l.facts.CAHash != ca {
			add("host", "Control plane is not whole", "It is the control plane's own machine, and kubeadm has not finished there. Apply metal_cluster first.")
		}
		if m.NodeName.ValueString() != "" && m.NodeName.ValueString() != l.facts.NodeName {
			add("node_name", "A control plane keeps its name", "The node is called %s since kubeadm init. Leave node_name out.", l.facts.NodeName)
		}
		for name, set := range map[string]bool{"max_pods": !m.MaxPods.IsNull(), "resolv_conf": !m.ResolvConf.IsNull(), "repository": m.Repository != nil, "ignore_preflight_errors": !m.Ignore.IsNull()} {
			if set {
				add(name, "It is the control plane's machine", "Its kubelet and its packages belong to metal_cluster; metal_node owns labels, taints and GPUs there. Leave %s out.", name)
			}
		}
		return all
	}
	if l.skew != "" {
		add("cluster", "Version does not fit the cluster", "%s.", l.skew)
	}
	switch {
	case l.facts.Role == kubeadm.ControlPlane:
		add("host", "Machine is a control plane", "It has a control plane of its own, which is not taken apart by joining. Destroy that cluster, or reset the machine by hand (kubeadm reset).")
	case l.facts.Role == kubeadm.Worker && l.facts.CAHash != "" && l.facts.CAHash != ca:
		add("host", "Machine belongs to another cluster", "It is the node %s of the cluster at %s, whose authority has the hash %s. Have it leave that one first.", l.facts.NodeName, l.facts.Server, l.facts.CAHash)
	case l.facts.Role == kubeadm.NoRole && len(l.facts.Left) > 0 && l.rec == nil:
		add("host", "Something is left of a cluster", "There are %s. If they are not needed, run kubeadm reset there.", strings.Join(l.facts.Left, ", "))
	}
	if l.facts.Whole && l.facts.CAHash == ca && l.facts.NodeName != l.node.Name && !m.DrainData.ValueBool() {
		if err := l.unpinned(ctx); err != nil {
			add("node_name", "Volumes are pinned to the node", "%s", sentence(err))
		}
	}
	if l.unmatched != nil {
		add("private_address", "Address is missing", "%s.", l.unmatched)
	} else if !l.hasAddress() {
		add("private_address", "Machine has no such address", "It has no interface with %s, so that its kubelet would not start. It has %s. Give the one in the cluster's network: node_address of the metal_host.", l.ip, strings.Join(l.local.addresses, ", "))
	}
	if !l.local.containerd {
		add("host", "containerd does not run", "There is no /run/containerd/containerd.sock. Declare containerd in metal_host, and let this depend on it.")
	}
	if l.have != nil && l.facts.Role == kubeadm.NoRole && (l.have.Mark.ID == "" || l.have.Mark.ID != m.ID.ValueString()) {
		add("node_name", "The cluster has such a node", "A foreign node %s exists. Give another node_name, or remove it: kubectl delete node %s.", l.node.Name, l.node.Name)
	}
	for _, p := range l.node.Check() {
		add("node_name", "Invalid node", "%s %s.", p.Field, p.Why)
	}
	return all
}

// unpinned is an error where data depends on the name that the node has.
func (l *nodeLook) unpinned(ctx context.Context) error {
	node, err := member.Observe(ctx, l.client, l.facts.NodeName)
	if err != nil || node == nil {
		return err
	}
	volumes, err := member.Pinned(ctx, l.client, node)
	if err == nil && len(volumes) > 0 {
		err = &pinnedError{node.Node.Name, volumes}
	}
	return err
}

func (l *nodeLook) hasAddress() bool {
	for _, text := range l.local.addresses {
		if a, err := netip.ParseAddr(text); err == nil && a == l.ip.Unmap() {
			return true
		}
	}
	return false
}
