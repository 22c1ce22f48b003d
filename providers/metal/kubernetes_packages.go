package metal

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
	"github.com/stokehq/stoke/providers/metal/nvidia"
	"github.com/stokehq/stoke/providers/metal/packages"
)

const (
	kubernetesURL = "https://pkgs.k8s.io"
	// kubernetesKey signs the repositories of all minors (isv:kubernetes of the
	// Open Build Service, kubernetes.io/docs/tasks/tools/install-kubectl-linux).
	kubernetesKey        = "DE15B14486CD377B9E876E1A234654DA9A296436"
	kubernetesRepository = "kubernetes"
)

// kubernetesPackages are the programs of a cluster's machine. They follow the
// cluster's version, all but cri-tools, which has versions of its own.
var kubernetesPackages = []string{"kubeadm", "kubelet", "kubectl"}

// kubernetesRepositoryAttribute overrides where they come from.
func kubernetesRepositoryAttribute() schema.SingleNestedAttribute {
	return repositoryAttribute("A mirror of the repository of the cluster's minor at " + kubernetesURL + ".")
}

// kubernetes returns the packages of a release of Kubernetes: from its
// repository, at exactly that version and held, because a kubelet that apt
// upgrades without its cluster does not start. owner is the kind of the record
// that knows of them, why the resource that wants them.
func (s *settings) kubernetes(owner, why string, release kubeadm.Release, override *gpuRepositoryModel) packages.Spec {
	base := kubernetesURL + "/core:/stable:/v" + release.Minor.String() + "/deb/"
	from := nvidia.Source{URL: s.mirror(base), Suite: "/", KeyURL: s.mirror(base + "Release.key"), Fingerprint: kubernetesKey}
	p := packages.Spec{
		Owner: owner, Proxy: s.proxy, Packages: map[string]packages.Package{},
		Repositories: map[string]packages.Repository{kubernetesRepository: aptRepository(override.override().Merge(from), why)},
		// They come along with another version of the kubelet, and interrupt nothing.
		Allow: []string{"cri-tools", "kubernetes-cni"},
	}
	for _, name := range kubernetesPackages {
		p.Packages[name] = packages.Package{Version: release.String() + "-*", Hold: true, Exclude: true, Why: why}
	}
	p.Packages["cri-tools"] = packages.Package{Hold: true, Exclude: true, Why: why}
	return p
}

// installKubernetes brings those packages about where they differ.
func installKubernetes(ctx context.Context, m host.Machine, rec *host.Record, want packages.Spec) error {
	want.Limit = bound(ctx)
	have, err := packages.Observe(ctx, m, want)
	if err != nil {
		return err
	}
	gone, err := packages.Undoing(ctx, m, rec, &want)
	if err != nil || len(packages.Diff(want, have)) == 0 && len(gone) == 0 && len(rec.Keys(packages.Noted)) > 0 {
		return err
	}
	host.Step(ctx, "installing kubeadm and the kubelet")
	return packages.Apply(ctx, m, rec, want, have)
}
