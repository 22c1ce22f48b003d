package metal

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/metal/drain"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
)

// Phases of init before its API server is there, and after.
var (
	phasesBefore = [][]string{{"certs", "all"}, {"kubeconfig", "all"}, {"etcd", "local"}, {"control-plane", "all"}, {"kubelet-start"}}
	phasesAfter  = [][]string{{"upload-config", "all"}, {"mark-control-plane"}, {"bootstrap-token"}, {"kubelet-finalize", "all"}, {"addon", "all"}}
)

// finish repeats init's phases where it was cut off: each keeps existing files
// and data.
func (w *clusterWork) finish(ctx context.Context) error {
	w.waited = true
	if kubeadm.Ready(ctx, w.m) != nil {
		if err := w.mendCertificates(ctx); err != nil {
			return err
		}
		if err := w.phases(ctx, phasesBefore...); err != nil {
			return err
		}
		if err := kubeadm.AwaitServer(ctx, w.m, apiTime); err != nil {
			return err
		}
	}
	if err := w.rec.Set(ctx, noteHealthy, true); err != nil {
		return err
	}
	if err := w.phases(ctx, phasesAfter...); err != nil {
		return err
	}
	return w.noteInit(ctx)
}

// mendCertificates removes files that prevent init from continuing: half-written
// ones, if no API server ever ran, and a certificate of the API server that
// lacks a declared name. kubeadm refuses both.
func (w *clusterWork) mendCertificates(ctx context.Context) error {
	is := w.look.is
	if !is.Etcd && !w.look.notes.healthy {
		if err := kubeadm.DropHalves(ctx, w.m); err != nil {
			return err
		}
	}
	if _, there := is.Certificates[apiServerCertificate]; there && len(w.spec.changedNames(is, lastApply{})) > 0 {
		return kubeadm.Rename(ctx, w.m, w.config)
	}
	return nil
}

func (w *clusterWork) phases(ctx context.Context, all ...[]string) error {
	for _, phase := range all {
		if err := kubeadm.Phase(ctx, w.m, w.config, phase...); err != nil {
			return err
		}
	}
	return nil
}

// repair has the API server of a cluster answer again. It replaces no certificate
// and touches no data: what that does not fix is for people.
func (w *clusterWork) repair(ctx context.Context) error {
	if !w.look.is.KubeletActive || !w.look.is.KubeletEnabled {
		if err := kubeadm.StartKubelet(ctx, w.m); err != nil {
			return err
		}
	}
	if err := w.answers(ctx); err != nil {
		return err
	}
	// The rights of the operators, which the next steps use, may have been
	// removed.
	return kubeadm.Authorize(ctx, w.m, kubernetes.Operators)
}

// answers has the API server answer.
func (w *clusterWork) answers(ctx context.Context) error {
	err := kubeadm.Ready(ctx, w.m)
	if err == nil || !errors.As(err, new(*kubeadm.NotReadyError)) {
		return err
	}
	w.waited = true
	if err = kubeadm.AwaitReady(ctx, w.m, w.patience); err == nil || !errors.As(err, new(*kubeadm.NotReadyError)) {
		return err
	}
	// A change of names that was cut off has left no certificate of the API server.
	// An existing certificate is kept: kubeadm refuses to replace a certificate
	// that lacks declared names, and change does it later.
	if _, there := w.look.is.Certificates[apiServerCertificate]; !there {
		if err := w.phases(ctx, []string{"certs", "apiserver"}); err != nil {
			return err
		}
	}
	if err := w.phases(ctx, []string{"etcd", "local"}, []string{"control-plane", "all"}); err != nil {
		return err
	}
	return kubeadm.AwaitReady(ctx, w.m, apiTime)
}

// change makes the declared changes on the machine.
func (w *clusterWork) change(ctx context.Context) error {
	ahead, err := w.spec.changes(w.look)
	if err != nil || len(ahead) == 0 {
		return err
	}
	changes := func(context.Context) ([]host.Change, error) { return ahead, nil }
	policy := drain.Policy{MaxUnavailable: int(w.model.MaxUnavailable.ValueInt64())}
	return w.s.disrupt(ctx, w.m, changes, policy, func(ctx context.Context) error { return w.changed(ctx, ahead) })
}

func (w *clusterWork) changed(ctx context.Context, ahead []host.Change) error {
	w.waited = true
	differs := func(fact string) bool {
		return slices.ContainsFunc(ahead, func(c host.Change) bool { return strings.HasPrefix(c.Fact, fact) })
	}
	patched := differs(factPatches)
	proxy := patched || differs(factProxy) || differs(factImages) || differs(factUploaded+kubeadm.ProxyMap)
	steps := []struct {
		due bool
		do  func() error
	}{
		{differs(factName), func() error { return kubeadm.Rename(ctx, w.m, w.config) }},
		{patched || differs(factImages), func() error { return w.phases(ctx, []string{"etcd", "local"}, []string{"control-plane", "all"}) }},
		{differs(factArgument), func() error { return w.phases(ctx, []string{"control-plane", "apiserver"}) }},
		{patched || differs(factImages) || differs(factArgument), func() error { return kubeadm.AwaitReady(ctx, w.m, apiTime) }},
		{patched || differs(factKubelet), func() error { return w.configureKubelet(ctx) }},
		{patched || differs(factKubelet), func() error { return kubeadm.AwaitReady(ctx, w.m, apiTime) }},
		{true, func() error { return w.phases(ctx, []string{"upload-config", "kubeadm"}) }},
		{differs(factUploaded + kubeadm.KubeletMap), func() error { return w.phases(ctx, []string{"upload-config", "kubelet"}) }},
		{patched || differs(factImages), func() error { return w.phases(ctx, []string{"addon", "coredns"}) }},
		{proxy, func() error { return w.phases(ctx, []string{"addon", "kube-proxy"}) }},
		{proxy, func() error { return kubeadm.RestartProxy(ctx, w.m) }},
		{differs(factReserved) && !w.spec.node.Schedulable, func() error { return w.phases(ctx, []string{"mark-control-plane"}) }},
		{differs(factReserved) && w.spec.node.Schedulable, func() error { return kubeadm.Open(ctx, w.m, w.look.is.NodeName) }},
	}
	for _, step := range steps {
		if step.due {
			if err := step.do(); err != nil {
				return err
			}
		}
	}
	return w.noteInit(ctx)
}

// configureKubelet gives all kubelets their configuration by way of the cluster, and
// the control plane's takes it. The phase kubelet-start would make systemd reload
// its units, and then containers lose their GPUs.
func (w *clusterWork) configureKubelet(ctx context.Context) error {
	if err := w.phases(ctx, []string{"upload-config", "kubelet"}); err != nil {
		return err
	}
	var flags []string
	if dir := w.spec.node.Patches; dir != "" {
		flags = []string{"--patches=" + dir}
	}
	if err := kubeadm.FetchKubeletConfiguration(ctx, w.m, flags...); err != nil {
		return err
	}
	return kubeadm.RestartKubelet(ctx, w.m)
}
