package live

import (
	"errors"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// fixed returns the fields that cannot be changed once an object is there, by the names
// that API servers give them in the causes of a refusal: for the kinds that are recreated
// then. A name that ends with [] is for every item. An error within such a field has a
// longer name. Other kinds are not recreated: only its operator knows which objects depend
// on a custom resource, and a StatefulSet has claims.
var fixed = sync.OnceValue(func() map[schema.GroupKind][]string {
	return map[schema.GroupKind][]string{
		{Group: "apps", Kind: "Deployment"}: {"spec.selector"},
		{Group: "apps", Kind: "DaemonSet"}:  {"spec.selector"},
		{Group: "apps", Kind: "ReplicaSet"}: {"spec.selector"},
		{Group: "batch", Kind: "Job"}: {
			"spec.template", "spec.selector", "spec.completions", "spec.completionMode", "spec.podFailurePolicy",
			"spec.backoffLimitPerIndex", "spec.managedBy", "spec.successPolicy",
		},
		{Kind: "Pod"}:       {"spec", "spec.containers", "spec.initContainers", "spec.tolerations"},
		{Kind: "Service"}:   {"spec.clusterIP", "spec.clusterIPs[]", "spec.ipFamilies[]", "spec.loadBalancerClass"},
		{Kind: "ConfigMap"}: {"data", "binaryData", "immutable"},
		{Kind: "Secret"}:    {"data", "immutable", "type"},
		{Kind: "PersistentVolumeClaim"}: {
			"spec", "spec.resources.requests.storage", "spec.storageClassName", "spec.volumeName",
		},
		{Kind: "PersistentVolume"}: {"spec", "spec.persistentvolumesource", "spec.nodeAffinity", "spec.volumeMode"},
		{Group: "storage.k8s.io", Kind: "StorageClass"}: {
			"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode",
		},
		{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:              {"value", "preemptionPolicy"},
		{Group: "node.k8s.io", Kind: "RuntimeClass"}:                     {"handler"},
		{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        {"roleRef"},
		{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: {"roleRef"},
		{Group: "networking.k8s.io", Kind: "IngressClass"}:               {"spec.controller"},
		{Kind: "ResourceQuota"}:                                          {"spec.scopes"},
		{Group: "discovery.k8s.io", Kind: "EndpointSlice"}:               {"addressType"},
	}
})

// FixedFields are the fields that an apply was refused for because the kind's objects keep
// them from their creation on, where it was refused for nothing else; none otherwise.
// Whether the object would be taken if it were new is another question.
func FixedFields(kind schema.GroupKind, err error) (fields []string) {
	var status apierrors.APIStatus
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) || !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	for _, cause := range status.Status().Details.Causes {
		refused := cause.Type == metav1.CauseTypeFieldValueInvalid || cause.Type == metav1.CauseTypeForbidden
		if !refused || !slices.ContainsFunc(fixed()[kind], func(name string) bool { return isField(cause.Field, name) }) {
			return nil
		}
		fields = append(fields, cause.Field)
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

func isField(field, name string) bool {
	begin, items := strings.CutSuffix(name, "[]")
	return field == name || items && strings.HasPrefix(field, begin+"[") && strings.HasSuffix(field, "]")
}

// Refuses reports that an API server rejects the object itself; its existence is not
// the reason.
func Refuses(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err)
}
