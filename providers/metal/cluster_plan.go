package metal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/drain"
	"github.com/stokehq/stoke/providers/metal/facts"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
	"github.com/stokehq/stoke/providers/metal/packages"
)

// expiryNotice is how long before a certificate expires plans say so.
const expiryNotice = 60 * 24 * time.Hour

// ModifyPlan reports the changes, and rejects impossible ones.
func (r *clusterResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	plan, state, ok := r.planned(ctx, req, resp)
	if !ok {
		r.protect(ctx, req.State, &resp.Diagnostics)
		return
	}
	var endpoint types.String // stays unknown where a declared value is not known yet
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("endpoint"), &endpoint)...)
	if plan.Endpoint.IsUnknown() && endpoint.IsNull() {
		if way, err := plan.leads(ctx); err == nil {
			plan.Endpoint = types.StringValue(endpointOf(way))
		}
	}
	if state != nil {
		resp.RequiresReplace = append(resp.RequiresReplace, replacing(ctx, state, plan)...)
		if len(resp.RequiresReplace) > 0 && state.Protected.ValueBool() {
			resp.Diagnostics.AddAttributeError(resp.RequiresReplace[0], "Cluster is protected", "This change replaces "+
				"the cluster, with all that is in it, and deletion_protection is set. Take the change back, or apply deletion_protection = false first.")
		}
		plan.sameVersion(state, &resp.Diagnostics)
		if len(resp.RequiresReplace) == 0 {
			plan.sameNode(state, &resp.Diagnostics)
		}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	plan.Drift = types.MapValueMust(types.StringType, map[string]attr.Value{})
	if state != nil && (len(state.Drift.Elements()) > 0 || !req.Plan.Raw.Equal(req.State.Raw)) {
		plan.Expires = types.StringUnknown() // certificates may be made anew
	}
	r.examine(ctx, state, plan, len(resp.RequiresReplace) > 0, &resp.Diagnostics).keep(ctx, resp.Private, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
}

// protect refuses to destroy a cluster that is protected. A cluster that is no
// longer on its machine is not protected.
func (r *clusterResource) protect(ctx context.Context, was tfsdk.State, diags *diag.Diagnostics) {
	var state clusterModel
	if was.Raw.IsNull() {
		return
	}
	if diags.Append(was.Get(ctx, &state)...); diags.HasError() || !state.Protected.ValueBool() {
		return
	}
	if m, _, err := r.machine(ctx, &state); err == nil {
		if is, err := kubeadm.Observe(ctx, m); err == nil && is.Role != kubeadm.ControlPlane {
			return
		}
	}
	diags.AddError("Cluster is protected", "deletion_protection is set. To destroy the cluster with all that is in it, apply deletion_protection = false first.")
}

// replacing returns the changed arguments that replace a cluster.
func replacing(ctx context.Context, state, plan *clusterModel) []path.Path {
	var all []path.Path
	for _, of := range []struct {
		name     string
		was, now attr.Value
	}{
		{"pod_network", state.Pods, plan.Pods}, {"service_network", state.Services, plan.Services},
		{"dns_domain", state.Domain, plan.Domain}, {"endpoint", state.Endpoint, plan.Endpoint},
	} {
		if !of.was.IsNull() && isWhollyKnown(ctx, of.now) && !of.was.Equal(of.now) {
			all = append(all, path.Root(of.name))
		}
	}
	// A reinstalled machine has another key at the same address, and one whose key
	// is written in another way is the same: the observed record decides.
	if otherMachine(ctx, state.head(), plan.head()) && !reinstalled(ctx, state.head(), plan.head()) {
		all = append(all, clusterAt)
	}
	return all
}

// sameNode rejects another name or address of the control plane's node: etcd and the
// certificates contain the original ones.
func (m *clusterModel) sameNode(state *clusterModel, diags *diag.Diagnostics) {
	for _, of := range []struct {
		name     string
		was, now types.String
	}{{"node_name", state.NodeName, m.NodeName}, {"advertise_address", state.Advertise, m.Advertise}} {
		if of.was.ValueString() != "" && !of.now.IsUnknown() && !of.now.Equal(of.was) {
			diags.AddAttributeError(path.Root(of.name), "A control plane keeps its node", fmt.Sprintf("It is %q since kubeadm init, and etcd and the certificates know no other. Write that again, or leave it out.", of.was.ValueString()))
		}
	}
}

// sameVersion rejects another version than the installed one.
func (m *clusterModel) sameVersion(state *clusterModel, diags *diag.Diagnostics) {
	installed, err := kubeadm.ParseRelease(state.Installed.ValueString())
	if err != nil || m.Version.IsUnknown() {
		return
	}
	minor, err := kubeadm.ParseMinor(m.Version.ValueString())
	release, otherwise := kubeadm.ParseRelease(m.Version.ValueString())
	if err == nil && minor == installed.Minor || otherwise == nil && release == installed {
		return
	}
	diags.AddAttributeError(path.Root("version"), "Upgrades are not supported yet", fmt.Sprintf("The cluster has Kubernetes %s, and %s is declared. Write %q. The cluster is never replaced for another version.", installed, m.Version.ValueString(), installed.Minor.String()))
}

// examine looks at the machine on behalf of a plan, and sets what follows.
func (r *clusterResource) examine(ctx context.Context, state, plan *clusterModel, anew bool, diags *diag.Diagnostics) promise {
	if state == nil || anew {
		plan.Installed, plan.Expires = types.StringUnknown(), types.StringUnknown()
		plan.Access = types.ObjectUnknown(connect.AttributeTypes())
		plan.Join = plan.planJoin(ctx, "")
	} else {
		plan.keepResults(ctx, state)
	}
	m, way, err := r.machine(ctx, plan)
	if err == nil {
		var p promise
		if p, err = r.lookAhead(ctx, m, way, state, plan, anew, diags); err == nil {
			return p
		}
	}
	switch {
	case errors.Is(err, connect.ErrUnknown), errors.Is(err, errUnknown):
	case ssh.IsPermanent(err):
		summary, detail := unreachable(way.Address, err)
		diags.AddAttributeError(clusterAt, summary, detail)
	case isUnreachable(err):
		notLooked(diags, clusterAt, way.Address, err)
	default:
		addError(diags, clusterAt, "Machine cannot be examined", err)
	}
	return promise{}
}

// keepResults keeps the results that a change of the cluster does not affect.
func (m *clusterModel) keepResults(ctx context.Context, state *clusterModel) {
	was, known := joinFrom(ctx, state.Join)
	if state.Access.IsNull() {
		m.Access = types.ObjectUnknown(connect.AttributeTypes())
	}
	if state.Expires.IsNull() {
		m.Expires = types.StringUnknown()
	}
	if state.Installed.IsNull() {
		m.Installed = types.StringUnknown()
	}
	hash := ""
	if known {
		hash = was.CAHash.ValueString()
	}
	m.Join = m.planJoin(ctx, hash)
	if c, known := connect.StoredConnection(ctx, state.Access); known && c != nil {
		if way, err := m.leads(ctx); err == nil { // a machine that moved is the same cluster
			c.Credential.SSH = &way
			if o, diags := c.Object(ctx); !diags.HasError() {
				m.Access = o
			}
		}
	}
}

// planJoin is join as far as it follows from the declaration.
func (m *clusterModel) planJoin(ctx context.Context, caHash string) types.Object {
	join, err := m.joining(ctx, caHash)
	if err != nil {
		return types.ObjectUnknown(joinTypes())
	}
	return join
}

// lookAhead returns what apply would do on the machine, and reports obstacles.
func (r *clusterResource) lookAhead(ctx context.Context, m host.Machine, way connect.SSH, state, plan *clusterModel, anew bool, diags *diag.Diagnostics) (promise, error) {
	plan.ID = claim(ctx, m, clusterRecord, "Cluster is managed already", clusterAt, way, plan.ID, diags)
	known := *plan
	known.assume() // what follows from the machine, apply knows: metal_host may change it first
	if known.Installed.IsUnknown() {
		known.Installed = types.StringNull()
	}
	spec, err := known.spec(ctx)
	if err != nil {
		return promise{}, err
	}
	if spec.problems(diags) {
		return promise{}, nil
	}
	l, err := r.settings.lookAtCluster(ctx, m, spec.packages(r.settings, plan.Repository))
	// A replacement on the same machine begins when the old cluster is removed;
	// another machine is checked before anything is destroyed.
	if err == nil && replaced(ctx, m, clusterRecord) != nil {
		l.protect(ctx, diags)
		return promise{}, nil
	}
	if err != nil || anew && !otherMachine(ctx, state.head(), plan.head()) {
		return promise{}, err
	}
	noteExpiry(l.is, m, diags)
	what, err := decide(l.is, l.notes, state != nil && !anew && state.clusterID(ctx) != "", m.Name())
	switch {
	case err != nil && state != nil && !anew && plan.unprotects(state):
		diags.AddAttributeWarning(clusterAt, "Control plane is left alone", sentence(err)+" Apply takes deletion_protection away and does nothing else, so that the cluster can be destroyed.")
		return promise{}, nil
	case err != nil:
		addError(diags, clusterAt, "Control plane is left alone", err)
		return promise{}, nil
	}
	if what == courseBegin { // afterwards it is kubeadm's own that has the ports
		r.preflight(ctx, m, spec, diags)
	}
	if what != courseKeep || anew {
		return promise{}, nil
	}
	noteNewer(ctx, diags, spec.release, l.packages)
	changes, err := spec.changes(l)
	if err != nil {
		return promise{}, err
	}
	for i := range changes {
		if len(changes[i].Path) > 1 || len(changes[i].Path) == 1 && !plan.isDeclared(changes[i].Path[0]) {
			changes[i].Path = nil // it may be declared no more
		}
	}
	r.settings.reportPlan(ctx, diags, m, changes, drain.Policy{MaxUnavailable: int(plan.MaxUnavailable.ValueInt64())})
	return promising(changes), nil
}

// protect rejects the replacement of a protected cluster that exists, such as by
// -replace.
func (l clusterLook) protect(ctx context.Context, diags *diag.Diagnostics) {
	set := part(providers.CallFrom(ctx).Replaces, "deletion_protection")
	if set != cty.NilVal && set.True() && l.is.Role == kubeadm.ControlPlane && !l.notes.ending {
		diags.AddError("Cluster is protected", "deletion_protection is set. To replace the cluster, with all that is "+
			"in it, apply deletion_protection = false first.")
	}
}

// isDeclared reports whether an argument is declared, so that a note can point at it.
func (m *clusterModel) isDeclared(argument string) bool {
	switch argument {
	case "kubelet_configuration":
		return !m.Kubelet.IsNull()
	case "kube_proxy_configuration":
		return !m.Proxy.IsNull()
	case "kubeadm_patches":
		return !m.Patches.IsNull()
	case "cert_sans":
		return !m.CertSANs.IsNull()
	}
	return true
}

// preflight reports what kubeadm will reject. Faults that a metal_host of the
// same plan may fix are left to the review of the whole plan; without a review
// they are warnings.
func (r *clusterResource) preflight(ctx context.Context, m host.Machine, spec clusterSpec, diags *diag.Diagnostics) {
	f, err := r.settings.factsOf(ctx, m)
	if err != nil {
		return // whoever looks at the machine says so
	}
	var soon []unfitness
	for _, p := range unfitnesses(f, spec) {
		if p.fixedBy == "" {
			diags.AddAttributeError(clusterAt, "Machine cannot be a control plane", fmt.Sprintf("%s: %s.", m.Name(), p.why))
		} else {
			soon = append(soon, p)
		}
	}
	if len(soon) > 0 && !r.settings.seen.unready(m, soon) {
		diags.AddAttributeWarning(clusterAt, unreadySummary, unready(m.Name(), soon))
	}
}

const unreadySummary = "Machine is not ready yet"

func unready(machine string, soon []unfitness) string {
	text := machine + ": kubeadm refuses it as it is, unless a metal_host fixes that before:"
	for _, p := range soon {
		text += "\n  " + p.why
	}
	return text
}

// noteNewer notes a newer patch release. stoke does not install it without a
// change of the configuration.
func noteNewer(ctx context.Context, diags *diag.Diagnostics, installed kubeadm.Release, have packages.State) {
	newest := installed
	for _, v := range have.Packages["kubeadm"].Versions {
		text, _, _ := strings.Cut(v, "-")
		if r, err := kubeadm.ParseRelease(text); err == nil && r.Minor == installed.Minor && r.Patch > newest.Patch {
			newest = r
		}
	}
	if newest != installed {
		note(ctx, diags, providers.NoteFact, []string{"version"}, fmt.Sprintf("Kubernetes %s is installed, and %s can be had", installed, newest))
	}
}

// noteExpiry warns of certificates that expire soon.
func noteExpiry(is kubeadm.Facts, m host.Machine, diags *diag.Diagnostics) {
	which, at := expires(is)
	if which == "" || time.Until(at) > expiryNotice {
		return
	}
	until := fmt.Sprintf("%s of %s is valid until %s. ", which, m.Name(), at.UTC().Format(time.RFC3339))
	if strings.HasSuffix(which, "ca.crt") {
		diags.AddWarning("Authority expires soon", until+"All certificates end with it, and kubeadm renews no authority. Replace it by hand: https://kubernetes.io/docs/tasks/tls/manual-rotation-of-ca-certificates/")
		return
	}
	diags.AddWarning("Certificates expire soon", until+"Renew all of them there, and have the static pods begin again with them:\n  "+renewal)
}

// renewal is the command that renews the certificates of a control plane. Restarting
// the kubelet leaves static pods as they run: it starts them again when they have
// ended.
const renewal = "sudo kubeadm certs renew all && sudo pkill -f '^(etcd|kube-(apiserver|controller-manager|scheduler)) '"

// unfitness is a reason for kubeadm to refuse a machine.
type unfitness struct {
	why     string
	fixedBy string // argument of metal_host; "" where none does
}

// unfitnesses is what a machine lacks for a control plane, as far as kubeadm's preflight
// does not ignore it.
func unfitnesses(f facts.Facts, s clusterSpec) []unfitness {
	var all []unfitness
	add := func(fixedBy, why string, args ...any) {
		all = append(all, unfitness{fmt.Sprintf(why, args...), fixedBy})
	}
	ignored := map[string]bool{}
	for _, name := range s.node.IgnorePreflight {
		ignored[strings.ToLower(name)] = true
	}
	if f.Node.Other != "" {
		add("", "%s runs there, another distribution of Kubernetes", f.Node.Other)
	}
	port := 6443
	if s.cluster.Port != 0 {
		port = s.cluster.Port
	}
	for _, n := range []int{port, 2379, 2380, 10250, 10257, 10259} {
		for _, l := range f.Listeners {
			if l.Protocol == "tcp" && l.Port == n && !ignored[fmt.Sprintf("port-%d", n)] {
				add("", "port %d is taken, by %s", n, orUnknown(l.Process))
				break
			}
		}
	}
	if len(f.Swap) > 0 && !ignored["swap"] {
		add("swap", "swap is on (%s): set swap = \"off\" on its metal_host", f.Swap[0].Name)
	}
	runtime := ""
	for _, r := range f.Runtimes {
		if r.Name == "containerd" {
			runtime = r.Version
		}
	}
	switch major, _, _ := strings.Cut(strings.TrimPrefix(runtime, "v"), "."); {
	case runtime == "":
		add("containerd_package", "it has no containerd: set containerd_package and containerd on its metal_host")
	case major == "0" || major == "1":
		add("containerd_package", "it has containerd %s: the kubelet takes its control groups from containerd 2", runtime)
	}
	if f.CgroupVersion == 1 && !ignored["systemverification"] {
		add("", "it has control groups of version 1, which the kubelet refuses: boot it with systemd.unified_cgroup_hierarchy=1")
	}
	return all
}

func orUnknown(process string) string {
	if process == "" {
		return "a process that is not known"
	}
	return process
}
