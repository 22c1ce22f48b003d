package member

import (
	"context"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDNSTolerates: the cluster's DNS is not kept from its only node.
func TestDNSTolerates(t *testing.T) {
	k, c := dialled(t)
	gpu := core.Taint{Key: GPU, Value: "present", Effect: core.TaintEffectNoSchedule}
	taints := []core.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: core.TaintEffectNoSchedule}, gpu}
	if err := TolerateInDNS(t.Context(), c, taints); err != nil {
		t.Errorf("without a DNS: %v", err)
	}
	labels := map[string]string{"k8s-app": "kube-dns"}
	_, err := k.Client.AppsV1().Deployments("kube-system").Create(t.Context(), &apps.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: coreDNS},
		Spec: apps.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: core.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: core.PodSpec{
				Containers: []core.Container{{Name: "coredns", Image: "stoke.test/none:1"}},
				Tolerations: []core.Toleration{
					{Key: "CriticalAddonsOnly", Operator: core.TolerationOpExists}, {Key: "node-role.kubernetes.io/control-plane", Effect: core.TaintEffectNoSchedule},
				},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		k.Client.AppsV1().Deployments("kube-system").Delete(context.Background(), coreDNS, metav1.DeleteOptions{})
	})
	if kept, err := KeptFromDNS(t.Context(), c, taints); err != nil || len(kept) != 1 || kept[0] != gpu {
		t.Errorf("kept from it: %v, %v", kept, err)
	}
	for range 2 {
		if err := TolerateInDNS(t.Context(), c, taints); err != nil {
			t.Fatal(err)
		}
		d, err := k.Client.AppsV1().Deployments("kube-system").Get(t.Context(), coreDNS, metav1.GetOptions{})
		if err != nil || len(d.Spec.Template.Spec.Tolerations) != 3 {
			t.Errorf("tolerations %+v, %v", d.Spec.Template.Spec.Tolerations, err)
		}
	}
	if kept, err := KeptFromDNS(t.Context(), c, taints); err != nil || len(kept) != 0 {
		t.Errorf("kept from it still: %v, %v", kept, err)
	}
}
