package metal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/member"
)

const (
	// offPatience is for how long a machine that is said to be off is tried.
	offPatience = 10 * time.Second
	// leaseFresh is the age up to which a lease says that the machine is alive: the
	// cluster's own patience (node-monitor-grace-period).
	leaseFresh = 50 * time.Second
)

// Create has the machine join. Who does is on.
func (r *nodeResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	plan := new(nodeModel)
	if resp.Diagnostics.Append(req.Plan.Get(ctx, plan)...); plan.OutOfService.ValueBool() {
		resp.Diagnostics.AddAttributeError(path.Root("out_of_service"), "Node does not exist yet", "A machine that is off cannot join. Leave out_of_service out.")
	}
	if !resp.Diagnostics.HasError() {
		r.life.Create(ctx, req, resp)
	}
}

// Update makes the node what is planned. If out_of_service confirms that the
// machine is off, only the cluster is updated; a machine that came back loses
// the taint as part of its repair.
func (r *nodeResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	plan, prior := new(nodeModel), new(nodeModel)
	resp.Diagnostics.Append(req.Plan.Get(ctx, plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, prior)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if !plan.OutOfService.ValueBool() {
		r.life.Update(ctx, req, resp)
		return
	}
	answers, err := r.answers(ctx, plan)
	c, head, have, failed := r.nodeOf(ctx, plan, prior.Name.ValueString())
	switch {
	case err != nil || failed != nil:
		addError(&resp.Diagnostics, path.Root("out_of_service"), "Machine cannot be called off", errors.Join(err, failed))
	case answers && have.IsOutOfService():
		r.life.Update(ctx, req, resp)
	case answers:
		resp.Diagnostics.AddAttributeError(path.Root("out_of_service"), "Machine is not off", "It answers by SSH. Its pods would run twice. Turn it off, or leave out_of_service out.")
	default:
		plan.reportOff(ctx, c, head, have, &resp.Diagnostics)
		if resp.Diagnostics.HasError() {
			return
		}
		plan.Name, plan.Capacity = prior.Name, prior.Capacity
		plan.Drift = types.MapValueMust(types.StringType, map[string]attr.Value{})
		resp.Diagnostics.Append(store(ctx, &resp.State, plan)...)
		resp.Diagnostics.Append(saveDeclaredInState(ctx, resp.Private, req.Plan.Raw)...)
	}
}

// answers connects to the machine again: an open connection may have outlived it.
// A machine that refuses logins is on.
func (r *nodeResource) answers(ctx context.Context, m *nodeModel) (bool, error) {
	remote, _, err := r.machine(ctx, m)
	if err != nil {
		return false, err
	}
	host.Step(ctx, "asking whether %s answers", remote.Name())
	on, done := remote.Fresh(offPatience)
	defer done()
	ctx, cancel := context.WithTimeout(ctx, 2*offPatience)
	defer cancel()
	_, err = host.Run(ctx, on, "true")
	return err == nil || ssh.IsPermanent(err) || !isUnreachable(err), nil
}

// nodeOf is the node as its cluster has it, and the control plane's machine.
func (r *nodeResource) nodeOf(ctx context.Context, m *nodeModel, name string) (*kubernetes.Client, *host.Remote, *member.State, error) {
	j, known := joinFrom(ctx, m.Cluster)
	if !known {
		return nil, nil, nil, errors.New("the cluster is not known")
	}
	c, head, err := r.settings.cluster(ctx, j)
	if err != nil {
		return nil, nil, nil, err
	}
	have, err := member.Observe(ctx, c, name)
	if err == nil && have == nil {
		err = fmt.Errorf("the cluster has no node %s", name)
	}
	return c, head, have, err
}

// clock is what a machine takes for the time.
func clock(ctx context.Context, m host.Machine) (time.Time, error) {
	out, err := host.Run(ctx, m, "date", "+%s")
	if err != nil {
		return time.Time{}, err
	}
	seconds, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: what time it is there cannot be read: %w", m.Name(), err)
	}
	return time.Unix(seconds, 0), nil
}

// reportOff tells the cluster that the machine is off, unless its kubelet says
// otherwise. How old its lease is, the control plane's clock says.
func (m *nodeModel) reportOff(ctx context.Context, c *kubernetes.Client, head host.Machine, have *member.State, diags *diag.Diagnostics) {
	name := have.Node.Name
	now, err := clock(ctx, head)
	if err != nil {
		addError(diags, path.Root("cluster"), "Cluster cannot be asked", err)
		return
	}
	silent, leased, err := member.Silent(ctx, c, name, now)
	switch {
	case err != nil:
		addError(diags, path.Root("cluster"), "Cluster cannot be asked", err)
		return
	case have.Ready() || leased && silent < leaseFresh:
		diags.AddAttributeError(path.Root("out_of_service"), "Machine is not off", fmt.Sprintf("SSH does not answer, but the kubelet of node %s has reported %s ago. Its pods would run twice. Turn it off, wait a minute, and apply again.", name, silent.Round(time.Second)))
		return
	}
	host.Step(ctx, "freeing the pods of node %s", name)
	if err := member.SetOutOfService(ctx, c, name, true); err != nil {
		addError(diags, path.Root("out_of_service"), "Node cannot be changed", err)
	}
}
