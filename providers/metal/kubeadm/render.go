package kubeadm

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	defaultServices = "10.96.0.0/12"
	defaultDomain   = "cluster.local"

	// nodeGroup is whom kubeadm's RBAC lets bootstrap a node.
	nodeGroup = "system:bootstrappers:kubeadm:default-node-token"
	// initToken describes the token of kubeadm init, so that RevokeInit finds it:
	// without a token kubeadm makes one that lives for a day.
	initToken     = "stoke: kubeadm init"
	initTokenLife = 10 * time.Minute

	// firstCall is how long kubeadm init tries a call of the API: as long as it waits
	// for the control plane, since its first call comes before that wait, while the
	// API server starts. By itself it tries for a minute, which slow machines exceed.
	firstCall = 4 * time.Minute
)

// Init is what kubeadm init reads to make a machine the cluster's control plane:
// InitConfiguration and the documents of Configuration.
func (c Cluster) Init(n Node, token Token) ([]byte, error) {
	if err := invalid(append(c.Check(), n.Check()...)); err != nil {
		return nil, err
	}
	taints := slices.Clone(n.Taints)
	if !n.Schedulable && !slices.Contains(taints, controlPlaneTaint) {
		taints = append([]Taint{controlPlaneTaint}, taints...)
	}
	document := initConfiguration{
		kind: kind{kubeadmAPI, "InitConfiguration"},
		BootstrapTokens: []bootstrapToken{{
			Token: token.reveal(), Description: initToken, TTL: initTokenLife.String(),
			Usages: []string{"signing", "authentication"}, Groups: []string{nodeGroup},
		}},
		NodeRegistration: n.registration(taints),
		Timeouts:         timeouts{firstCall.String()},
	}
	if n.Patches != "" {
		document.Patches = &patches{n.Patches}
	}
	if c.Advertise != "" || c.Port != 0 {
		document.LocalAPIEndpoint = &localEndpoint{c.Advertise, c.Port}
	}
	rest, err := c.Configuration()
	if err != nil {
		return nil, err
	}
	first, err := documents(document)
	return join(first, rest), err
}

// Configuration is what holds for the cluster: ClusterConfiguration,
// KubeletConfiguration and KubeProxyConfiguration, which kubeadm's phases read.
func (c Cluster) Configuration() ([]byte, error) {
	if err := invalid(c.Check()); err != nil {
		return nil, err
	}
	release, err := ParseRelease(c.Version)
	if err != nil {
		return nil, err
	}
	services := c.Services
	if len(services) == 0 {
		services = []string{defaultServices}
	}
	return documents(clusterConfiguration{
		kind:                 kind{kubeadmAPI, "ClusterConfiguration"},
		KubernetesVersion:    "v" + release.String(),
		ClusterName:          c.Name,
		ControlPlaneEndpoint: c.Endpoint,
		ImageRepository:      c.Images,
		Networking: networking{
			PodSubnet: strings.Join(c.Pods, ","), ServiceSubnet: strings.Join(services, ","), DNSDomain: cmp.Or(c.Domain, defaultDomain),
		},
		APIServer:                   apiServer{ExtraArgs: arguments(c.APIServer), CertSANs: c.CertNames},
		CertificateValidityPeriod:   duration(c.CertificateLife),
		CACertificateValidityPeriod: duration(c.CALife),
	}, c.KubeletConfiguration(), c.proxyConfiguration())
}

// KubeletConfiguration is the document of that kind for all kubelets of the
// cluster: stoke's defaults with Cluster.Kubelet laid over them.
func (c Cluster) KubeletConfiguration() map[string]any {
	return mergeOver(map[string]any{
		"apiVersion": kubeletAPI, "kind": "KubeletConfiguration",
		"cgroupDriver": "systemd", "clusterDomain": cmp.Or(c.Domain, defaultDomain),
	}, c.Kubelet)
}

func (c Cluster) proxyConfiguration() map[string]any {
	return mergeOver(map[string]any{"apiVersion": proxyAPI, "kind": "KubeProxyConfiguration", "mode": "nftables"}, c.Proxy)
}

// Configuration is what kubeadm join reads to make a machine a worker.
func (j Join) Configuration(n Node) ([]byte, error) {
	if err := invalid(append(j.Check(), n.Check()...)); err != nil {
		return nil, err
	}
	return documents(joinConfiguration{
		kind:             kind{kubeadmAPI, "JoinConfiguration"},
		Discovery:        discovery{tokenDiscovery{j.Endpoint, j.Token.reveal(), []string{j.CAHash}}},
		NodeRegistration: n.registration(slices.Clone(n.Taints)),
	})
}

func (n Node) registration(taints []Taint) registration {
	if taints == nil {
		taints = []Taint{}
	}
	args := map[string]string{"hostname-override": n.Name, "node-ip": n.IP}
	if len(n.Labels) > 0 {
		var labels []string
		for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
			labels = append(labels, key+"="+n.Labels[key])
		}
		args["node-labels"] = strings.Join(labels, ",")
	}
	if n.MaxPods > 0 {
		args["max-pods"] = strconv.Itoa(n.MaxPods)
	}
	maps.Copy(args, n.KubeletArgs)
	return registration{
		Name: n.Name, CRISocket: cmp.Or(n.CRISocket, DefaultCRISocket), Taints: taints, KubeletExtraArgs: arguments(args),
		IgnorePreflightErrors: n.IgnorePreflight, ImagePullPolicy: n.PullImages,
	}
}

// arguments are sorted, so that the same ones are the same text.
func arguments(all map[string]string) []argument {
	var sorted []argument
	for _, name := range slices.Sorted(maps.Keys(all)) {
		sorted = append(sorted, argument{name, all[name]})
	}
	return sorted
}

func duration(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// mergeOver is a document with fields of another one over it: maps are merged, and
// everything else is replaced.
func mergeOver(under, over map[string]any) map[string]any {
	merged := maps.Clone(under)
	for key, value := range over {
		below, isMap := merged[key].(map[string]any)
		if above, both := value.(map[string]any); both && isMap {
			value = mergeOver(below, above)
		}
		merged[key] = value
	}
	return merged
}

// documents are several in one text, as kubeadm reads them.
func documents(all ...any) ([]byte, error) {
	var texts [][]byte
	for _, document := range all {
		text, err := yaml.Marshal(document)
		if err != nil {
			return nil, fmt.Errorf("write kubeadm's configuration: %w", err)
		}
		texts = append(texts, text)
	}
	return join(texts...), nil
}

func join(documents ...[]byte) []byte { return bytes.Join(documents, []byte("---\n")) }

// Hash is that of a document, whatever the order of its fields: 64 digits. It is
// how nodes are told that the kubelet's configuration changed.
func Hash(document map[string]any) (string, error) {
	text, err := json.Marshal(document)
	if err != nil {
		return "", fmt.Errorf("hash a document: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// invalid is all that is wrong as one error, nil for nothing.
func invalid(problems []Problem) error {
	var all []error
	for _, p := range problems {
		all = append(all, p)
	}
	return errors.Join(all...)
}
