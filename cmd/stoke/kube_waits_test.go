package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	admission "k8s.io/api/admission/v1"
	registration "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// TestKubernetesRunsThatWait applies runs that something in the cluster keeps
// from beginning: apply says what, the state has the run, and the next apply goes
// on with that run.
func TestKubernetesRunsThatWait(t *testing.T) {
	c := kubetest.Start(t, kubetest.Options{Nodes: []kubetest.Node{kubetest.GPUNode("gpu-1", 8)}})
	late := c.AddKubelet(t, "late")
	trainer := filepath.Join(releasedTrainer(t), "stoke-trainer")
	for _, test := range []struct {
		name        string
		prepare     func(w *waiting) // the namespace
		stop        func(w *waiting) // what was launched
		mend        func(w *waiting) // so that all pods are there
		coordinator string           // its arguments
		want        string
	}{
		{
			name: "quota",
			prepare: func(w *waiting) {
				w.kubectl("create", "quota", "few", "--hard=pods=0")
				w.until("the quota counts", "get", "quota", "few", "-o", "jsonpath={.status.hard.pods}")
			},
			mend: func(w *waiting) { w.kubectl("delete", "quota", "few") },
			want: "exceeded quota: few",
		},
		{
			name:    "webhook",
			prepare: (*waiting).refusePods,
			mend: func(w *waiting) {
				w.kubectl("delete", "validatingwebhookconfiguration", "refuse-"+w.ns)
			},
			want: `admission webhook "pods.example.com" denied the request: not on a Friday`,
		},
		{
			name:        "claim",
			coordinator: `storage = "1Gi", storage_class = "none-such"`,
			want:        `storageclass.storage.k8s.io "none-such" not found`,
		},
		{
			name: "image",
			stop: func(w *waiting) {
				name := w.until("the coordinator has its node", "get", "pods", "-l", "stoke.dev/role=coordinator", "--field-selector", "spec.nodeName=late", "-o", "jsonpath={.items[*].metadata.name}")
				w.late.Wait(w.T, w.ns, name, "trainer", "ImagePullBackOff", "no such image: stoke.test/trainer:1")
			},
			coordinator: `node_selector = { "kubernetes.io/hostname" = "late" }`,
			want:        "no such image: stoke.test/trainer:1",
		},
		{
			name: "room",
			prepare: func(w *waiting) {
				w.kubectl("run", "other", "--image=x", `--overrides={"spec": {"containers": [{"name": "other", "image": "x", "resources": {"requests": {"cpu": "40"}}}]}}`)
				w.until("the other pod has its place", "get", "pod", "other", "-o", "jsonpath={.spec.nodeName}")
			},
			mend:        func(w *waiting) { w.kubectl("delete", "pod", "other", "--force") },
			coordinator: `cpu = "40"`,
			want:        "Insufficient cpu",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := &waiting{T: t, Cluster: c, late: late, ns: "wait-" + test.name}
			w.kubectl("create", "namespace", w.ns)
			if test.prepare != nil {
				test.prepare(w)
			}
			dir := t.TempDir()
			declare := func(wait bool) {
				t.Helper()
				write(t, filepath.Join(dir, "main.tf"), fmt.Appendf(nil, `
terraform {
  required_providers { train = { source = "stokehq/train" } }
}
provider "train" {
  trainer       = %q
  trainer_image = "stoke.test/trainer:1"
}
output "run" {
  value = train_experiment.digits.id
}
resource "train_dataset" "digits" {
  format = "synthetic-digits"
  train  = 200
  test   = 50
}
resource "train_experiment" "digits" {
  cluster      = { credential = { kubeconfig = { path = %q } } }
  namespace    = %q
  model        = "mlp"
  dataset      = train_dataset.digits.uri
  dataset_path = "/data"
  parameter_server { replicas = 1 }
  worker { replicas = 1 }
  coordinator {
    %s
  }
  wait = %t
  timeouts { update = "20s" }
}
`, trainer, c.Kubeconfig(), w.ns, strings.ReplaceAll(test.coordinator, ", ", "\n    "), wait))
			}
			run := clusterRun(t, dir)
			says := func(what, said string, wants ...string) {
				t.Helper()
				plain := unwrap(said)
				for _, want := range wants {
					if !strings.Contains(plain, want) {
						t.Errorf("%s does not say %q:\n%s", what, want, said)
					}
				}
			}
			declare(false)
			run(0, "init")
			run(0, "apply", "-auto-approve")
			began := run(0, "output", "-raw", "run")
			if test.stop != nil {
				test.stop(w)
			}
			c.Eventually(t, "status says why the run waits", func(context.Context) (bool, error) {
				said := run(0, "status", "train_experiment.digits")
				return strings.Contains(said, "pending") && strings.Contains(said, test.want), errors.New(said)
			})
			says("plan", run(0, "plan", "-detailed-exitcode"), "Not all of the experiment runs", test.want)
			declare(true)
			says("apply", run(1, "apply", "-auto-approve"), "The experiment is not done yet", "It has not begun after 20s", test.want)
			if now := run(0, "output", "-raw", "run"); now != began || now == "" {
				t.Errorf("the run was %q and is %q", began, now)
			}
			if runs := w.kubectl("get", "configmaps", "-l", "stoke.dev/run", "-o", "name"); strings.Count(runs, "configmap/") != 1 {
				t.Errorf("there are these runs: %s", runs)
			}
			if test.mend != nil {
				test.mend(w)
				c.Eventually(t, "the run has its pods", func(context.Context) (bool, error) {
					return strings.Count(w.kubectl("get", "pods", "-l", "stoke.dev/run", "-o", "name"), "pod/") == 3, nil
				})
			}
			run(0, "destroy", "-auto-approve")
		})
	}
}

// waiting is the namespace of one run that waits.
type waiting struct {
	*testing.T
	*kubetest.Cluster
	late *kubetest.Kubelet
	ns   string
}

func (w *waiting) kubectl(args ...string) string {
	w.Helper()
	return w.Kubectl(w.T, "", append([]string{"-n", w.ns}, args...)...)
}

// until asks kubectl until it says something.
func (w *waiting) until(what string, args ...string) (said string) {
	w.Helper()
	w.Eventually(w.T, what, func(context.Context) (bool, error) {
		said = w.kubectl(args...)
		return said != "", nil
	})
	return said
}

// refusePods has a webhook refuse all pods of the namespace.
func (w *waiting) refusePods() {
	w.Helper()
	client := w.Webhook(w.T, func(*admission.AdmissionRequest) *admission.AdmissionResponse {
		return &admission.AdmissionResponse{Result: &metav1.Status{Message: "not on a Friday"}}
	})
	_, err := w.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(w.Context(), &registration.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "refuse-" + w.ns},
		Webhooks: []registration.ValidatingWebhook{{
			Name: "pods.example.com", ClientConfig: client, SideEffects: new(registration.SideEffectClassNone), AdmissionReviewVersions: []string{"v1"},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.ns}},
			Rules: []registration.RuleWithOperations{{
				Operations: []registration.OperationType{registration.Create},
				Rule:       registration.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
			}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.Eventually(w.T, "pods are refused", func(context.Context) (bool, error) {
		said, err := w.TryKubectl(w.T, w.Kubeconfig(), "", "-n", w.ns, "run", "tried", "--image=x", "--dry-run=server")
		return err != nil, errors.New(said)
	})
}
