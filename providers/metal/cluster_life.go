package metal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
	"github.com/stokehq/stoke/providers/metal/packages"
)

func (*clusterModel) kind() kind {
	return kind{name: "cluster", record: clusterRecord, what: "Cluster", at: path.Root("control_plane"), schema: clusterSchema}
}

func (m *clusterModel) adopt(ctx context.Context, by clusterModel) bool {
	way := hostAsDeclared(ctx, m.head(), by.head())
	m.ControlPlane = types.ListValueMust(way.Type(ctx), []attr.Value{way})
	return !m.Version.IsNull()
}

// observe sets what follows from the machine, and drift. An API server that does
// not answer changes nothing else: the cluster counts as existing until the
// opposite is certain.
func (m *clusterModel) observe(ctx context.Context, s *settings, on host.Machine, declared clusterModel, diags *diag.Diagnostics) error {
	if m.Version.IsNull() {
		diags.AddError("No cluster to import", fmt.Sprintf("%s has no record of a metal_cluster. A cluster that was "+
			"made otherwise cannot be imported.", on.Name()))
		return errRefused
	}
	spec, err := m.spec(ctx)
	if err != nil {
		return err
	}
	l, err := s.lookAtCluster(ctx, on, spec.packages(s, m.Repository))
	if err != nil {
		return err
	}
	what, err := decide(l.is, l.notes, m.clusterID(ctx) != "", on.Name())
	if err == nil && what == courseKeep {
		m.learn(l.is)
		if spec, err = m.spec(ctx); err != nil {
			return err
		}
	}
	drift := map[string]attr.Value{}
	differ := func(fact, is string) { drift[fact] = types.StringValue(is) }
	for _, c := range packages.Diff(spec.packages(s, m.Repository), l.packages) {
		differ(c.Fact, orMissing(c.Have))
	}
	switch {
	case err != nil:
		differ(factCluster, err.Error())
	case what != courseKeep:
		differ(factCluster, "not finished")
	default:
		changes, err := spec.changes(l)
		if err != nil {
			return err
		}
		for _, c := range changes {
			differ(c.Fact, orMissing(c.Have))
		}
		m.observeInside(ctx, s, on, spec, l, differ, diags)
	}
	if which, at := expires(l.is); which != "" {
		m.Expires = types.StringValue(at.UTC().Format(time.RFC3339))
	}
	m.Drift = types.MapValueMust(types.StringType, drift)
	return nil
}

// observeInside looks at what is applied in the cluster.
func (m *clusterModel) observeInside(ctx context.Context, s *settings, on host.Machine, spec clusterSpec, l clusterLook, differ func(fact, is string), diags *diag.Diagnostics) {
	silent := func(err error) {
		diags.AddWarning("The API server cannot be reached", fmt.Sprintf("%s: %s. Stoke uses the recorded values of "+
			"the cluster.", on.Name(), strings.TrimSuffix(err.Error(), ".")))
	}
	if l.silent != nil {
		differ(factAPI, "does not answer")
		silent(l.silent)
		return
	}
	if !l.notes.ready {
		differ(factCluster, "not finished")
	}
	var err error
	if l.notes.ready && m.Access.IsNull() {
		err = m.connected(ctx, s, on, l.is)
	}
	c, known := connect.StoredConnection(ctx, m.Access)
	if err == nil && (!known || c == nil) {
		return
	}
	var titles []string
	if err == nil {
		titles, err = s.differing(ctx, *c, spec.addons)
	}
	if errors.As(err, new(*kubernetes.UnboundError)) {
		differ(factOperators, "missing")
		return
	}
	if err != nil {
		silent(err)
		return
	}
	for _, title := range titles {
		differ(title, "missing, or changed")
	}
	objects, err := spec.addons.Objects()
	if err == nil && len(stale(l.notes.settled.Objects, objects)) > 0 {
		differ("objects in the cluster", "some that are no longer declared")
	}
}

func orMissing(text string) string {
	if text == "" {
		return "missing"
	}
	return text
}

// clusterID is the UID of kube-system, as the state has it; "" for none.
func (m *clusterModel) clusterID(ctx context.Context) string {
	if c, known, diags := connect.FromObject(ctx, m.Access); known && c != nil && !diags.HasError() {
		return c.ID
	}
	return ""
}

// unprotects tells whether deletion_protection goes. It may go whatever is the
// matter with the cluster: what is left of one has to be removable.
func (m *clusterModel) unprotects(prior *clusterModel) bool {
	return prior.Protected.ValueBool() && !m.Protected.IsUnknown() && !m.Protected.ValueBool()
}

// unprotected stores that, and changes nothing else.
func (m *clusterModel) unprotected(ctx context.Context, j job[clusterModel]) (*clusterModel, error) {
	if _, err := j.begin(); err != nil {
		return nil, err
	}
	is := *m
	for _, of := range []struct{ now, was *types.String }{
		{&is.Installed, &j.prior.Installed}, {&is.Expires, &j.prior.Expires}, {&is.NodeName, &j.prior.NodeName}, {&is.Advertise, &j.prior.Advertise}, {&is.Endpoint, &j.prior.Endpoint},
	} {
		if of.now.IsUnknown() {
			*of.now = *of.was
		}
	}
	if is.Access.IsUnknown() {
		is.Access = j.prior.Access
	}
	if !isWhollyKnown(ctx, is.Join) {
		is.Join = j.prior.Join
	}
	return &is, nil
}

// restore deletes the cluster; only it does.
func (m *clusterModel) restore(ctx context.Context, s *settings, on host.Machine, rec *host.Record) ([]host.Outcome, error) {
	is, err := kubeadm.Observe(ctx, on)
	if err != nil {
		return nil, err
	}
	n, err := readNotes(rec)
	if err != nil {
		return nil, err
	}
	if is.CAHash != "" && n.whole != "" && n.whole != is.CAHash || is.Role == kubeadm.Worker && is.CAHash != "" && n.whole == "" {
		return nil, fmt.Errorf("%s belongs to another cluster now, with the authority %s; nothing was touched. Give "+
			"up the old one with: stoke state rm", on.Name(), is.CAHash)
	}
	ours := n.begun || n.whole != "" || n.healthy // a cluster made by hand is foreign
	if m.Protected.ValueBool() && is.Role == kubeadm.ControlPlane && !n.ending {
		return nil, fmt.Errorf("deletion_protection is set: apply deletion_protection = false first, and destroy then")
	}
	var outcomes []host.Outcome
	if ours {
		if outcomes, err = end(ctx, on, rec, is); err != nil {
			return outcomes, err
		}
	}
	boots := true
	if noted, err := rec.ReadNote(noteBoots, &boots); err == nil && noted && !boots {
		if err := kubeadm.DisableKubelet(ctx, on); err != nil {
			return outcomes, err
		}
	}
	host.Step(ctx, "removing kubeadm and the kubelet")
	back, err := packages.Restore(ctx, on, rec)
	return append(outcomes, back...), err
}

// end takes the control plane apart.
func end(ctx context.Context, on host.Machine, rec *host.Record, is kubeadm.Facts) ([]host.Outcome, error) {
	outcomes, err := leftNodes(ctx, on, is)
	if err != nil {
		return nil, err
	}
	if err := rec.Set(ctx, noteEnding, true); err != nil {
		return nil, err
	}
	if err := kubeadm.Await(ctx, on); err != nil {
		return nil, err
	}
	if err := kubeadm.Reset(ctx, on, ""); err != nil {
		return outcomes, err
	}
	return append(outcomes, host.Outcome{Fact: "the cluster", Fate: host.Removed}), nil
}

// leftNodes refuses while other nodes are in the cluster. Nodes that are not
// ready count as machines that are gone, and are reported.
func leftNodes(ctx context.Context, on host.Machine, is kubeadm.Facts) ([]host.Outcome, error) {
	if !is.Admin {
		return nil, nil
	}
	if err := kubeadm.Ready(ctx, on); err != nil {
		if errors.As(err, new(*kubeadm.NotReadyError)) {
			return nil, nil // the nodes are not known, and a broken cluster has to be removable
		}
		return nil, err
	}
	all, err := kubeadm.Members(ctx, on)
	if err != nil {
		return nil, err
	}
	var joined []string
	var outcomes []host.Outcome
	for _, n := range all {
		switch {
		case n.Name == is.NodeName:
		case n.Ready:
			joined = append(joined, n.Name)
		default:
			outcomes = append(outcomes, host.Outcome{Fact: "node " + n.Name, Fate: host.Left, Why: "it does not answer; if its machine is still there, run on it: kubeadm reset"})
		}
	}
	if len(joined) > 0 {
		slices.Sort(joined)
		return nil, fmt.Errorf("these nodes are in the cluster still: %s; destroy their metal_node first, or take them out by hand (kubeadm reset there, kubectl delete node)", strings.Join(joined, ", "))
	}
	return outcomes, nil
}

func (m *clusterModel) undoing(context.Context, *settings, host.Machine, *host.Record, *diag.Diagnostics) []host.Change {
	return []host.Change{{Fact: "the cluster", Says: "it is deleted, with the data of etcd"}}
}
