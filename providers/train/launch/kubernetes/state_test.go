package kubernetes

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers/connect/kubetest"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// told waits until the run's status says something.
func (w *world) told(l *Launcher, id, what string) launch.State {
	w.t.Helper()
	var state launch.State
	w.Eventually(w.t, "the status says "+what, func(ctx context.Context) (bool, error) {
		var err error
		if state, err = l.Status(ctx, id); err != nil {
			return false, err
		}
		return strings.Contains(state.Message, what), errors.New(string(state.Phase) + ": " + state.Message)
	})
	return state
}

// pretend gives a run's only pod of a role the status of a container, as its
// node would.
func (w *world) pretend(id, role string, status core.ContainerState) {
	w.t.Helper()
	w.Eventually(w.t, "the pod of "+role+" has a container", func(ctx context.Context) (bool, error) {
		found, err := w.Client.CoreV1().Pods(w.ns).List(ctx, metav1.ListOptions{LabelSelector: runLabel + "=" + id + "," + roleLabel + "=" + role})
		if err != nil || len(found.Items) != 1 {
			return false, err
		}
		pod := &found.Items[0]
		pod.Status.Conditions = nil
		pod.Status.ContainerStatuses = []core.ContainerStatus{{Name: "trainer", State: status}}
		if status.Terminated != nil {
			pod.Status.Phase = core.PodFailed
		}
		_, err = w.Client.CoreV1().Pods(w.ns).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		return err == nil, err
	})
}

// TestStatusOfPods tells how a run stands by its pods: why they wait, and how
// the coordinator's ended.
func TestStatusOfPods(t *testing.T) {
	w := newWorld(t, "restricted")
	l := w.launcher(small())
	id, err := l.Start(t.Context(), "op-1", someRun(1, 1), launch.Code{})
	if err != nil {
		t.Fatal(err)
	}
	state := w.told(l, id, "no nodes available")
	if state.Phase != spec.Pending || len(state.Roles) != 3 || state.Roles[0].Name != "coordinator-0" || state.Roles[0].Phase != "waiting" {
		t.Errorf("a run that has no room: %+v", state)
	}
	w.pretend(id, coordinator, core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}})
	if state := w.told(l, id, "coordinator-0: ImagePullBackOff: no such image"); state.Phase != spec.Pending {
		t.Errorf("a run that has no image is %s", state.Phase)
	}
	end := spec.Status{Run: id, Hash: someRun(1, 1).Hash(), Phase: spec.Failed, Message: "loss is not finite", Evaluated: -1, Step: 7}
	text, err := json.Marshal(end)
	if err != nil {
		t.Fatal(err)
	}
	w.pretend(id, coordinator, core.ContainerState{Terminated: &core.ContainerStateTerminated{ExitCode: int32(spec.EndOtherwise), Message: string(text)}})
	if state := w.told(l, id, "loss is not finite"); state.Phase != spec.Failed || state.Step != 7 || state.Saved != -1 {
		t.Errorf("a run that failed: %+v", state)
	}
	// It was written down: what is gone later changes nothing.
	w.Kubectl(t, "", "-n", w.ns, "delete", "jobs", "--all", "--wait=true")
	if state, err := l.Status(t.Context(), id); err != nil || state.Phase != spec.Failed {
		t.Errorf("a run that failed, without its Jobs: %+v, %v", state, err)
	}
	if err := l.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.empty()
}

// TestPodsThatAreRefused are told, although the API server took their Jobs.
func TestPodsThatAreRefused(t *testing.T) {
	w := newWorld(t, "restricted")
	l := w.launcher(privileged())
	id, err := l.Start(t.Context(), "op-1", someRun(1, 1), launch.Code{})
	if err != nil {
		t.Fatal(err)
	}
	w.told(l, id, `violates PodSecurity "restricted:latest"`)
	if err := l.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.empty()
}

// TestRefusedLaunchLeavesNothing has clusters refuse a run in all the ways they
// have.
func TestRefusedLaunchLeavesNothing(t *testing.T) {
	tests := []struct {
		name, want string
		prepare    func(w *world) (kubeconfig string)
	}{
		{"no rights", `secrets is forbidden: User "alice" cannot create`, func(w *world) string {
			rules := []rbac.PolicyRule{
				{APIGroups: []string{"", "batch", "networking.k8s.io"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "delete"}},
				{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
			}
			return w.KubeconfigFor(w.t, kubetest.Login{User: "alice", Grants: []kubetest.Grant{{Namespace: w.ns, Rules: rules},
				{Rules: []rbac.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}}}}}})
		}},
		{"quota", "exceeded quota: few", func(w *world) string {
			w.Kubectl(w.t, "", "-n", w.ns, "create", "quota", "few", "--hard=count/jobs.batch=1")
			w.Eventually(w.t, "the quota counts", func(ctx context.Context) (bool, error) {
				q, err := w.Client.CoreV1().ResourceQuotas(w.ns).Get(ctx, "few", metav1.GetOptions{})
				return err == nil && len(q.Status.Hard) > 0, err
			})
			return w.Kubeconfig()
		}},
		{"webhook", "training is closed on Mondays", func(w *world) string {
			w.webhook("training is closed on Mondays")
			return w.Kubeconfig()
		}},
		{"no namespace", "declare the namespace as a kube_namespace", func(w *world) string {
			w.ns = "there-is-none"
			return w.Kubeconfig()
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, "restricted")
			client := w.client(test.prepare(w))
			_, err := w.by(client, small()).Start(t.Context(), "op-1", someRun(1, 1), launch.Code{})
			if err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 600 {
				t.Errorf("want %q, got %v", test.want, err)
			}
			w.empty()
		})
	}
}

// webhook has the API server refuse every Job in the namespace.
func (w *world) webhook(why string) {
	w.t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		var asked struct {
			Request struct{ UID string }
		}
		text, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(text, &asked); err != nil {
			http.Error(answer, err.Error(), http.StatusBadRequest)
			return
		}
		answer.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(answer).Encode(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
			"response": map[string]any{"uid": asked.Request.UID, "allowed": false, "status": map[string]any{"message": why}}})
	}))
	w.t.Cleanup(s.Close)
	hook, err := json.Marshal(map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": w.ns},
		"webhooks": []any{map[string]any{
			"name": "closed.stoke.test", "sideEffects": "None", "admissionReviewVersions": []string{"v1"},
			"clientConfig":      map[string]any{"url": s.URL, "caBundle": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})},
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": w.ns}},
			"rules":             []any{map[string]any{"apiGroups": []string{"batch"}, "apiVersions": []string{"v1"}, "resources": []string{"jobs"}, "operations": []string{"CREATE"}}},
		}},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.Kubectl(w.t, string(hook), "create", "-f", "-")
	w.t.Cleanup(func() { w.Kubectl(w.t, "", "delete", "validatingwebhookconfiguration", w.ns) })
	w.Eventually(w.t, "the webhook is asked", func(context.Context) (bool, error) {
		out, err := w.TryKubectl(w.t, w.Kubeconfig(), "", "-n", w.ns, "create", "job", "probe", "--image=probe", "--dry-run=server")
		return err != nil && strings.Contains(out, why), errors.New(out)
	})
}
