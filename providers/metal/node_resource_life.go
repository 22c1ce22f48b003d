package metal

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
	"github.com/stokehq/stoke/providers/metal/member"
)

func (*nodeModel) kind() kind {
	return kind{name: "node", record: nodeRecord, what: "Node", at: path.Root("host"), schema: nodeSchema, noted: true}
}

func (m *nodeModel) adopt(ctx context.Context, by nodeModel) bool {
	m.Host, m.Timeouts = hostAsDeclared(ctx, m.Host, by.Host), by.Timeouts // no record tells how long calls may take
	return !m.Cluster.IsNull()
}

// observe sets the model to what machine and cluster have of what is declared. A
// cluster that cannot be asked leaves what is stored.
func (m *nodeModel) observe(ctx context.Context, s *settings, on host.Machine, declared nodeModel, diags *diag.Diagnostics) error {
	declared.ID, declared.Host, declared.Name, declared.Timeouts = m.ID, m.Host, m.Name, m.Timeouts
	stored := *m
	*m = declared
	l, err := s.lookNode(ctx, on, m)
	if err != nil {
		*m = stored
		if failed := (*clusterError)(nil); errors.As(err, &failed) || errors.Is(err, errNoCluster) {
			if providers.CallFrom(ctx).Settling {
				addError(diags, path.Root("cluster"), "Cluster cannot be asked", err)
			} else {
				diags.AddAttributeWarning(path.Root("cluster"), "Cluster cannot be asked", sentence(err)+" Stoke uses the recorded values.")
			}
			return errRefused
		}
		return err
	}
	if l.facts.Role == kubeadm.NoRole && m.Cluster.IsNull() {
		diags.AddError("No node to import", fmt.Sprintf("%s has joined no cluster. Remove the import: apply has it join.", on.Name()))
		return errRefused
	}
	// A machine that was installed anew joins by the name that it had.
	m.Name = stored.Name
	if l.name != "" {
		m.Name = types.StringValue(l.name)
	}
	noteFacts(ctx, diags, "gpus", l.lost)
	drift := l.drift()
	if by := s.cordonedBy(ctx, on); !by.IsNull() {
		drift["cordon"] = "cordoned by " + by.ValueString()
	}
	return failed(m.observed(ctx, l.want, l.have, drift))
}

func (m *nodeModel) work(ctx context.Context, j job[nodeModel]) (*nodeModel, error) {
	l, err := j.settings.lookNode(ctx, j.machine, m)
	if err == nil && m.Cluster.IsNull() {
		err = errors.New("the cluster is not known")
	}
	if err != nil {
		if failed := (*clusterError)(nil); errors.As(err, &failed) || errors.Is(err, errNoCluster) {
			addError(j.diags, path.Root("cluster"), "Cluster cannot be asked", err)
			return nil, errRefused
		}
		return nil, err
	}
	if problems := l.problems(ctx, m); len(problems) > 0 { // before there is anything of ours
		for _, p := range problems {
			j.diags.AddAttributeError(p.at, p.summary, j.machine.Name()+": "+p.detail)
		}
		return nil, errRefused
	}
	limit, more := m.Timeouts.Create(ctx, nodeReadyLimit)
	if j.prior != nil {
		limit, more = m.Timeouts.Update(ctx, nodeReadyLimit)
	}
	j.diags.Append(more...)
	rec, err := j.begin()
	if err != nil {
		return nil, err
	}
	l.want.ID = m.ID.ValueString()
	err = l.bring(ctx, rec, m, limit)
	if l.untriedNote != "" {
		j.diags.AddAttributeWarning(path.Root("verify"), "Not all GPUs were tried", l.untriedNote)
	}
	is := *m // what is there is what is stored, as far as it can be seen
	is.Name = types.StringValue(l.node.Name)
	if unseen := is.observe(context.WithoutCancel(ctx), j.settings, j.machine, *m, j.diags); unseen != nil {
		is = *m
		is.Name = types.StringValue(l.node.Name)
		is.Drift = types.MapValueMust(types.StringType, map[string]attr.Value{"node": types.StringValue("not looked at")})
		is.Capacity = types.ObjectNull(connect.CapacityAttribute("").GetType().(types.ObjectType).AttrTypes)
		if err == nil {
			err = unseen
		}
	}
	if unverified(err) {
		addError(j.diags, path.Root("verify"), "GPUs cannot be relied on", err)
		err = errRefused
	}
	var unready *member.UnreadyError
	if errors.As(err, &unready) {
		summary := "Node is not ready"
		at := path.Root("host")
		if len(unready.Shortages) > 0 {
			summary, at = "GPUs are not as declared", path.Root("gpus")
			if m.GPUs.IsNull() {
				at = path.Root("gpu_resources")
			}
			is.Drift = withDrift(is.Drift, "GPUs", unready.Shortages[0].String())
		} else {
			is.Drift = withDrift(is.Drift, "node", "not ready")
		}
		addError(j.diags, at, summary, err)
		err = errRefused
	}
	return &is, err
}

// withDrift adds a fact.
func withDrift(drift types.Map, fact, is string) types.Map {
	all := map[string]attr.Value{}
	for k, v := range drift.Elements() {
		all[k] = v
	}
	all[fact] = types.StringValue(is)
	return types.MapValueMust(types.StringType, all)
}
