package addons

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
	"github.com/stokehq/stoke/providers/metal/host"
)

var (
	daemonSets  = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "DaemonSet"}
	deployments = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}
	services    = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
	pods        = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
)

// Static are the pods that the kubelet of a control plane's node runs by itself.
func Static(node string) []object.Key {
	var all []object.Key
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		all = append(all, object.Key{GroupVersionKind: pods, Namespace: "kube-system", Name: name + "-" + node})
	}
	return all
}

// coreDNS is what resolves the cluster's names.
var coreDNS = object.Key{GroupVersionKind: deployments, Namespace: "kube-system", Name: "coredns"}

// System are the objects whose pods have to be ready before a cluster is, in the
// order in which they become so. Without a network of pods, only those that need
// none; with a manifest, what it runs as well.
func (s Spec) System(node string) []object.Key {
	all := append(Static(node), object.Key{GroupVersionKind: daemonSets, Namespace: "kube-system", Name: "kube-proxy"})
	if s.Flannel {
		all = append(all, object.Key{GroupVersionKind: daemonSets, Namespace: "kube-flannel", Name: "kube-flannel-ds"})
	}
	all = append(all, s.manifest(daemonSets)...)
	if s.Network() {
		all = append(all, coreDNS)
	}
	return append(all, s.manifest(deployments)...)
}

// manifest are the objects of a kind in the manifest.
func (s Spec) manifest(kind schema.GroupVersionKind) []object.Key {
	var all []object.Key
	objects, err := object.Parse([]byte(s.Manifest), s.From)
	if err != nil || s.Manifest == "" {
		return nil // Objects says so
	}
	for _, u := range objects {
		if k := object.KeyOf(u); k.GroupVersionKind == kind {
			all = append(all, k)
		}
	}
	return all
}

// Network tells whether a network of pods is among what is applied.
func (s Spec) Network() bool { return s.Flannel || s.Manifest != "" }

// settle is how long no node has to take a pod until it is taken to wait for another
// node: longer than the scheduler rests before it tries again.
const settle = 12 * time.Second

// Await waits until all objects are ready. Of the manifest's Deployments, pods that
// no node takes wait for nodes that join, which is after this; of DaemonSets, those on
// machines that are off are not waited for. An error says what the first of them was
// waiting for at the end.
func Await(ctx context.Context, c *live.Cluster, all []object.Key, patience time.Duration) error {
	said, unplaced := "", map[object.Key]time.Time{}
	for end := time.Now().Add(patience); ; {
		k, why, err := unready(ctx, c, all, unplaced)
		switch {
		case err != nil && time.Now().After(end):
			return err
		case err == nil && why == "":
			return nil
		case err == nil && time.Now().After(end):
			return fmt.Errorf("%s is not ready after %s: %s", k.Title(), patience, why)
		case err == nil && said != k.Title():
			said = k.Title()
			host.Step(ctx, "waiting for %s", said)
		}
		if paused := host.Pause(ctx, pause); paused != nil {
			return errors.Join(paused, err)
		}
	}
}

// unready finds the first object that is not ready, and why. It keeps since when no
// node takes what is left of each.
func unready(ctx context.Context, c *live.Cluster, all []object.Key, unplaced map[object.Key]time.Time) (object.Key, string, error) {
	for _, k := range all {
		u, err := c.Get(ctx, k)
		if err != nil {
			return k, "", fmt.Errorf("%s: %w", k.Title(), err)
		}
		if u == nil {
			return k, "it is not there", nil
		}
		why := objectState(u)
		if why == "" {
			continue
		}
		if k.GroupVersionKind == daemonSets {
			switch dead, err := waitsForDead(ctx, c, u); {
			case err != nil:
				return k, "", fmt.Errorf("pods of %s: %w", k.Title(), err)
			case dead:
				continue
			}
		}
		if k.GroupVersionKind != deployments || k == coreDNS {
			return k, why, nil
		}
		switch waits, err := waitsForNodes(ctx, c, u); {
		case err != nil:
			return k, "", fmt.Errorf("pods of %s: %w", k.Title(), err)
		case !waits:
			delete(unplaced, k)
			return k, why, nil
		}
		if unplaced[k].IsZero() {
			unplaced[k] = time.Now()
		}
		if time.Since(unplaced[k]) < settle {
			return k, why, nil
		}
	}
	return object.Key{}, "", nil
}

func objectState(u *unstructured.Unstructured) string {
	ready, _, why := live.Ready(u, live.Rules{})
	switch {
	case ready:
		return ""
	case why == "":
		return "its pods are not ready"
	}
	return why
}

// waitsForNodes reports whether a Deployment has all pods of its present template,
// and those that are not ready cannot be scheduled.
func waitsForNodes(ctx context.Context, c *live.Cluster, u *unstructured.Unstructured) (bool, error) {
	var d apps.Deployment
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &d); err != nil {
		return false, err
	}
	if s := d.Status; d.Spec.Replicas == nil || s.ObservedGeneration < d.Generation || s.Replicas != *d.Spec.Replicas || s.UpdatedReplicas != s.Replicas {
		return false, nil
	}
	found, err := podsOf(ctx, c, d.Namespace, d.Spec.Selector)
	if err != nil {
		return false, err
	}
	for _, pod := range found {
		if condition(pod, "Ready", "status") != "True" && condition(pod, "PodScheduled", "reason") != core.PodReasonUnschedulable {
			return false, nil
		}
	}
	return len(found) >= int(d.Status.Replicas), nil
}

// waitsForDead reports whether a DaemonSet has all pods of its present template,
// and those that are not ready are on nodes whose kubelets no longer report: their
// machines are off, and their pods may never be ready.
func waitsForDead(ctx context.Context, c *live.Cluster, u *unstructured.Unstructured) (bool, error) {
	var d apps.DaemonSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &d); err != nil {
		return false, err
	}
	if d.Status.ObservedGeneration < d.Generation {
		return false, nil
	}
	nodes, err := c.Dynamic.Resource(core.SchemeGroupVersion.WithResource("nodes")).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	dead := map[string]bool{}
	for _, node := range nodes.Items {
		if condition(node, "Ready", "status") == string(core.ConditionUnknown) {
			dead[node.GetName()] = true
		}
	}
	if len(dead) == 0 {
		return false, nil
	}
	found, err := podsOf(ctx, c, d.Namespace, d.Spec.Selector)
	if err != nil {
		return false, err
	}
	alive, outdated := 0, int(d.Status.DesiredNumberScheduled-d.Status.UpdatedNumberScheduled)
	for _, pod := range found {
		switch node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName"); {
		case dead[node]:
			outdated--
		case condition(pod, "Ready", "status") != "True":
			return false, nil
		default:
			alive++
		}
	}
	return alive > 0 && len(found) >= int(d.Status.DesiredNumberScheduled) && outdated <= 0, nil
}

// podsOf are the pods of a namespace that a selector finds.
func podsOf(ctx context.Context, c *live.Cluster, namespace string, of *metav1.LabelSelector) ([]unstructured.Unstructured, error) {
	selector, err := metav1.LabelSelectorAsSelector(of)
	if err != nil {
		return nil, err
	}
	found, err := c.Dynamic.Resource(core.SchemeGroupVersion.WithResource("pods")).Namespace(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, err
	}
	return found.Items, nil
}

// condition is what a condition of an object's status says in one of its fields.
func condition(u unstructured.Unstructured, name, field string) any {
	for _, c := range object.Parts(u.Object, "status", "conditions") {
		if c["type"] == name {
			return c[field]
		}
	}
	return nil
}

// DNS is the address of the Service that resolves the cluster's names.
func DNS(ctx context.Context, c *live.Cluster) (string, error) {
	u, err := c.Get(ctx, object.Key{GroupVersionKind: services, Namespace: "kube-system", Name: "kube-dns"})
	if err != nil || u == nil {
		return "", errors.Join(errors.New("the Service kube-system/kube-dns cannot be read"), err)
	}
	address, _, _ := unstructured.NestedString(u.Object, "spec", "clusterIP")
	if net.ParseIP(address) == nil {
		return "", fmt.Errorf("the Service kube-system/kube-dns has the address %q", address)
	}
	return address, nil
}

// Dialer opens connections from a machine of the cluster.
type Dialer func(ctx context.Context, network, address string) (net.Conn, error)

// Resolve asks the cluster's DNS, over TCP and from one of its machines, for the
// API server's own name, until it answers: that takes kube-proxy, the network of
// pods and CoreDNS.
func Resolve(ctx context.Context, dial Dialer, server, domain string, patience time.Duration) error {
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dial(ctx, "tcp", net.JoinHostPort(server, "53"))
	}}
	name := "kubernetes.default.svc." + strings.TrimSuffix(domain, ".") + "."
	host.Step(ctx, "asking the cluster's DNS for %s", name)
	for end := time.Now().Add(patience); ; {
		asked, cancel := context.WithTimeout(ctx, 10*time.Second)
		_, err := resolver.LookupHost(asked, name)
		cancel()
		if err == nil {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the cluster's DNS does not answer for %s after %s: %w", name, patience, err)
		}
		if paused := host.Pause(ctx, pause); paused != nil {
			return errors.Join(paused, err)
		}
	}
}
