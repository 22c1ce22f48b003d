package addons

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// System are the objects whose pods have to be ready before a cluster is. Without
// a network of pods, only those that need none.
func (s Spec) System(node string) []object.Key {
	all := append(Static(node), object.Key{GroupVersionKind: daemonSets, Namespace: "kube-system", Name: "kube-proxy"})
	if s.Flannel {
		all = append(all, object.Key{GroupVersionKind: daemonSets, Namespace: "kube-flannel", Name: "kube-flannel-ds"})
	}
	if s.Network() {
		all = append(all, object.Key{GroupVersionKind: deployments, Namespace: "kube-system", Name: "coredns"})
	}
	return all
}

// Network tells whether a network of pods is among what is applied.
func (s Spec) Network() bool { return s.Flannel || s.Manifest != "" }

// Await waits until all objects are ready. An error says what the first of them
// was waiting for at the end.
func Await(ctx context.Context, c *live.Cluster, all []object.Key, patience time.Duration) error {
	said := ""
	for end := time.Now().Add(patience); ; {
		k, why, err := unready(ctx, c, all)
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

// unready finds the first object that is not ready, and why.
func unready(ctx context.Context, c *live.Cluster, all []object.Key) (object.Key, string, error) {
	for _, k := range all {
		u, err := c.Get(ctx, k)
		if err != nil {
			return k, "", fmt.Errorf("%s: %w", k.Title(), err)
		}
		if u == nil {
			return k, "it is not there", nil
		}
		if why := stands(u); why != "" {
			return k, why, nil
		}
	}
	return object.Key{}, "", nil
}

func stands(u *unstructured.Unstructured) string {
	ready, _, why := live.Ready(u, live.Rules{})
	switch {
	case ready:
		return ""
	case why == "":
		return "its pods are not ready"
	}
	return why
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
