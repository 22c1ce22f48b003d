package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	admission "k8s.io/api/admission/v1"
	registration "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// TestKubernetesRefusedCalls has the cluster refuse each write of a launch, a rescale
// and a destroy of a run once. The next plan has the missing part, also where the
// rescale is taken back, and the next apply makes it.
func TestKubernetesRefusedCalls(t *testing.T) {
	cluster := kubetest.Start(t, kubetest.Options{})
	w := &killedRuns{T: t, Cluster: cluster, dir: t.TempDir(), trainer: filepath.Join(releasedTrainer(t), "stoke-trainer")}
	w.Kubectl(t, "", "create", "namespace", "lab")
	var passing atomic.Int64
	passing.Store(-1)
	w.refuse(&passing)
	run := clusterRun(t, w.dir)
	refused := func(n int, args ...string) bool {
		t.Helper()
		passing.Store(int64(n))
		cmd := exec.CommandContext(t.Context(), "stoke", append([]string{"-chdir=" + w.dir}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+w.dir)
		out, err := cmd.CombinedOutput()
		if met := passing.Swap(-1) < 0; met != (err != nil) {
			t.Fatalf("write %d: stoke %v was refused: %v, and ends with %v:\n%s", n, args, met, err, out)
		}
		return err != nil
	}
	settle := func(n, workers int, title string) {
		t.Helper()
		run(0, "apply", "-auto-approve")
		w.check(workers)
		run(0, "plan", "-detailed-exitcode")
		if t.Failed() {
			t.Fatalf("write %d: %s", n, title)
		}
	}
	w.declare(2)
	run(0, "init")
	launches, rescales, destroys := true, true, true // has a write n
	for n := 0; launches || rescales || destroys; n++ {
		w.declare(2)
		if launches = launches && refused(n, "apply", "-auto-approve"); launches {
			run(2, "plan", "-detailed-exitcode")
		}
		settle(n, 2, "after the launch")
		if rescales {
			w.declare(4)
			if rescales = refused(n, "apply", "-auto-approve"); rescales {
				run(2, "plan", "-detailed-exitcode")
				w.declare(2)
				settle(n, 2, "where the rescale is taken back")
				if got := w.said(); got != 2 {
					t.Fatalf("write %d: the rescale is taken back, and the run's ConfigMap says %d workers", n, got)
				}
				w.declare(4)
			}
			settle(n, 4, "after the rescale")
		}
		if destroys = destroys && refused(n, "destroy", "-auto-approve"); destroys || !w.gone() {
			run(0, "destroy", "-auto-approve")
		}
		w.check(0)
		t.Logf("write %d: launch %v, rescale %v, destroy %v", n, launches, rescales, destroys)
	}
}

// gone reports that there is no run.
func (w *killedRuns) gone() bool { w.Helper(); return len(w.runs()) == 0 }

// said is how many workers the run's ConfigMap says.
func (w *killedRuns) said() (workers int) {
	w.Helper()
	text := w.Kubectl(w.T, "", "-n", "lab", "get", "configmaps", "-l", "stoke.dev/run", "-o", `jsonpath={.items[0].data.spec\.json}`)
	_, after, _ := strings.Cut(text, `"worker"`)
	_, after, _ = strings.Cut(after, `"replicas":`)
	if _, err := fmt.Sscan(strings.TrimRight(strings.Fields(after)[0], ","), &workers); err != nil {
		w.Fatalf("%v in %s", err, text)
	}
	return workers
}

// refuse refuses the write that comes when the number of those that pass is used up.
func (w *killedRuns) refuse(passing *atomic.Int64) {
	w.Helper()
	client := w.Webhook(w.T, func(asked *admission.AdmissionRequest) *admission.AdmissionResponse {
		mine := !strings.HasPrefix(asked.UserInfo.Username, "system:")
		if mine && passing.Load() >= 0 && passing.Add(-1) < 0 {
			return &admission.AdmissionResponse{Result: &metav1.Status{Message: "refused once"}}
		}
		return &admission.AdmissionResponse{Allowed: true}
	})
	none, fail := registration.SideEffectClassNone, registration.Fail
	rule := func(group, version string, resources ...string) registration.RuleWithOperations {
		return registration.RuleWithOperations{
			Operations: []registration.OperationType{registration.Create, registration.Update, registration.Delete},
			Rule:       registration.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: resources},
		}
	}
	hooks := w.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err := hooks.Create(w.Context(), &registration.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "refusing"},
		Webhooks: []registration.ValidatingWebhook{{
			Name: "refusing.stoke.test", AdmissionReviewVersions: []string{"v1"}, SideEffects: &none, FailurePolicy: &fail, ClientConfig: client,
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": "lab"}},
			Rules: []registration.RuleWithOperations{
				rule("", "v1", "configmaps", "secrets", "services", "persistentvolumeclaims"), rule("batch", "v1", "jobs"),
				rule("networking.k8s.io", "v1", "networkpolicies"),
			},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.Eventually(w.T, "the webhook refuses", func(context.Context) (bool, error) {
		passing.Store(0)
		out, err := w.TryKubectl(w.T, w.Kubeconfig(), "", "-n", "lab", "create", "configmap", "probe", "--dry-run=server")
		return err != nil && strings.Contains(out, "refused once"), fmt.Errorf("%s", out)
	})
	passing.Store(-1)
}
