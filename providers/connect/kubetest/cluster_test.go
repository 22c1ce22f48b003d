package kubetest

import (
	"context"
	"strings"
	"testing"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestDeploymentRuns(t *testing.T) {
	c := shared.Cluster(t)
	ns := c.Namespace(t)
	c.Kubectl(t, `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers: [{name: prepare, image: prepare}]
      containers: [{name: web, image: web, resources: {requests: {cpu: 100m}}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
`, "apply", "-n", ns, "-f", "-")
	c.Eventually(t, "the deployment is available", func(ctx context.Context) (bool, error) {
		d, err := c.Client.AppsV1().Deployments(ns).Get(ctx, "web", metav1.GetOptions{})
		return err == nil && d.Status.AvailableReplicas == 3, err
	})
	c.Eventually(t, "the service has three endpoints", func(ctx context.Context) (bool, error) {
		slices, err := c.Client.DiscoveryV1().EndpointSlices(ns).List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=web"})
		found := 0
		if err == nil {
			for _, slice := range slices.Items {
				found += len(slice.Endpoints)
			}
		}
		return found == 3, err
	})
	if out := c.Kubectl(t, "", "delete", "deployment", "web", "-n", ns, "--cascade=foreground"); !strings.Contains(out, "deleted") {
		t.Errorf("kubectl says %q", out)
	}
	c.Eventually(t, "the pods are gone", func(ctx context.Context) (bool, error) {
		pods, err := c.Client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0, err
	})
}

// job is a Job of one pod, which has annotations and asks for GPUs.
func job(name string, gpus string, annotations map[string]string) *batch.Job {
	none := int32(0)
	return &batch.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batch.JobSpec{
		BackoffLimit: &none,
		Template: core.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Spec: core.PodSpec{
			RestartPolicy: core.RestartPolicyNever,
			Containers: []core.Container{{Name: "work", Image: "work", Resources: core.ResourceRequirements{
				Limits: core.ResourceList{"nvidia.com/gpu": quantity(gpus)},
			}}},
		}},
	}}
}

func TestJobs(t *testing.T) {
	c := shared.Cluster(t)
	ns := c.Namespace(t)
	tests := []struct {
		name, gpus  string
		annotations map[string]string
		reached     func(*batch.Job, *core.Pod) bool
	}{
		{"completes", "1", nil, func(j *batch.Job, _ *core.Pod) bool { return j.Status.Succeeded == 1 && j.Status.CompletionTime != nil }},
		{"fails", "1", map[string]string{"kubetest/exit-code": "3"}, func(j *batch.Job, p *core.Pod) bool {
			return j.Status.Failed == 1 && p.Status.ContainerStatuses[0].State.Terminated.ExitCode == 3
		}},
		{"runs", "1", map[string]string{"kubetest/run-for": "1h"}, func(j *batch.Job, p *core.Pod) bool {
			return p.Status.Phase == core.PodRunning && p.Spec.NodeName == "gpu" && p.Status.PodIP != ""
		}},
		{"waits", "0", map[string]string{"kubetest/waiting": "ImagePullBackOff"}, func(_ *batch.Job, p *core.Pod) bool {
			return len(p.Status.ContainerStatuses) == 1 && p.Status.ContainerStatuses[0].State.Waiting.Reason == "ImagePullBackOff"
		}},
		{"fits nowhere", "3", nil, func(_ *batch.Job, p *core.Pod) bool {
			for _, condition := range p.Status.Conditions {
				if condition.Type == core.PodScheduled && condition.Reason == core.PodReasonUnschedulable {
					return strings.Contains(condition.Message, "Insufficient nvidia.com/gpu")
				}
			}
			return false
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			name := strings.ReplaceAll(test.name, " ", "-")
			if _, err := c.Client.BatchV1().Jobs(ns).Create(t.Context(), job(name, test.gpus, test.annotations), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			c.Eventually(t, "the job "+test.name, func(ctx context.Context) (bool, error) {
				j, err := c.Client.BatchV1().Jobs(ns).Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					return false, err
				}
				pods, err := c.Client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{LabelSelector: "job-name=" + name})
				if err != nil || len(pods.Items) == 0 {
					return false, err
				}
				return test.reached(j, &pods.Items[0]), nil
			})
		})
	}
}

func TestClaimBinds(t *testing.T) {
	c := shared.Cluster(t)
	ns := c.Namespace(t)
	c.Kubectl(t, `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: kubetest-`+ns+`, resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: kubetest-`+ns+`}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  hostPath: {path: /nowhere}
`, "apply", "-n", ns, "-f", "-")
	t.Cleanup(func() { c.Kubectl(t, "", "delete", "pv", "kubetest-"+ns, "--wait=false") })
	c.Eventually(t, "the claim is bound", func(ctx context.Context) (bool, error) {
		claim, err := c.Client.CoreV1().PersistentVolumeClaims(ns).Get(ctx, "data", metav1.GetOptions{})
		return err == nil && claim.Status.Phase == core.ClaimBound, err
	})
}

// TestAdmission shows that what real clusters refuse is refused.
func TestAdmission(t *testing.T) {
	c := shared.Cluster(t)
	ns := c.Namespace(t)
	c.Kubectl(t, "", "label", "namespace", ns, "pod-security.kubernetes.io/enforce=restricted")
	out, err := c.TryKubectl(t, c.Kubeconfig(), "", "run", "-n", ns, "root", "--image=root", "--privileged")
	if err == nil || !strings.Contains(out, `violates PodSecurity "restricted:latest"`) {
		t.Errorf("a privileged pod: %v: %s", err, out)
	}
	c.Kubectl(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: kubetest}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]}
  validations: [{expression: "object.metadata.name != 'forbidden-by-policy'", message: not that name}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: kubetest}
spec: {policyName: kubetest, validationActions: [Deny]}
`, "apply", "-f", "-")
	t.Cleanup(func() {
		c.Kubectl(t, "", "delete", "validatingadmissionpolicy,validatingadmissionpolicybinding", "kubetest")
	})
	c.Eventually(t, "the policy is enforced", func(context.Context) (bool, error) {
		out, err := c.TryKubectl(t, c.Kubeconfig(), "", "create", "-n", ns, "configmap", "forbidden-by-policy", "--dry-run=server")
		return err != nil && strings.Contains(out, "not that name"), nil
	})
}
