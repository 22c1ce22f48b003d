package kube

import rbacv1 "k8s.io/api/rbac/v1"

// This file lists the rights of each task. Tests prove both directions: every
// kind works with only these rights, and uses each of them.

var (
	sees    = []string{"get", "list", "watch"}
	manages = []string{"get", "list", "watch", "create", "patch", "delete"} // server-side apply patches, and creates what is not there
)

func rule(verbs []string, group string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// taskRules are what a task may do in its namespaces, and outside of any; nil
// where there is no such task.
func taskRules(task string, clusterObjects bool) (inNamespaces, inCluster []rbacv1.PolicyRule) {
	inCluster = []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{"kube-system"}, Verbs: []string{"get"}}, // its UID tells clusters apart
		rule(sees, "", "nodes"),
		rule(sees, "storage.k8s.io", "storageclasses"),
	}
	pods := []rbacv1.PolicyRule{
		rule(sees, "", "pods", "events"),
		rule([]string{"get"}, "", "pods/log"),
	}
	switch task {
	case taskReader:
		return append(pods,
			rule(sees, "", "configmaps", "services", "serviceaccounts", "persistentvolumeclaims", "resourcequotas"),
			rule(sees, "apps", "deployments", "statefulsets", "daemonsets", "replicasets"),
			rule(sees, "batch", "jobs", "cronjobs"),
			rule(sees, "networking.k8s.io", "ingresses", "networkpolicies"),
			rule(sees, "policy", "poddisruptionbudgets"),
			rule(sees, "autoscaling", "horizontalpodautoscalers"),
		), append(inCluster, rule(sees, "scheduling.k8s.io", "priorityclasses"))
	case taskTraining:
		return append(pods,
				rule([]string{"get", "create"}, "", "pods/exec", "pods/portforward"),
				rule([]string{"delete"}, "", "pods"), // these two are for pods on nodes that do not answer
				rule([]string{"patch"}, "", "pods/status"),
				rule(manages, "", "configmaps", "secrets", "services", "persistentvolumeclaims"),
				rule(manages, "batch", "jobs"),
				rule(manages, "networking.k8s.io", "networkpolicies"),
			), append(inCluster,
				rbacv1.PolicyRule{APIGroups: []string{"scheduling.k8s.io"}, Resources: []string{"priorityclasses"},
					ResourceNames: []string{"stoke-high", "stoke-low"}, Verbs: []string{"get"}},
				rule([]string{"create"}, "scheduling.k8s.io", "priorityclasses"), // which RBAC cannot limit to names
			)
	case taskPipeline:
		inNamespaces = append(pods,
			rule([]string{"get", "create"}, "", "pods/exec", "pods/portforward"),
			rule(manages, "", "configmaps", "secrets", "services", "serviceaccounts", "persistentvolumeclaims", "resourcequotas", "limitranges"),
			rule(manages, "apps", "deployments", "statefulsets", "daemonsets"),
			rule(sees, "apps", "replicasets"), // to find the pods of a Deployment
			rule(manages, "batch", "jobs", "cronjobs"),
			rule(manages, "networking.k8s.io", "ingresses", "networkpolicies"),
			rule(manages, "policy", "poddisruptionbudgets"),
			rule(manages, "autoscaling", "horizontalpodautoscalers"),
		)
		if !clusterObjects {
			return inNamespaces, append(inCluster, rule(sees, "scheduling.k8s.io", "priorityclasses"))
		}
		return inNamespaces, []rbacv1.PolicyRule{
			rule(manages, "", "namespaces", "persistentvolumes"),
			rule([]string{"list"}, "", "persistentvolumeclaims"), // those whose volumes outlive their namespace
			rule(sees, "", "nodes"),
			rule(manages, "storage.k8s.io", "storageclasses"),
			rule(manages, "scheduling.k8s.io", "priorityclasses"),
			rule(manages, "node.k8s.io", "runtimeclasses"),
			rule(manages, "apiextensions.k8s.io", "customresourcedefinitions"),
		}
	}
	return nil, nil
}
