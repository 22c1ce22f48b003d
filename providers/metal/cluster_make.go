package metal

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
	"github.com/stokehq/stoke/providers/metal/addons"
	"github.com/stokehq/stoke/providers/metal/facts"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
	"github.com/stokehq/stoke/providers/metal/packages"
)

const (
	// apiTime is how long the API server may take to come up: images are there by
	// then, and kubeadm itself waits four minutes.
	apiTime = 5 * time.Minute
	// systemTime is how long the system's pods may take, whose images are pulled.
	systemTime = 10 * time.Minute
	dnsTime    = 2 * time.Minute
)

// work makes the machine a control plane, or changes what differs, and returns
// what is stored. It may be cut off anywhere: the next one looks.
func (m *clusterModel) work(ctx context.Context, j job[clusterModel]) (*clusterModel, error) {
	w, err := m.worker(ctx, j)
	if err != nil {
		return nil, err
	}
	what, err := decide(w.look.is, w.look.notes, w.known != "", j.machine.Name())
	if err != nil && j.prior != nil && m.unprotects(j.prior) {
		return m.unprotected(ctx, j)
	}
	if err == nil && what == courseKeep {
		err = w.sameRelease(ctx)
	}
	if err != nil { // before there is anything of ours
		addError(j.diags, clusterAt, "Control plane is left alone", err)
		return nil, errRefused
	}
	if what == courseBegin { // afterwards it is kubeadm's own that has the ports
		if err := w.checkMachine(ctx); err != nil {
			addError(j.diags, clusterAt, "Machine cannot be a control plane", err)
			return nil, errRefused
		}
	}
	if j.prior != nil { // what was not known while planning is
		var diags diag.Diagnostics
		m.sameNode(j.prior, &diags)
		for _, at := range replacing(ctx, j.prior, m) {
			diags.AddAttributeError(at, "This is another cluster", "The value, which was not known while planning, "+
				"replaces the cluster. Plan again: the plan shows the replacement.")
		}
		if j.diags.Append(diags...); diags.HasError() {
			return nil, errRefused
		}
	}
	if w.rec, err = j.begin(); err != nil {
		return nil, err
	}
	w.spec.addons.Owner = m.ID.ValueString()
	err = w.carryOut(ctx, what)
	is := *m
	if err != nil {
		is.Access, is.Join = types.ObjectNull(connect.AttributeTypes()), types.ObjectNull(joinTypes())
		if j.prior != nil { // for other resources the cluster is unchanged
			is.Access, is.Join = j.prior.Access, j.prior.Join
		}
		is.Drift = types.MapValueMust(types.StringType, map[string]attr.Value{factCluster: types.StringValue("not finished")})
		return &is, w.explainError(ctx, err)
	}
	return &is, w.results(ctx, &is)
}

// clusterWork is one apply of a cluster.
type clusterWork struct {
	job    job[clusterModel]
	model  *clusterModel
	m      host.Machine
	s      *settings
	way    connect.SSH
	known  string // the cluster's id, as the state has it
	spec   clusterSpec
	look   clusterLook
	rec    *host.Record
	access connect.Connection
	config []byte // what kubeadm reads
	// patience is for how long an API server that does not answer may be starting.
	patience time.Duration
	waited   bool // for something of the cluster, so that its logs say why
}

func (m *clusterModel) worker(ctx context.Context, j job[clusterModel]) (*clusterWork, error) {
	w := &clusterWork{job: j, model: m, m: j.machine, s: j.settings, patience: time.Minute}
	var err error
	if j.prior != nil {
		w.known = j.prior.clusterID(ctx)
	}
	if w.way, err = m.leads(ctx); err != nil {
		return nil, err
	}
	if m.Endpoint.ValueString() == "" {
		m.Endpoint = types.StringValue(endpointOf(w.way))
	}
	if err := m.resolve(ctx, w.m); err != nil {
		return nil, err
	}
	if err := kubeadm.Await(ctx, w.m); err != nil { // of an apply that was cut off
		return nil, err
	}
	return w, w.observe(ctx)
}

// observe reads the machine anew.
func (w *clusterWork) observe(ctx context.Context) (err error) {
	owner := w.spec.addons.Owner
	if w.spec, err = w.model.spec(ctx); err != nil {
		return err
	}
	if owner != "" {
		w.spec.addons.Owner = owner
	}
	w.look, err = w.s.lookAtCluster(ctx, w.m, w.spec.packages(w.s, w.model.Repository))
	return err
}

// sameRelease rejects a control plane of another release than the planned one:
// kubeadm's phases would upgrade or downgrade it.
func (w *clusterWork) sameRelease(ctx context.Context) error {
	is, err := kubeadm.ParseRelease(w.look.is.Version)
	switch {
	case err != nil: // a custom image
		return nil
	case w.spec.anyPatch: // nobody has stored which
		w.model.learn(w.look.is)
		return w.observe(ctx)
	case is != w.spec.release:
		return &damagedError{fmt.Sprintf("the control plane on %s runs Kubernetes %s, and %s was planned: it was "+
			"changed since. Plan again", w.m.Name(), is, w.spec.release)}
	}
	return nil
}

// checkMachine refuses machines that kubeadm's own checks would refuse after packages
// were installed.
func (w *clusterWork) checkMachine(ctx context.Context) error {
	f, err := facts.Gather(ctx, w.m)
	if err != nil {
		return err
	}
	var all []string
	for _, p := range unfitnesses(f, w.spec) {
		if p.fixedBy == "" {
			all = append(all, p.why)
		}
	}
	if len(all) > 0 {
		return fmt.Errorf("%s: %s", w.m.Name(), strings.Join(all, "; "))
	}
	return nil
}

// carryOut makes the decided changes.
func (w *clusterWork) carryOut(ctx context.Context, what course) error {
	if err := w.install(ctx); err != nil {
		return err
	}
	if err := w.configure(ctx); err != nil {
		return err
	}
	var err error
	switch what {
	case courseBegin:
		err = w.begin(ctx)
	case courseFinish:
		err = w.finish(ctx)
	case courseKeep:
		err = w.repair(ctx)
	}
	if err == nil {
		err = w.observe(ctx)
	}
	if err == nil {
		err = w.change(ctx)
	}
	if err != nil {
		return err
	}
	return w.furnish(ctx)
}

// install brings the packages, and settles on their release.
func (w *clusterWork) install(ctx context.Context) error {
	want := w.spec.packages(w.s, w.model.Repository)
	if err := installKubernetes(ctx, w.m, w.rec, want); err != nil {
		return err
	}
	is, err := packages.Observe(ctx, w.m, want)
	if err != nil {
		return err
	}
	version, _, _ := strings.Cut(is.Packages["kubeadm"].Version, "-")
	for _, name := range kubernetesPackages {
		if have, _, _ := strings.Cut(is.Packages[name].Version, "-"); have != version {
			return fmt.Errorf("%s has kubeadm %s and %s %s: the repository has not the same release of all", w.m.Name(), version, name, have)
		}
	}
	release, err := kubeadm.ParseRelease(version)
	if err != nil {
		return err
	}
	w.model.Installed = types.StringValue(release.String())
	if w.spec.anyPatch { // from now on apt keeps this one
		w.spec.release, w.spec.anyPatch = release, false
		if err := installKubernetes(ctx, w.m, w.rec, w.spec.packages(w.s, w.model.Repository)); err != nil {
			return err
		}
	}
	return w.observe(ctx)
}

// configure renders what kubeadm reads, and brings its patches. It notes first what is
// going to change.
func (w *clusterWork) configure(ctx context.Context) error {
	n, err := readNotes(w.rec)
	if err != nil {
		return err
	}
	if n.whole != "" {
		want, err := w.spec.hashes()
		if err != nil {
			return err
		}
		n.settled = n.settled.unsettled(want)
		if err := w.rec.Set(ctx, noteSettled, n.settled); err != nil {
			return err
		}
	}
	dir := path.Join(w.rec.Dir(), "patches")
	if len(w.spec.patches) > 0 {
		w.spec.node.Patches = dir
	}
	if len(w.spec.patches) > 0 || n.settled.Patches == changing {
		if err := kubeadm.WritePatches(ctx, w.m, dir, w.spec.patches); err != nil {
			return err
		}
	}
	w.config, err = w.spec.cluster.Init(w.spec.node, kubeadm.NewToken())
	return err
}

// begin is kubeadm init on a machine that has nothing of a cluster.
func (w *clusterWork) begin(ctx context.Context) error {
	if err := w.rec.Set(ctx, noteBegun, true); err != nil {
		return err
	}
	w.waited = true
	err := kubeadm.Begin(ctx, w.m, w.config)
	switch {
	case kubeadm.Slow(err):
		if err := w.observe(ctx); err != nil {
			return err
		}
		return w.finish(ctx)
	case err != nil:
		return err
	}
	return w.noteInit(ctx)
}

// noteInit notes that init came to its end.
func (w *clusterWork) noteInit(ctx context.Context) error {
	if err := w.rec.Set(ctx, noteHealthy, true); err != nil {
		return err
	}
	if err := w.rec.Remember(ctx, noteBoots, w.look.is.KubeletEnabled); err != nil {
		return err
	}
	if err := kubeadm.StartKubelet(ctx, w.m); err != nil { // at each boot, too: kubeadm leaves that to others
		return err
	}
	if err := kubeadm.RevokeInit(ctx, w.m); err != nil {
		return err
	}
	if err := kubeadm.Authorize(ctx, w.m, kubernetes.Operators); err != nil {
		return err
	}
	is, err := kubeadm.Observe(ctx, w.m)
	if err != nil {
		return err
	}
	settled, err := w.spec.hashes()
	if err == nil {
		settled.OnHost, err = kubeadm.Hash(is.KubeletConfig)
	}
	if err == nil {
		settled.Uploaded, err = kubeadm.Uploaded(ctx, w.m)
	}
	if err != nil {
		return err
	}
	settled.Objects = w.look.notes.settled.Objects
	return w.rec.Replace(ctx, map[string]any{noteSettled: settled, noteWhole: is.CAHash})
}

// furnish applies what is inside the cluster, and waits until it is ready.
func (w *clusterWork) furnish(ctx context.Context) error {
	w.waited = true
	// Credentials are signed by the controller manager, which may have just begun.
	if err := kubeadm.AwaitReady(ctx, w.m, apiTime); err != nil {
		return err
	}
	objects, err := w.spec.addons.Objects()
	if err != nil {
		return err
	}
	if w.access, err = w.s.connection(ctx, w.m, w.way, w.spec.cluster.Endpoint, w.known); err != nil {
		return err
	}
	err = w.s.insideNew(ctx, w.access, apiTime, func(c *live.Cluster) error {
		w.access.ID = c.ID
		if err := w.applyObjects(ctx, c, objects); err != nil {
			return err
		}
		if err := addons.Await(ctx, c, w.spec.addons.System(w.spec.node.Name), systemTime); err != nil {
			return err
		}
		if !w.spec.addons.Network() {
			return nil // the network plugin comes later
		}
		server, err := addons.DNS(ctx, c)
		if err != nil {
			return err
		}
		return addons.Resolve(ctx, w.dial, server, w.spec.cluster.Domain, dnsTime)
	})
	if err != nil {
		return err
	}
	return w.rec.Set(ctx, noteReady, true)
}

// applyObjects applies objects that differ, and notes which there are.
func (w *clusterWork) applyObjects(ctx context.Context, c *live.Cluster, objects []*unstructured.Unstructured) error {
	var n notes
	n, err := readNotes(w.rec)
	if err != nil {
		return err
	}
	before := n.settled.Objects
	differ, err := addons.Diff(ctx, c, objects)
	if err == nil && len(differ) == 0 && len(stale(before, objects)) == 0 && len(before) == len(objects) {
		return nil
	}
	// Noted first: what is made is never forgotten.
	for _, u := range objects {
		if key := object.KeyOf(u).String(); !slices.Contains(n.settled.Objects, key) {
			n.settled.Objects = append(n.settled.Objects, key)
		}
	}
	if err := w.rec.Replace(ctx, map[string]any{noteSettled: n.settled, noteReady: false}); err != nil {
		return err
	}
	now, err := addons.Apply(ctx, c, objects, before)
	if err != nil {
		return err
	}
	n.settled.Objects = now
	return w.rec.Set(ctx, noteSettled, n.settled)
}
