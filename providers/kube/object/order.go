package object

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// waves are kinds in the order of their creation: first the kinds that others depend on
// or that check others, last the kinds that act on all others. They are deleted the other
// way round: a custom resource while its operator runs, which takes its finalizers
// away, and both before its CRD.
var waves = [][]schema.GroupKind{
	{{Kind: "Namespace"}},
	{
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}, {Group: "scheduling.k8s.io", Kind: "PriorityClass"},
		{Group: "node.k8s.io", Kind: "RuntimeClass"}, {Group: "storage.k8s.io", Kind: "StorageClass"},
		{Group: "storage.k8s.io", Kind: "CSIDriver"},
	},
	{
		{Kind: "ServiceAccount"}, {Group: rbac, Kind: "ClusterRole"}, {Group: rbac, Kind: "Role"}, {Kind: "ResourceQuota"},
		{Kind: "LimitRange"}, {Group: "networking.k8s.io", Kind: "NetworkPolicy"}, {Group: "policy", Kind: "PodDisruptionBudget"},
		{Kind: "PersistentVolume"},
	},
	{
		{Group: rbac, Kind: "ClusterRoleBinding"}, {Group: rbac, Kind: "RoleBinding"}, {Kind: "Secret"}, {Kind: "ConfigMap"},
		{Kind: "PersistentVolumeClaim"}, {Kind: "Service"},
	},
	nil, // all else of Kubernetes itself: what runs
	nil, // custom resources
	{
		{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, {Group: "networking.k8s.io", Kind: "Ingress"},
		{Group: "apiregistration.k8s.io", Kind: "APIService"},
	},
	{
		{Group: admission, Kind: "ValidatingAdmissionPolicy"}, {Group: admission, Kind: "ValidatingAdmissionPolicyBinding"},
		{Group: admission, Kind: "MutatingAdmissionPolicy"}, {Group: admission, Kind: "MutatingAdmissionPolicyBinding"},
		{Group: admission, Kind: "MutatingWebhookConfiguration"}, {Group: admission, Kind: "ValidatingWebhookConfiguration"},
	},
}

const (
	rbac      = "rbac.authorization.k8s.io"
	admission = "admissionregistration.k8s.io"
	running   = 4 // the wave of what runs; that of custom resources follows
)

// groups are the API groups of Kubernetes itself.
var groups = []string{
	"", "apps", "batch", "autoscaling", "policy", "extensions", admission, rbac, "apiextensions.k8s.io", "apiregistration.k8s.io",
	"authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io", "coordination.k8s.io", "discovery.k8s.io", "events.k8s.io",
	"flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "resource.k8s.io", "scheduling.k8s.io",
	"storage.k8s.io", "storagemigration.k8s.io",
}

// Wave is the number of the wave that a kind belongs to, from 0.
func Wave(kind schema.GroupKind) int {
	if i := slices.IndexFunc(waves, func(kinds []schema.GroupKind) bool { return slices.Contains(kinds, kind) }); i >= 0 {
		return i
	}
	if slices.Contains(groups, kind.Group) {
		return running
	}
	return running + 1
}

// Waves parts objects into those that may be made at the same time, the first
// ones first. The order within one is kept.
func Waves(objects []*unstructured.Unstructured) [][]*unstructured.Unstructured {
	parted := make([][]*unstructured.Unstructured, len(waves))
	for _, o := range objects {
		w := Wave(o.GroupVersionKind().GroupKind())
		parted[w] = append(parted[w], o)
	}
	return slices.DeleteFunc(parted, func(w []*unstructured.Unstructured) bool { return len(w) == 0 })
}

// HoldsData reports kinds whose removal takes data along that nothing brings
// back.
func HoldsData(kind schema.GroupKind) bool {
	return slices.Contains([]schema.GroupKind{
		{Kind: "PersistentVolumeClaim"}, {Kind: "PersistentVolume"}, {Kind: "Namespace"},
		{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
	}, kind)
}
