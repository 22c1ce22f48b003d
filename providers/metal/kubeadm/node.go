package kubeadm

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stokehq/stoke/runtime/pattern"
)

// kubeletOwned are arguments that follow from other fields, or that kubeadm sets.
var kubeletOwned = map[string]string{
	"hostname-override":          "Name says it",
	"node-ip":                    "IP says it",
	"node-labels":                "Labels says it",
	"max-pods":                   "MaxPods says it",
	"register-with-taints":       "Taints says it",
	"container-runtime-endpoint": "CRISocket says it",
	"config":                     "kubeadm sets it",
	"kubeconfig":                 "kubeadm sets it",
	"bootstrap-kubeconfig":       "kubeadm sets it",
}

// preflightName is what kubeadm calls its checks: Swap, Port-6443,
// FileContent--proc-sys-net-ipv4-ip_forward.
var preflightName = pattern.New(`^[A-Za-z][A-Za-z0-9_.-]*$`)

// Check returns the faults of a declared node.
func (n Node) Check() []Problem {
	var p problems
	p.addAll("Name", n.Name, validation.IsDNS1123Subdomain(n.Name))
	if !validIP(n.IP) {
		p.add("IP", n.IP, "is not an address: write the machine's address in the cluster's network")
	}
	if n.CRISocket != "" && !strings.HasPrefix(n.CRISocket, "unix:///") {
		p.add("CRISocket", n.CRISocket, "is not a socket: write one such as %s", DefaultCRISocket)
	}
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		p.addAll(entry("Labels", key), n.Labels[key], append(validation.IsQualifiedName(key), validation.IsValidLabelValue(n.Labels[key])...))
		if !MayRegister(key) {
			p.add(entry("Labels", key), n.Labels[key], "cannot be set by a node itself: it is set through the API once "+
				"the node exists")
		}
	}
	for _, t := range n.Taints {
		p.addAll("Taints", t.String(), append(validation.IsQualifiedName(t.Key), validation.IsValidLabelValue(t.Value)...))
		if !slices.Contains([]string{"NoSchedule", "PreferNoSchedule", "NoExecute"}, t.Effect) {
			p.add("Taints", t.String(), "has no effect that there is: write NoSchedule, PreferNoSchedule or NoExecute")
		}
	}
	if n.MaxPods < 0 {
		p.add("MaxPods", strconv.Itoa(n.MaxPods), "is no number of pods")
	}
	p.arguments("KubeletArgs", n.KubeletArgs, kubeletOwned)
	for _, name := range n.IgnorePreflight {
		switch {
		case strings.EqualFold(name, "all"):
			p.add("IgnorePreflight", name, "would hide unexpected failures: name the checks that may fail, such as "+
				"SystemVerification")
		case !preflightName.MatchString(name):
			p.add("IgnorePreflight", name, "is not a check of kubeadm: write names such as Swap or Port-6443")
		}
	}
	if n.PullImages != "" && !slices.Contains([]string{"Always", "IfNotPresent", "Never"}, n.PullImages) {
		p.add("PullImages", n.PullImages, "is not a policy: write Always, IfNotPresent or Never")
	}
	return p
}

// MayRegister tells whether the kubelet takes a label in its arguments
// (k8s.io/kubelet/pkg/apis, IsKubeletLabel).
func MayRegister(key string) bool {
	namespace, _, found := strings.Cut(key, "/")
	within := func(domain string) bool { return namespace == domain || strings.HasSuffix(namespace, "."+domain) }
	if !found || !within("kubernetes.io") && !within("k8s.io") || within("kubelet.kubernetes.io") || within("node.kubernetes.io") {
		return true
	}
	return slices.Contains([]string{
		"kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch", "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
	}, key)
}

var caHashForm = pattern.New(`^sha256:[0-9a-f]{64}$`)

// Check returns the faults of a join.
func (j Join) Check() []Problem {
	var p problems
	p.endpoint("Endpoint", j.Endpoint)
	if !caHashForm.MatchString(j.CAHash) {
		p.add("CAHash", j.CAHash, "is not a hash of an authority, sha256: and 64 digits: without it a machine would "+
			"join any cluster that answers")
	}
	if j.Token.id == "" {
		p.add("Token", "", "is not a token: make one with NewToken and grant it")
	}
	return p
}
