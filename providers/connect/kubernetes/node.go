package kubernetes

import (
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Ready tells whether a node's kubelet says that it can run pods, and has said
// so lately.
func Ready(n *core.Node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == core.NodeReady {
			return c.Status == core.ConditionTrue
		}
	}
	return false
}

// Unconfirmed are the options with which a pod is deleted without its kubelet's
// word that its containers have ended. Another pod may have its name meanwhile.
func Unconfirmed(pod types.UID) metav1.DeleteOptions {
	return metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: &metav1.Preconditions{UID: &pod}}
}
