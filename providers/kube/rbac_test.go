package kube

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zclconf/go-cty/cty"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gvk "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/connect/kubetest"
	"github.com/stokehq/stoke/providers/kube/pods"
)

func texted(all ...string) cty.Value {
	var v []cty.Value
	for _, s := range all {
		v = append(v, cty.StringVal(s))
	}
	return cty.ListVal(v)
}

func (w *world) rbac(name, task string, more map[string]cty.Value) cty.Value {
	v := map[string]cty.Value{"name": cty.StringVal(name), "task": cty.StringVal(task), "namespaces": texted(w.ns)}
	maps.Copy(v, more)
	return w.conf("kube_rbac", v)
}

// can asks whether somebody may do something with a resource, such as
// "deployments.apps" or "pods/exec", in a namespace; "" is the whole cluster.
func (w *world) can(user, verb, resource, ns string) bool {
	w.t.Helper()
	of := authorization.ResourceAttributes{Verb: verb, Namespace: ns}
	of.Resource, of.Group, _ = strings.Cut(resource, ".")
	of.Resource, of.Subresource, _ = strings.Cut(of.Resource, "/")
	review, err := w.cluster.Client.AuthorizationV1().SubjectAccessReviews().Create(w.t.Context(),
		&authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{User: user, ResourceAttributes: &of}}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return review.Status.Allowed
}

func TestRBACLife(t *testing.T) {
	w := newWorld(t)
	name := "life-" + w.ns
	made := map[string]cty.Value{"service_account_namespace": cty.StringVal(w.ns), "groups": texted("lab")}
	config := w.rbac(name, "reader", made)
	it := w.empty(w.make(thing{kind: "kube_rbac"}, config), config)
	account := "system:serviceaccount:" + w.ns + ":" + name
	if !w.can(account, "get", "pods", w.ns) || w.can(account, "get", "secrets", w.ns) || w.can(account, "create", "jobs.batch", w.ns) {
		t.Error("a reader may not read, or more")
	}
	// Another task: the roles change, and nothing is made anew.
	uid := w.kubectl("get", "role", name, "-o", "jsonpath={.metadata.uid}")
	config = w.rbac(name, "training", made)
	it = w.empty(w.make(it, config), config)
	if now := w.kubectl("get", "role", name, "-o", "jsonpath={.metadata.uid}"); now != uid {
		t.Error("the role was made anew")
	}
	if !w.can(account, "create", "jobs.batch", w.ns) || !w.can(account, "create", "pods/exec", w.ns) || w.can(account, "create", "deployments.apps", w.ns) {
		t.Error("a training may not start a Job, or may do more")
	}
	// Drift: somebody widens the role.
	w.kubectl("patch", "role", name, "--type=json", "-p", `[{"op":"replace","path":"/rules","value":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}]`)
	now := w.refresh(it)
	if pl := w.plan(now, config); pl.noop() {
		t.Error("a widened role is no drift")
	}
	it = w.empty(w.make(now, config), config)
	if w.can(account, "create", "deployments.apps", w.ns) {
		t.Error("the role is still wide")
	}
	// One namespace less, and other rules.
	other := w.cluster.Namespace(t)
	config = w.rbac(name, "training", map[string]cty.Value{"namespaces": texted(other), "users": texted("eve"), "rules": cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{
		"api_groups": texted("kubeflow.org"), "resources": texted("trainjobs"), "verbs": texted("get"),
	})})})
	it = w.empty(w.make(it, config), config)
	if out := w.kubectl("get", "role,rolebinding,serviceaccount", name, "--ignore-not-found"); out != "" {
		t.Errorf("left in the namespace:\n%s", out)
	}
	w.destroy(it)
	if out := w.kubectl("get", "clusterrole,clusterrolebinding", name, "--ignore-not-found"); out != "" {
		t.Errorf("left:\n%s", out)
	}
}

func TestRBACMistakes(t *testing.T) {
	w := newWorld(t)
	some := map[string]cty.Value{"users": texted("eve")}
	for _, c := range []struct {
		config          cty.Value
		summary, detail string
	}{
		{w.rbac("x", "admin", some), "Unknown task", "pipeline"},
		{w.rbac("x", "reader", nil), "No subjects given", "service_account_namespace"},
		{w.rbac("x", "reader", map[string]cty.Value{"users": texted("eve"), "cluster_objects": cty.True}), "Cluster-wide objects without a pipeline", "pipeline"},
		{w.rbac("x", "reader", map[string]cty.Value{"users": texted("eve"), "namespaces": texted("a", "a")}), "Namespace given twice", ""},
		{w.rbac("x", "reader", map[string]cty.Value{"users": texted("eve"), "namespaces": cty.ListValEmpty(cty.String)}), "No namespace", ""},
		{w.rbac("x", "reader", map[string]cty.Value{"service_accounts": texted("ci")}), "Invalid service account", "NAMESPACE/NAME"},
		{w.rbac("x", "reader", map[string]cty.Value{"users": texted("eve"), "rules": cty.ListVal([]cty.Value{cty.ObjectVal(map[string]cty.Value{
			"api_groups": texted(""), "resources": cty.ListValEmpty(cty.String), "verbs": texted("get"),
		})})}), "Empty list", ""},
	} {
		says(t, w.plan(thing{kind: "kube_rbac"}, c.config).Diagnostics, c.summary, c.detail)
	}
}

// all has one object of each kind that a pipeline applies.
const all = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.NS.example.com}
spec:
  group: NS.example.com
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
{apiVersion: v1, kind: Namespace, metadata: {name: NS-more}}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: NS}, provisioner: example.com/none, volumeBindingMode: WaitForFirstConsumer}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: NS}, value: 10}
---
{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: NS}, handler: runc}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: NS}, spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: /tmp}, storageClassName: none}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {accessModes: [ReadWriteOnce], storageClassName: NS, resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: ResourceQuota, metadata: {name: a}, spec: {hard: {pods: "100"}}}
---
{apiVersion: v1, kind: LimitRange, metadata: {name: a}, spec: {limits: [{type: Container, default: {cpu: "1"}}]}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}}
---
{apiVersion: v1, kind: Secret, metadata: {name: a}, type: Opaque}
---
{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {selector: {app: a}, ports: [{port: 80}]}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}}}
---
{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {serviceName: a, selector: {matchLabels: {app: b}}, template: {metadata: {labels: {app: b}}, spec: {containers: [{name: a, image: a}]}}}}
---
{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}, spec: {selector: {matchLabels: {app: c}}, template: {metadata: {labels: {app: c}}, spec: {containers: [{name: a, image: a}]}}}}
---
{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}
---
{apiVersion: batch/v1, kind: CronJob, metadata: {name: a}, spec: {schedule: "0 0 1 1 *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}}
---
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}, spec: {podSelector: {}}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}, spec: {minAvailable: 0, selector: {matchLabels: {app: a}}}}
---
{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: {maxReplicas: 1, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}}}
`

// TestRBACIsLeast: one object of every kind lives its whole life with what
// kube_rbac grants, and all that is granted for objects is used by it.
func TestRBACIsLeast(t *testing.T) {
	w := newWorld(t)
	user := "pipeline-" + w.ns
	w.make(thing{kind: "kube_rbac"}, w.rbac(user, "pipeline", map[string]cty.Value{"users": texted(user), "cluster_objects": cty.True}))
	inNamespaces, inCluster := taskRules(taskPipeline, true)
	w.cluster.Eventually(t, "the API server knows what the pipeline may do", func(context.Context) (bool, error) {
		return w.can(user, "patch", "horizontalpodautoscalers.autoscaling", w.ns) && w.can(user, "patch", "customresourcedefinitions.apiextensions.k8s.io", ""), nil
	})
	w.config = w.cluster.KubeconfigFor(t, kubetest.Login{User: user})

	prune := map[string]cty.Value{"prune_data": cty.True}
	config := w.yaml(all, prune)
	it := w.empty(w.make(thing{}, config), config)
	labeled := w.yaml(strings.ReplaceAll(all, "metadata: {name:", "metadata: {labels: {changed: \"1\"}, name:"), prune)
	it = w.empty(w.make(it, labeled), labeled)
	w.destroy(it)

	used := map[string]bool{}
	for _, a := range w.cluster.Audit(t, user) {
		resource := resourceIn(a.URI)
		used[a.Verb+" "+resource] = true
		if a.Code == http.StatusCreated { // an apply of what was not there needs both rights
			used["create "+resource] = true
		}
		if a.Code == http.StatusForbidden && a.Verb != "list" {
			t.Errorf("%s is refused", a)
		}
	}
	for _, rule := range append(inNamespaces, inCluster...) {
		for _, r := range rule.Resources {
			name := r
			if rule.APIGroups[0] != "" {
				name += "." + rule.APIGroups[0]
			}
			for _, verb := range rule.Verbs {
				if slices.Equal(rule.Verbs, manages) && !used[verb+" "+name] {
					t.Errorf("%s of %s is granted and not needed", verb, name)
				}
			}
		}
	}
	for _, c := range []struct{ verb, resource, ns string }{
		{"get", "secrets", "kube-system"}, {"list", "secrets", ""}, {"list", "configmaps", ""}, {"create", "pods", w.ns},
		{"create", "clusterrolebindings.rbac.authorization.k8s.io", ""}, {"create", "rolebindings.rbac.authorization.k8s.io", w.ns},
		{"escalate", "roles.rbac.authorization.k8s.io", w.ns}, {"bind", "clusterroles.rbac.authorization.k8s.io", ""}, {"impersonate", "users", ""},
		{"create", "serviceaccounts/token", w.ns}, {"patch", "nodes", ""}, {"create", "validatingwebhookconfigurations.admissionregistration.k8s.io", ""},
	} {
		if w.can(user, c.verb, c.resource, c.ns) {
			t.Errorf("a pipeline can %s %s in %q", c.verb, c.resource, c.ns)
		}
	}
	for _, verb := range []string{"*", "escalate", "bind", "impersonate"} {
		for _, rule := range append(inNamespaces, inCluster...) {
			if slices.Contains(rule.Verbs, verb) || slices.Contains(rule.Resources, "*") || slices.Contains(rule.APIGroups, "*") {
				t.Errorf("%v is more than anybody needs", rule)
			}
		}
	}
}

// resourceIn is the resource that a request's path is about, with its group:
// "deployments.apps".
func resourceIn(uri string) string {
	path, _, _ := strings.Cut(strings.TrimPrefix(uri, "/"), "?")
	parts, group := strings.Split(path, "/"), ""
	switch {
	case parts[0] == "api" && len(parts) > 2:
		parts = parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		group, parts = "."+parts[1], parts[3:]
	default:
		return ""
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	return parts[0] + group
}

// TestRBACLooksInside: the commands that look into the pods of a Deployment are
// allowed to the tasks that say so, and a training makes the priority classes of
// runs and changes none.
func TestRBACLooksInside(t *testing.T) {
	w := newWorld(t)
	w.make(thing{}, w.yaml(web))
	for task, inside := range map[string]bool{"reader": false, "pipeline": true} {
		user := task + "-" + w.ns
		w.make(thing{kind: "kube_rbac", name: task}, w.rbac(user, task, map[string]cty.Value{"users": texted(user)}))
		w.cluster.Eventually(t, "the API server knows what a "+task+" may do", func(context.Context) (bool, error) { return w.can(user, "list", "deployments.apps", w.ns), nil })
		var pool kubernetes.Pool
		t.Cleanup(pool.Close)
		client, err := pool.Get(t.Context(), connect.Connection{Credential: connect.Credential{Kubeconfig: &connect.Kubeconfig{Path: w.cluster.KubeconfigFor(t, kubetest.Login{User: user})}}})
		if err != nil {
			t.Fatal(err)
		}
		s := pods.New(client, []pods.Object{{GroupKind: gvk.GroupKind{Group: "apps", Kind: "Deployment"}, Namespace: w.ns, Name: "web"}})
		is, err := s.Status(t.Context())
		if err != nil || len(is.Roles) != 2 {
			t.Errorf("%s: status %+v, %v", task, is, err)
		}
		// The node runs nothing, so that these may fail, but not for want of a right.
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		errs := []error{s.Logs(ctx, providers.RunLogs{}, func(providers.RunLine) error { return nil })}
		if inside {
			_, err := s.Exec(ctx, "", []string{"true"}, providers.RunStreams{Out: io.Discard, Err: io.Discard})
			short, cancel := context.WithTimeout(ctx, 2*time.Second)
			errs = append(errs, err, s.Forward(short, "", []providers.RunPort{{Remote: "80"}}, providers.RunForward{}))
			cancel()
		}
		t.Logf("%s: %v", task, errs)
		for _, a := range w.cluster.Audit(t, user) {
			if a.Code == http.StatusForbidden {
				t.Errorf("%s: %s", task, a)
			}
		}
	}
	user := "training-" + w.ns
	w.make(thing{kind: "kube_rbac", name: "training"}, w.rbac(user, "training", map[string]cty.Value{"users": texted(user)}))
	w.cluster.Eventually(t, "the API server knows what a training may do", func(context.Context) (bool, error) {
		return w.can(user, "create", "priorityclasses.scheduling.k8s.io", ""), nil
	})
	for _, verb := range []string{"patch", "update", "delete", "list", "get"} {
		if w.can(user, verb, "priorityclasses.scheduling.k8s.io", "") {
			t.Errorf("a training may %s any priority class", verb)
		}
	}
}
