package metal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
)

// clusterAt is the argument that leads to the control plane.
var clusterAt = path.Root("control_plane")

// endpointOf is the default endpoint of a machine's API server.
func endpointOf(way connect.SSH) string {
	return net.JoinHostPort(strings.Trim(way.Address, "[]"), "6443")
}

// stale returns keys of applied objects that are not among objects.
func stale(before []string, objects []*unstructured.Unstructured) []string {
	return slices.DeleteFunc(slices.Clone(before), func(key string) bool {
		return slices.ContainsFunc(objects, func(u *unstructured.Unstructured) bool { return object.KeyOf(u).String() == key })
	})
}

// dial opens connections from the control plane's machine.
func (w *clusterWork) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return host.Dial(ctx, w.m, network, address)
}

// logTime is for keeping the logs that say why something failed.
const logTime = time.Minute

// explainError adds the place and the last errors of the programs' logs to an error
// of a wait.
func (w *clusterWork) explainError(ctx context.Context, err error) error {
	if !w.waited || errors.Is(err, host.ErrStopped) || ctx.Err() != nil {
		return err
	}
	keep, cancel := context.WithTimeout(ctx, logTime)
	defer cancel()
	file := w.rec.Dir() + "/failure.log"
	if failed := kubeadm.KeepLogs(keep, w.m, file); failed != nil {
		return fmt.Errorf("%w\nWhat kubelet, containerd and the static pods said last could not be kept: %w", err, failed)
	}
	text := fmt.Sprintf("The last lines of kubelet, containerd and the static pods are in %s on %s", file, w.m.Name())
	if said := kubeadm.LastErrors(keep, w.m, file); said != "" {
		text += "; the last errors there:\n  " + strings.ReplaceAll(said, "\n", "\n  ")
	}
	return fmt.Errorf("%w\n%s", err, text)
}

// results sets what follows from a cluster that is ready.
func (w *clusterWork) results(ctx context.Context, is *clusterModel) error {
	facts, err := kubeadm.Observe(ctx, w.m)
	if err != nil {
		return err
	}
	access, diags := w.access.Object(ctx)
	is.Access = access
	join, err := is.joining(ctx, facts.CAHash)
	if err != nil {
		return err
	}
	is.Join = join
	is.Expires = types.StringNull()
	if which, at := expires(facts); which != "" {
		is.Expires = types.StringValue(at.UTC().Format(time.RFC3339))
	}
	is.Drift = types.MapValueMust(types.StringType, map[string]attr.Value{})
	return failed(diags)
}

// joining is the value join. Before there is a cluster the authority's hash is
// "", and unknown then, as is the release.
func (m *clusterModel) joining(ctx context.Context, caHash string) (types.Object, error) {
	spec, err := m.spec(ctx)
	if err != nil {
		return types.ObjectUnknown(joinTypes()), nil
	}
	hash, err := kubeadm.Hash(spec.cluster.KubeletConfiguration())
	if err != nil {
		return types.ObjectNull(joinTypes()), err
	}
	j := joinModel{
		Endpoint: m.Endpoint, CAHash: types.StringValue(caHash), Version: m.Installed, ControlPlane: m.head(),
		MaxUnavailable: m.MaxUnavailable, KubeletHash: types.StringValue(hash),
	}
	if caHash == "" {
		j.CAHash = types.StringUnknown()
	}
	o, diags := j.object(ctx)
	return o, failed(diags)
}

// learn sets the values of a control plane that exists and was not stored: the
// cluster was imported, an apply was cut off before it could store it, or it was
// upgraded by hand.
func (m *clusterModel) learn(is kubeadm.Facts) {
	if !is.Whole {
		return
	}
	if release, err := kubeadm.ParseRelease(is.Version); err == nil {
		m.Installed = types.StringValue(release.String())
	}
	if m.NodeName.ValueString() == "" {
		m.NodeName = types.StringValue(is.NodeName)
	}
	if at := is.APIServer["advertise-address"]; m.Advertise.ValueString() == "" && len(at) == 1 {
		m.Advertise = types.StringValue(at[0])
	}
}

// connected sets access and join of a cluster whose state has neither.
func (m *clusterModel) connected(ctx context.Context, s *settings, on host.Machine, is kubeadm.Facts) error {
	way, err := m.leads(ctx)
	if err != nil {
		return err
	}
	if m.Endpoint.ValueString() == "" {
		m.Endpoint = types.StringValue(endpointOf(way))
	}
	c, err := s.connection(ctx, on, way, m.Endpoint.ValueString(), "")
	if err != nil {
		return err
	}
	if err := s.withCluster(ctx, c, func(cluster *live.Cluster) error { c.ID = cluster.ID; return nil }); err != nil {
		return err
	}
	join, err := m.joining(ctx, is.CAHash)
	if err != nil {
		return err
	}
	access, diags := c.Object(ctx)
	if err := failed(diags); err != nil {
		return err
	}
	m.Access, m.Join = access, join
	return nil
}
