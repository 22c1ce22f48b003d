package kube

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

// two is a Deployment with a sidecar and a ConfigMap of two keys.
const two = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: NS, labels: {app: web, extra: "1"}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: web
        image: nginx:1
        env: [{name: A, value: "1"}, {name: B, value: "2"}]
      - name: sidecar
        image: nginx:1
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: NS}
data: {a: "1", b: "2"}
---
`

var less = strings.NewReplacer(`, extra: "1"`, "", `, {name: B, value: "2"}`, "", "\n      - name: sidecar\n        image: nginx:1", "", `, b: "2"`, "").Replace(two)

// left are the fields that are in the cluster and that less leaves out.
func (w *world) left() string {
	w.t.Helper()
	return w.field("deployment/web", ".metadata.labels.extra") + w.field("deployment/web", ".spec.template.spec.containers[*].name") + " " +
		w.field("deployment/web", ".spec.template.spec.containers[0].env[*].name") + " " + w.field("configmap/web", ".data")
}

// TestSharedFieldsGo: what leaves the manifest is removed also where a colleague has
// applied the same manifest on the server's side, and the plan says who.
func TestSharedFieldsGo(t *testing.T) {
	w := newWorld(t)
	quick := map[string]cty.Value{"wait": cty.False}
	it := w.make(thing{}, w.yaml(two, quick))
	w.cluster.Kubectl(t, strings.ReplaceAll(two, "NS", w.ns), "apply", "--server-side", "--field-manager=colleague", "-f", "-")
	it = w.empty(it, w.yaml(two, quick))
	config := w.yaml(less, quick)
	pl := w.plan(it, config)
	if notes := strings.Join(pl.notes, "\n"); pl.said().HasErrors() || !strings.Contains(notes, "ConfigMap "+w.ns+"/web: .data.b is removed, which colleague has set as well") {
		t.Errorf("%v %s", pl.said(), notes)
	}
	it = w.empty(w.make(it, config), config)
	if got := w.left(); got != `web A {"a":"1"}` {
		t.Errorf("left is %s", got)
	}
	w.destroy(it)
}

// TestImportInherits: what kubectl has applied, on either side, is removed when it
// leaves the manifest, from the first apply after an import on.
func TestImportInherits(t *testing.T) {
	for name, flags := range map[string][]string{"client": nil, "server": {"--server-side"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cluster.Kubectl(t, strings.ReplaceAll(two, "NS", w.ns), append([]string{"apply", "-f", "-"}, flags...)...)
			it := w.imported("kube_manifest", "apps/Deployment/"+w.ns+"/web,ConfigMap/"+w.ns+"/web")
			config := w.yaml(less, map[string]cty.Value{"wait": cty.False})
			pl := w.plan(it, config)
			if notes := strings.Join(pl.notes, "\n"); pl.said().HasErrors() || !strings.Contains(notes, "it loses .data.b, which the manifest leaves out") {
				t.Errorf("%v %s", pl.said(), notes)
			}
			it = w.empty(w.make(it, config), config)
			if got := w.left(); got != `web A {"a":"1"}` {
				t.Errorf("left is %s", got)
			}
			if got := w.field("deployment/web", ".spec.replicas"); got != "1" {
				t.Errorf("replicas are %q", got)
			}
			w.destroy(it)
		})
	}
}

// TestPortChangedByHand: a Service's port that was changed by hand is another item
// beside ours: it is named, and taken away.
func TestPortChangedByHand(t *testing.T) {
	for name, port := range map[string]string{"unnamed": "{port: 80}", "named": "{name: http, port: 80}"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			config := w.yaml("apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {selector: {app: web}, ports: [" + port + "]}\n---\n" + configMap1("beside", "1"))
			it := w.empty(w.make(thing{}, config), config)
			w.kubectl("patch", "service", "web", "--type=json", "-p", `[{"op":"replace","path":"/spec/ports/0/port","value":81}]`)
			now := w.refresh(it)
			pl := w.plan(now, config)
			if notes := strings.Join(pl.notes, "\n"); pl.said().HasErrors() || !strings.Contains(notes, `.spec.ports[port=81,protocol="TCP"], which kubectl-patch has added, is taken away`) {
				t.Fatalf("%v %s", pl.said(), notes)
			}
			it = w.empty(w.make(now, config), config)
			if got := w.field("service/web", ".spec.ports[*].port"); got != "80" {
				t.Errorf("the ports are %s", got)
			}
			w.destroy(it)
		})
	}
}

// TestAddedByHandIsDrift: a container and an env that people add to lists that are
// declared are drift, which the next apply takes away.
func TestAddedByHandIsDrift(t *testing.T) {
	w := newWorld(t)
	config := w.yaml(less, map[string]cty.Value{"wait": cty.False})
	it := w.empty(w.make(thing{}, config), config)
	w.kubectl("set", "env", "deployment/web", "BY_HAND=1")
	w.kubectl("patch", "deployment", "web", "-p", `{"spec":{"template":{"spec":{"containers":[{"name":"by-hand","image":"x:1"}]}}}}`)
	now := w.refresh(it)
	pl := w.plan(now, config)
	if notes := strings.Join(pl.notes, "\n"); pl.said().HasErrors() || pl.noop() || !strings.Contains(notes, `env[name="BY_HAND"]`) || !strings.Contains(notes, `containers[name="by-hand"]`) {
		t.Fatalf("%v %s", pl.said(), notes)
	}
	it = w.empty(w.make(now, config), config)
	if got := w.left(); got != `web A {"a":"1"}` {
		t.Errorf("left is %s", got)
	}
	w.destroy(it)
}

// TestTemplateChangedByHand: a field that people add to the pod template of a
// declared object is drift; the defaults of the API next to it are not.
func TestTemplateChangedByHand(t *testing.T) {
	w := newWorld(t)
	config := w.yaml(less, map[string]cty.Value{"wait": cty.False})
	it := w.empty(w.make(thing{}, config), config)
	for _, tt := range []struct{ name, patch, want string }{
		{"scalar", `{"hostNetwork":true,"terminationGracePeriodSeconds":5}`, ".spec.template.spec.hostNetwork, .spec.template.spec.terminationGracePeriodSeconds"},
		{"structure", `{"securityContext":{"runAsUser":7}}`, ".spec.template.spec.securityContext.runAsUser"},
		{"container", `{"containers":[{"name":"web","livenessProbe":{"tcpSocket":{"port":80}}}]}`, `containers[name="web"].livenessProbe`},
		{"account", `{"serviceAccountName":"other"}`, ".spec.template.spec.serviceAccountName"},
		{"lists", `{"volumes":[{"name":"v","emptyDir":{}}],"containers":[{"name":"web","volumeMounts":[{"name":"v","mountPath":"/v"}],"ports":[{"containerPort":80}]}]}`, ".spec.template.spec.volumes"},
		{"atomic list", `{"tolerations":[{"operator":"Exists"}]}`, ".spec.template.spec.tolerations"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := *w
			w.t = t
			before := w.field("deployment/web", ".spec.template.spec")
			w.kubectl("patch", "deployment", "web", "-p", `{"spec":{"template":{"spec":`+tt.patch+`}}}`)
			now := w.refresh(it)
			pl := w.plan(now, config)
			if notes := strings.Join(pl.notes, "\n"); pl.said().HasErrors() || pl.noop() || !strings.Contains(notes, tt.want) {
				t.Fatalf("%v %s", pl.said(), notes)
			}
			it = w.empty(w.make(now, config), config)
			if got := w.field("deployment/web", ".spec.template.spec"); got != before {
				t.Errorf("the template is %s, want %s", got, before)
			}
		})
	}
	t.Run("handler", func(t *testing.T) { // a probe has one, and ours may not be added to the other
		w := *w
		w.t = t
		config := w.yaml(strings.Replace(less, "        env:", "        readinessProbe: {httpGet: {path: /, port: 80}}\n        env:", 1), map[string]cty.Value{"wait": cty.False})
		it = w.empty(w.make(w.refresh(it), config), config)
		before := w.field("deployment/web", ".spec.template.spec")
		w.kubectl("patch", "deployment", "web", "--type=json", "-p", `[{"op":"replace","path":"/spec/template/spec/containers/0/readinessProbe","value":{"exec":{"command":["x"]}}}]`)
		now := w.refresh(it)
		pl := w.plan(now, config)
		if notes := strings.Join(pl.notes, "\n"); pl.said().HasErrors() || pl.noop() || !strings.Contains(notes, `containers[name="web"].readinessProbe.exec, which kubectl-patch has added, is taken away`) {
			t.Fatalf("%v %s", pl.said(), notes)
		}
		it = w.empty(w.make(now, config), config)
		if got := w.field("deployment/web", ".spec.template.spec"); got != before {
			t.Errorf("the template is %s, want %s", got, before)
		}
	})
	it = w.make(w.refresh(it), config)
	w.kubectl("patch", "deployment", "web", "-p", `{"spec":{"template":{"spec":{"hostNetwork":true,"dnsPolicy":"Default"}}}}`)
	w.kubectl("patch", "deployment", "web", "-p", `{"spec":{"template":{"spec":{"hostNetwork":null,"dnsPolicy":"ClusterFirst"}}}}`)
	if pl := w.plan(w.refresh(it), config); !pl.noop() {
		t.Errorf("a default that people have set again is a change: %s", strings.Join(pl.notes, "\n"))
	}
	w.destroy(it)
}
