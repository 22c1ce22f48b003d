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
	"github.com/stokehq/stoke/providers/kube/object"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
)

// clusterAt is the argument that leads to the control plane.
var clusterAt = path.Root("control_plane")

// endpointOf is where the API server of a machine is reached, where nobody says
// otherwise.
func endpointOf(way connect.SSH) string {
	return net.JoinHostPort(strings.Trim(way.Address, "[]"), "6443")
}

// stale are keys of what was applied and is not among objects.
func stale(before []string, objects []*unstructured.Unstructured) []string {
	return slices.DeleteFunc(slices.Clone(before), func(key string) bool {
		return slices.ContainsFunc(objects, func(u *unstructured.Unstructured) bool { return object.KeyOf(u).String() == key })
	})
}

// dial opens connections from the control plane's machine.
func (w *clusterWork) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return host.Dial(ctx, w.m, network, address)
}

// explained adds what the cluster's programs said last to an error that came
// while something was waited for.
func (w *clusterWork) explained(ctx context.Context, err error) error {
	if !w.waited || errors.Is(err, host.ErrStopped) || ctx.Err() != nil {
		return err
	}
	said := kubeadm.Said(context.WithoutCancel(ctx), w.m)
	if said == "" {
		return err
	}
	return fmt.Errorf("%w\nThe last that was said on %s:\n  %s", err, w.m.Name(), strings.ReplaceAll(said, "\n", "\n  "))
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
