package object

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// waves are kinds in the order in which they are made: what others lie in or
// are checked by comes first, what acts on all others last.
var waves = [][]string{
	{"Namespace"},
	{"CustomResourceDefinition", "PriorityClass", "RuntimeClass", "StorageClass", "CSIDriver"},
	{"ServiceAccount", "ClusterRole", "Role", "ResourceQuota", "LimitRange", "NetworkPolicy", "PodDisruptionBudget", "PersistentVolume"},
	{"ClusterRoleBinding", "RoleBinding", "Secret", "ConfigMap", "PersistentVolumeClaim", "Service"},
	nil, // everything else
	{"HorizontalPodAutoscaler", "Ingress", "APIService"},
	{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"},
}

// Wave is the number of the wave that a kind belongs to, from 0.
func Wave(kind string) int {
	rest := 0
	for i, kinds := range waves {
		if kinds == nil {
			rest = i
		}
		if slices.Contains(kinds, kind) {
			return i
		}
	}
	return rest
}

// Waves parts objects into those that may be made at the same time, the first
// ones first. The order within one is kept.
func Waves(objects []*unstructured.Unstructured) [][]*unstructured.Unstructured {
	parted := make([][]*unstructured.Unstructured, len(waves))
	for _, o := range objects {
		w := Wave(o.GetKind())
		parted[w] = append(parted[w], o)
	}
	return slices.DeleteFunc(parted, func(w []*unstructured.Unstructured) bool { return len(w) == 0 })
}

// HoldsData reports kinds whose removal takes data along that nothing brings
// back.
func HoldsData(kind string) bool {
	return slices.Contains([]string{"PersistentVolumeClaim", "PersistentVolume", "CustomResourceDefinition", "Namespace"}, kind)
}
