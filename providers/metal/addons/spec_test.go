package addons

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/connect/kubetest"
	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

func keys(t *testing.T, s Spec) []string {
	t.Helper()
	objects, err := s.Objects()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, u := range objects {
		all = append(all, object.KeyOf(u).String())
		if u.GetLabels()[live.Mark] != s.Owner {
			t.Errorf("%s has no mark", object.KeyOf(u))
		}
	}
	return all
}

// TestObjects: what a Spec means, and in which order.
func TestObjects(t *testing.T) {
	full := Spec{Owner: "o", Pods: []string{"10.244.0.0/16", "fd00::/56"}, Flannel: true, FlannelImage: "f:1", GPUPlugin: true, GPUPluginImage: "g:1"}
	got := keys(t, full)
	if got[0] != "Namespace/kube-flannel" || !slices.Contains(got, "apps/DaemonSet/kube-system/nvidia-device-plugin-daemonset") || !slices.Contains(got, "node.k8s.io/RuntimeClass/nvidia") || len(got) != 8 {
		t.Errorf("%q", got)
	}
	objects, _ := full.Objects()
	text := ""
	for _, u := range objects {
		b, err := u.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	for _, want := range []string{`"image":"f:1"`, `"image":"g:1"`, `--iface=$(NODE_IP)`, `IPv6Network`, FlannelPluginImage} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %s in\n%s", want, text)
		}
	}
	if got := keys(t, Spec{Owner: "o"}); got != nil {
		t.Errorf("%q of nothing", got)
	}
	if _, err := (Spec{Manifest: "a: b", From: "cni_manifest"}).Objects(); err == nil || !strings.Contains(err.Error(), "cni_manifest") {
		t.Errorf("%v", err)
	}
}

// TestSystem: what has to be ready, by what the network of pods is.
func TestSystem(t *testing.T) {
	const calico = `apiVersion: apps/v1
kind: DaemonSet
metadata: {name: calico-node, namespace: kube-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: calico-kube-controllers, namespace: kube-system}
`
	for want, s := range map[string]Spec{
		"kube-proxy":                         {},
		"kube-proxy kube-flannel-ds coredns": {Flannel: true},
		"kube-proxy calico-node coredns calico-kube-controllers": {Manifest: calico, From: "cni_manifest"},
	} {
		var got []string
		for _, k := range s.System("head") {
			if !strings.HasSuffix(k.Name, "-head") {
				got = append(got, k.Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q, want %s", got, want)
		}
		if !slices.Contains(s.System("head"), Static("head")[0]) {
			t.Error("static pods are not waited for")
		}
	}
}

// TestApply: a real API server takes what is rendered, has nothing to change
// afterwards, tells what somebody changed, and forgets what is declared no more.
func TestApply(t *testing.T) {
	cluster := kubetest.Start(t, kubetest.Options{APIOnly: true})
	pool := &kubernetes.Pool{}
	t.Cleanup(pool.Close)
	client, err := pool.Get(t.Context(), connect.Connection{Credential: connect.Credential{Kubeconfig: &connect.Kubeconfig{Path: cluster.Kubeconfig()}}})
	if err != nil {
		t.Fatal(err)
	}
	c := live.New(client)
	s := Spec{Owner: "o", Pods: []string{"10.244.0.0/16"}, Flannel: true, GPUPlugin: true}
	want, err := s.Objects()
	if err != nil {
		t.Fatal(err)
	}
	now, err := Apply(t.Context(), c, want, nil)
	if err != nil || len(now) != len(want) {
		t.Fatalf("%q, %v", now, err)
	}
	differ := func(want []*unstructured.Unstructured, n int) {
		t.Helper()
		if keys, err := Diff(t.Context(), c, want); err != nil || len(keys) != n {
			t.Errorf("%v differ, want %d: %v", keys, n, err)
		}
	}
	differ(want, 0)
	cluster.Kubectl(t, "", "--namespace", "kube-flannel", "patch", "configmap", "kube-flannel-cfg", "--type=merge", "--patch", `{"data":{"net-conf.json":"{}"}}`)
	cluster.Kubectl(t, "", "--namespace", "kube-flannel", "delete", "serviceaccount", "flannel")
	differ(want, 2)
	s.GPUPlugin = false
	less, err := s.Objects()
	if err != nil {
		t.Fatal(err)
	}
	if now, err = Apply(t.Context(), c, less, now); err != nil || len(now) != len(less) {
		t.Errorf("%q, %v", now, err)
	}
	differ(want, 2)
	differ(less, 0)
}
