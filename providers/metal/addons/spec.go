package addons

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// Images that are taken where nobody says otherwise: flannel's by its release
// v0.28.4 (Documentation/kube-flannel.yml), the device plugin's by its chart
// 0.20.0.
const (
	FlannelImage       = "ghcr.io/flannel-io/flannel:v0.28.4"
	FlannelPluginImage = "ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel1"
	GPUPluginImage     = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"
)

// GPUNode is the label of nodes that the device plugin runs on. GPU feature
// discovery calls it the same.
const GPUNode = "nvidia.com/gpu.present"

// Spec is what a cluster is to have.
type Spec struct {
	// Owner is the resource that the objects belong to; they carry it as a label.
	Owner string
	// Pods are the networks of pods, which flannel parts among nodes.
	Pods []string
	// Flannel selects flannel as the network. FlannelImage and FlannelPluginImage
	// stand in for its images.
	Flannel                          bool
	FlannelImage, FlannelPluginImage string
	// Manifest is of another network, with From for messages.
	Manifest, From string
	// GPUPlugin says that NVIDIA's device plugin runs on nodes with the label
	// GPUNode. GPUPluginImage stands in for its image.
	GPUPlugin      bool
	GPUPluginImage string
}

// Objects returns the objects of the Spec in the order of their creation.
func (s Spec) Objects() ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	if s.Flannel {
		flannel, err := s.flannel()
		if err != nil {
			return nil, err
		}
		all = append(all, flannel...)
	}
	if s.Manifest != "" {
		parsed, err := object.Parse([]byte(s.Manifest), cmp.Or(s.From, "the manifest"))
		if err != nil {
			return nil, err
		}
		all = append(all, parsed...)
	}
	if s.GPUPlugin {
		all = append(all, s.gpuPlugin()...)
	}
	var ordered []*unstructured.Unstructured
	for _, wave := range object.Waves(all) {
		for _, u := range wave {
			object.Clean(u)
			labels := u.GetLabels()
			if labels == nil {
				labels = map[string]string{}
			}
			labels[live.Mark] = s.Owner
			u.SetLabels(labels)
			ordered = append(ordered, u)
		}
	}
	return ordered, nil
}

// flannel reads the node's own address from its pod, so that its packets go by
// the interface that has it, whatever that is called there.
func (s Spec) flannel() ([]*unstructured.Unstructured, error) {
	net := map[string]any{"Backend": map[string]any{"Type": "vxlan"}, "EnableNFTables": false, "EnableIPv4": false}
	for _, text := range s.Pods {
		n, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("network of pods: %w", err)
		}
		if n.Addr().Is4() {
			net["Network"], net["EnableIPv4"] = text, true
		} else {
			net["IPv6Network"], net["EnableIPv6"] = text, true
		}
	}
	config, err := json.MarshalIndent(net, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write flannel's configuration: %w", err)
	}
	iface := []any{"--iface=$(NODE_IP)"}
	if net["EnableIPv4"] == false {
		iface = []any{"--iface-can-reach=$(NODE_IP)"}
	}
	labels := map[string]any{"app": "flannel", "k8s-app": "flannel"}
	image := cmp.Or(s.FlannelImage, FlannelImage)
	named := func(name string) map[string]any { return meta(name, "kube-flannel", labels) }
	return objects(
		map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": meta("kube-flannel", "",
			map[string]any{"k8s-app": "flannel", "pod-security.kubernetes.io/enforce": "privileged"})},
		map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": named("flannel")},
		map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": meta("flannel", "", labels), "rules": []any{
			rule([]any{"pods"}, "get"), rule([]any{"nodes"}, "get", "list", "watch"), rule([]any{"nodes/status"}, "patch"),
		}},
		map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": meta("flannel", "", labels),
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "flannel"},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "flannel", "namespace": "kube-flannel"}}},
		map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": named("kube-flannel-cfg"),
			"data": map[string]any{"cni-conf.json": cniConfig, "net-conf.json": string(config) + "\n"}},
		map[string]any{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": named("kube-flannel-ds"), "spec": map[string]any{
			"selector": map[string]any{"matchLabels": map[string]any{"app": "flannel"}},
			"template": map[string]any{
				// A pod reads its configuration when it starts.
				"metadata": map[string]any{"labels": labels, "annotations": map[string]any{"stoke.dev/configuration": object.Hash(cniConfig + string(config))}},
				"spec":     flannelPod(image, cmp.Or(s.FlannelPluginImage, FlannelPluginImage), iface),
			},
		}},
	), nil
}

func flannelPod(image, plugin string, iface []any) map[string]any {
	mount := func(name, at string) map[string]any { return map[string]any{"name": name, "mountPath": at} }
	host := func(name, at string) map[string]any {
		return map[string]any{"name": name, "hostPath": map[string]any{"path": at}}
	}
	field := func(name, from string) map[string]any {
		return map[string]any{"name": name, "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": from}}}
	}
	copied := func(name, image, from, to string, mounts ...any) map[string]any {
		return map[string]any{"name": name, "image": image, "command": []any{"cp"}, "args": []any{"-f", from, to}, "volumeMounts": mounts}
	}
	return map[string]any{
		"hostNetwork": true, "priorityClassName": "system-node-critical", "serviceAccountName": "flannel",
		"nodeSelector": map[string]any{"kubernetes.io/os": "linux"},
		"tolerations":  []any{map[string]any{"operator": "Exists"}},
		"initContainers": []any{
			copied("install-cni-plugin", plugin, "/flannel", "/opt/cni/bin/flannel", mount("cni-plugin", "/opt/cni/bin")),
			copied("install-cni", image, "/etc/kube-flannel/cni-conf.json", "/etc/cni/net.d/10-flannel.conflist", mount("cni", "/etc/cni/net.d"), mount("flannel-cfg", "/etc/kube-flannel/")),
		},
		"containers": []any{map[string]any{
			"name": "kube-flannel", "image": image, "command": []any{"/opt/bin/flanneld"},
			"args":            append([]any{"--ip-masq", "--kube-subnet-mgr"}, iface...),
			"resources":       map[string]any{"requests": map[string]any{"cpu": "100m", "memory": "50Mi"}},
			"securityContext": map[string]any{"privileged": false, "capabilities": map[string]any{"add": []any{"NET_ADMIN", "NET_RAW"}}},
			"env":             []any{field("POD_NAME", "metadata.name"), field("POD_NAMESPACE", "metadata.namespace"), field("NODE_IP", "status.hostIP")},
			"volumeMounts":    []any{mount("run", "/run/flannel"), mount("flannel-cfg", "/etc/kube-flannel/"), mount("xtables-lock", "/run/xtables.lock")},
		}},
		"volumes": []any{
			host("run", "/run/flannel"), host("cni-plugin", "/opt/cni/bin"), host("cni", "/etc/cni/net.d"),
			map[string]any{"name": "flannel-cfg", "configMap": map[string]any{"name": "kube-flannel-cfg"}},
			map[string]any{"name": "xtables-lock", "hostPath": map[string]any{"path": "/run/xtables.lock", "type": "FileOrCreate"}},
		},
	}
}

// cniConfig is what the container runtime reads: flannel has the plugin bridge
// make a pod's interface.
const cniConfig = `{
  "name": "cbr0",
  "cniVersion": "0.3.1",
  "plugins": [
    {"type": "flannel", "delegate": {"hairpinMode": true, "isDefaultGateway": true}},
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
`

// gpuPlugin is NVIDIA's device plugin. It finds the GPUs in a container of the
// runtime nvidia, which metal_gpu_driver sets up as an additional runtime of
// containerd.
func (s Spec) gpuPlugin() []*unstructured.Unstructured {
	const name = "nvidia-device-plugin-daemonset"
	labels := map[string]any{"name": "nvidia-device-plugin-ds"}
	plugins := map[string]any{"name": "kubelet-device-plugins-dir", "mountPath": "/var/lib/kubelet/device-plugins"}
	return objects(
		map[string]any{"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": meta("nvidia", "", nil), "handler": "nvidia"},
		map[string]any{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": meta(name, "kube-system", labels), "spec": map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
				"priorityClassName": "system-node-critical", "runtimeClassName": "nvidia",
				"nodeSelector": map[string]any{GPUNode: "true"},
				"tolerations":  []any{map[string]any{"operator": "Exists"}},
				"containers": []any{map[string]any{
					"name": "nvidia-device-plugin-ctr", "image": cmp.Or(s.GPUPluginImage, GPUPluginImage),
					"env": []any{
						map[string]any{"name": "NVIDIA_MIG_MONITOR_DEVICES", "value": "all"},
						map[string]any{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
						map[string]any{"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "compute,utility"},
					},
					"securityContext": map[string]any{"privileged": true},
					"volumeMounts":    []any{plugins},
				}},
				"volumes": []any{map[string]any{"name": plugins["name"], "hostPath": map[string]any{"path": plugins["mountPath"]}}},
			}},
		}},
	)
}

func meta(name, namespace string, labels map[string]any) map[string]any {
	m := map[string]any{"name": name}
	if namespace != "" {
		m["namespace"] = namespace
	}
	if labels != nil {
		all := map[string]any{}
		for k, v := range labels {
			all[k] = v
		}
		m["labels"] = all
	}
	return m
}

func rule(resources []any, verbs ...any) map[string]any {
	return map[string]any{"apiGroups": []any{""}, "resources": resources, "verbs": verbs}
}

func objects(all ...map[string]any) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, o := range all {
		out = append(out, &unstructured.Unstructured{Object: o})
	}
	return out
}
