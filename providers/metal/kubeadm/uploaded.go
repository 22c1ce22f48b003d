package kubeadm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/stokehq/stoke/providers/metal/host"
)

// ConfigMaps in which kubeadm keeps what nodes and kube-proxy read.
const (
	KubeletMap = "kubelet-config"
	ProxyMap   = "kube-proxy"
)

// One that is not there has no line. Data are printed as JSON, on one line.
const uploaded = `# look at what kubeadm keeps in the cluster
` + kubectl + `kubectl --request-timeout=20s --namespace kube-system get configmap kubeadm-config kubelet-config kube-proxy --ignore-not-found \
	-o 'jsonpath={range .items[*]}{"map\t"}{.metadata.name}{"\t"}{.data}{"\n"}{end}' || exit
echo end`

// Uploaded are hashes of what kubeadm keeps in the cluster, by the names of
// ConfigMaps. Those that are missing are not among them.
func Uploaded(ctx context.Context, controlPlane host.Machine) (map[string]string, error) {
	all := map[string]string{}
	err := host.Look(ctx, controlPlane, "what kubeadm keeps in the cluster", uploaded, host.Lines{"map": host.Fields(2, func(v []string) error {
		sum := sha256.Sum256([]byte(v[1]))
		all[v[0]] = hex.EncodeToString(sum[:])
		return nil
	})})
	return all, err
}
