package metal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
	"github.com/stokehq/stoke/providers/metal/member"
)

// nodeJoining is the record's note of a join that has begun: its value is the
// node's name. It is removed when the join's token is revoked.
const nodeJoining = "node joining"

// nodeLeaving is the record's note of a node that is renamed: its value is the
// name that the cluster is to forget. It is removed after the node.
const nodeLeaving = "node leaving"

// nodeEnabled is the record's note of whether the kubelet came with the machine
// before it joined.
const nodeEnabled = "node kubelet enabled"

const (
	tokenLife = kubeadm.MaxTokenLife
	// staleLimit is for how long a cluster takes a machine for alive that is gone:
	// 40 seconds (node-monitor-grace-period), and a moment.
	staleLimit = 75 * time.Second
	tidyLimit  = 30 * time.Second
)

// bring makes the machine the node that is declared. It depends on the observed
// role:
//
//   - a worker that has joined is never joined again: its kubelet gets its
//     arguments and configuration, and is restarted where they differ;
//   - one whose join was cut off has nothing to lose, as it has never been ready: it
//     is reset and joins;
//   - a machine with no role joins. Where the cluster has a node of that name
//     with our mark, the machine was reinstalled, and that node is removed
//     first.
func (l *nodeLook) bring(ctx context.Context, rec *host.Record, m *nodeModel, limit time.Duration) error {
	l.rec = rec
	if l.own {
		return l.settle(ctx, limit)
	}
	if l.facts.Running {
		host.Step(ctx, "waiting for kubeadm, which runs there")
		if err := kubeadm.Await(ctx, l.on); err != nil {
			return err
		}
		var err error
		if l.facts, err = kubeadm.Observe(ctx, l.on); err != nil {
			return err
		}
	}
	if err := l.revoke(ctx); err != nil {
		return err
	}
	if l.verify { // such a pod would be in the way of draining
		if err := member.RemoveProbes(ctx, l.client, l.want.Name); err != nil {
			return err
		}
	}
	if !l.facts.Whole || l.facts.NodeName == l.node.Name { // or else it is still to be renamed
		if err := l.forgetOld(ctx, m.ID.ValueString()); err != nil {
			return err
		}
	}
	if l.facts.Whole {
		if err := l.repair(ctx, m); err != nil {
			return err
		}
		return l.settle(ctx, limit)
	}
	if err := reachesAPI(ctx, l.on, l.head, l.join.Endpoint.ValueString(), l.ip); err != nil {
		return err
	}
	if err := installKubernetes(ctx, l.on, rec, l.wantPkgs); err != nil {
		return err
	}
	if l.facts.Role != kubeadm.NoRole || len(l.facts.Left) > 0 {
		var had map[string]int64
		if ready, err := rec.ReadNote(nodeReady, &had); err != nil {
			return err
		} else if ready && l.facts.Role == kubeadm.Worker {
			return fmt.Errorf("%s was a node, and its kubelet has lost its identity; pods may run there, so that it is not reset: bring /etc/kubernetes/kubelet.conf back, or drain it, run kubeadm reset there, and apply again", l.on.Name())
		}
		if err := kubeadm.Reset(ctx, l.on, ""); err != nil {
			return err
		}
	}
	if err := l.enter(ctx, m.ID.ValueString()); err != nil {
		return l.explainError(ctx, err)
	}
	return l.settle(ctx, limit)
}

// revoke ends the token of a join that was cut off.
func (l *nodeLook) revoke(ctx context.Context) error {
	var name string
	if left, err := l.rec.ReadNote(nodeJoining, &name); err != nil || !left {
		return err
	}
	if err := kubeadm.RevokeFor(ctx, l.head, name); err != nil {
		return err
	}
	return l.rec.Forget(ctx, nodeJoining)
}

// enter makes the machine join, with a token only for this.
func (l *nodeLook) enter(ctx context.Context, id string) (err error) {
	if err := l.removeFormer(ctx, id); err != nil {
		return err
	}
	// kubeadm starts the kubelet, and leaves its start at boot to the packages.
	if err := l.rec.Remember(ctx, nodeEnabled, l.facts.KubeletEnabled); err != nil {
		return err
	}
	if _, err := host.Run(ctx, l.on, "systemctl", "enable", "--no-reload", "--quiet", "kubelet.service"); err != nil {
		return err
	}
	token := kubeadm.NewToken()
	config, err := kubeadm.Join{Endpoint: l.join.Endpoint.ValueString(), CAHash: l.join.CAHash.ValueString(), Token: token}.Configuration(l.node)
	if err != nil {
		return err
	}
	if err := l.rec.Set(ctx, nodeJoining, l.node.Name); err != nil {
		return err
	}
	defer func() {
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyLimit)
		defer cancel()
		revoked := kubeadm.Revoke(tidy, l.head, token)
		if revoked == nil {
			revoked = l.rec.Forget(tidy, nodeJoining)
		}
		err = errors.Join(err, revoked)
	}()
	if err := kubeadm.Grant(ctx, l.head, token, l.node.Name, tokenLife); err != nil {
		return err
	}
	return kubeadm.Enter(ctx, l.on, config)
}

// removeFormer removes the machine's node from before it was reinstalled. As long as
// its kubelet reports, there is another machine of that name.
func (l *nodeLook) removeFormer(ctx context.Context, id string) error {
	end := time.Now().Add(staleLimit)
	for {
		have, err := member.Observe(ctx, l.client, l.node.Name)
		switch {
		case err != nil:
			return err
		case have == nil:
			return nil
		case have.Mark.ID != id:
			return fmt.Errorf("the cluster has a foreign node %s: give another node_name, or remove it (kubectl delete "+
				"node %s)", l.node.Name, l.node.Name)
		case !have.Ready():
			host.Step(ctx, "removing the node %s that the machine was before", l.node.Name)
			return member.Delete(ctx, l.client, have)
		case time.Now().After(end):
			return fmt.Errorf("another machine is the node %s: its kubelet reports, and %s has none. Give another node_name, or turn that machine off", l.node.Name, l.on.Name())
		}
		host.Step(ctx, "waiting until node %s, which the machine was before, counts as gone", l.node.Name)
		if err := host.Pause(ctx, 2*time.Second); err != nil {
			return err
		}
	}
}

// repair changes a joined machine to the declaration, and drains its pods if
// that would interrupt them.
func (l *nodeLook) repair(ctx context.Context, m *nodeModel) error {
	changes := func(context.Context) ([]host.Change, error) { return l.changes(), nil }
	if len(l.changes()) == 0 && !l.cordoned(ctx) {
		return nil
	}
	if l.facts.NodeName != l.node.Name { // the node of the old name does not come back
		if err := promised(ctx).covers(l.on, l.changes()); err != nil {
			return err
		}
		return l.settings.leaveDrained(ctx, l.on, "another name", m.nodePolicy(l.join), func(ctx context.Context) error {
			if err := installKubernetes(ctx, l.on, l.rec, l.wantPkgs); err != nil {
				return err
			}
			return l.rename(ctx, m.ID.ValueString())
		})
	}
	return l.settings.disrupt(ctx, l.on, changes, m.nodePolicy(l.join), func(ctx context.Context) error {
		if err := installKubernetes(ctx, l.on, l.rec, l.wantPkgs); err != nil {
			return err
		}
		return l.restart(ctx)
	})
}

// cordoned tells whether an earlier run has cordoned the node and was cut off.
func (l *nodeLook) cordoned(ctx context.Context) bool {
	return !l.settings.cordonedBy(ctx, l.on).IsNull()
}

// restart gives the kubelet its arguments and its configuration.
func (l *nodeLook) restart(ctx context.Context) error {
	if len(l.changes()) == 0 {
		return nil
	}
	if err := kubeadm.SetArguments(ctx, l.on, l.facts, l.node); err != nil {
		return err
	}
	if len(l.fields) > 0 {
		if err := kubeadm.FetchKubeletConfiguration(ctx, l.on); err != nil {
			return err
		}
	}
	return kubeadm.RestartKubelet(ctx, l.on)
}

// rename has a node leave, which pods have left, and join by its new name.
func (l *nodeLook) rename(ctx context.Context, id string) error {
	if err := l.rec.Replace(ctx, map[string]any{nodeLeaving: l.facts.NodeName}, nodeReady, nodeVerified); err != nil { // one that is cut off is reset again
		return err
	}
	if err := kubeadm.Reset(ctx, l.on, ""); err != nil {
		return err
	}
	if err := l.forgetOld(ctx, id); err != nil {
		return err
	}
	if err := l.enter(ctx, id); err != nil {
		return l.explainError(ctx, err)
	}
	return nil
}

// forgetOld has the cluster forget the node that the machine was by another name.
func (l *nodeLook) forgetOld(ctx context.Context, id string) error {
	var old string
	if left, err := l.rec.ReadNote(nodeLeaving, &old); err != nil || !left {
		return err
	}
	if old != l.node.Name { // else the new name was taken back before anything was done
		have, err := member.Observe(ctx, l.client, old)
		if err == nil && have != nil && (have.Mark.ID == id || have.Mark.ID == "") {
			err = member.Delete(ctx, l.client, have)
		}
		if err != nil {
			return err
		}
	}
	return l.rec.Forget(ctx, nodeLeaving)
}

// settle gives the node what the API has of it, waits until it is ready, and
// writes down that it was. Labels and taints come first: what makes it ready may
// go by them.
func (l *nodeLook) settle(ctx context.Context, limit time.Duration) error {
	began := time.Now()
	if err := member.AwaitRegistered(ctx, l.client, l.want.Name, limit); err != nil {
		return l.explainError(ctx, err)
	}
	if err := member.TolerateInDNS(ctx, l.client, l.gpuTaints); err != nil {
		return err
	}
	if err := member.Apply(ctx, l.client, l.want); err != nil {
		return err
	}
	want := l.want
	if l.wasReady {
		want.GPUs = nil // broken GPUs are reported, and not waited for
	}
	if _, err := member.Await(ctx, l.client, want, max(limit-time.Since(began), time.Second)); err != nil {
		return l.explainError(ctx, err)
	}
	if err := member.SetOutOfService(ctx, l.client, l.want.Name, false); err != nil { // it answers
		return err
	}
	if err := l.rec.Set(ctx, nodeReady, l.want.GPUs); err != nil {
		return err
	}
	return l.try(ctx)
}

// logs keeps the last lines of who makes a node ready; $1 is where they are kept.
// What looks like a token or a key is left out.
const logs = `# keep the last lines of the kubelet, of containerd and of static pods
umask 077
{
	for unit in kubelet containerd; do
		echo "== $unit"
		journalctl -u "$unit" -n 100 --no-pager 2>/dev/null
	done
	for log in /var/log/pods/kube-system_etcd-*/*/*.log /var/log/pods/kube-system_kube-*/*/*.log; do
		[ -f "$log" ] || continue
		echo "== ${log#/var/log/pods/}"
		tail -n 50 "$log"
	done
} | sed -E 's/\b[a-z0-9]{6}\.[a-z0-9]{16}\b/(token)/g; s/(Bearer|token|password|secret)([=: ]+)[^ ]+/\1\2(left out)/gI; s/eyJ[A-Za-z0-9._-]{20,}/(token)/g' >"$1"`

// explainError adds to an error where the last lines of the machine's logs are.
func (l *nodeLook) explainError(ctx context.Context, err error) error {
	if errors.Is(err, host.ErrStopped) {
		return err
	}
	keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyLimit)
	defer cancel()
	file := l.rec.Dir() + "/failure.log"
	if _, failed := host.Script(keep, l.on, logs, file); failed != nil {
		return err
	}
	return fmt.Errorf("%w. The last lines of the kubelet, containerd and static pods are in %s on %s", err, file, l.on.Name())
}
