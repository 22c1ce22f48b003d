package kubetest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// kubeletClient is the user that the API server is to kubelets.
const kubeletClient = "kube-apiserver-kubelet-client"

// renewal is how often a kubelet says that it lives; the controllers give up one
// that has not for 50 s.
const renewal = 5 * time.Second

// Kubelet is a node whose API server may ask for logs, commands and ports, by the
// kubelet's own protocols. Pods that the scheduler gives to it run at once; what
// becomes of them then is up to the test.
type Kubelet struct {
	// Node is the node's name.
	Node string

	c      *Cluster
	server *http.Server
	owned  sync.WaitGroup

	mu      sync.Mutex
	pods    map[types.UID]*kubeletPod
	changed chan struct{}     // closed when something of a pod is another way
	open    map[net.Conn]bool // connections of the API server
}

// AddKubelet adds a node with a kubelet; it is ready when this returns, and goes
// with the test.
func (c *Cluster) AddKubelet(t testing.TB, name string) *Kubelet {
	t.Helper()
	k := &Kubelet{Node: name, c: c, pods: make(map[types.UID]*kubeletPod), changed: make(chan struct{}), open: make(map[net.Conn]bool)}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(func() {
		cancel()
		k.server.Close()
		k.owned.Wait()
		end, done := context.WithTimeout(context.Background(), patience)
		defer done()
		if err := c.Client.CoreV1().Nodes().Delete(end, name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("remove the node %s: %v", name, err)
		}
	})
	number, err := k.listen()
	if err != nil {
		t.Fatal(err)
	}
	n, err := Node{Name: name}.object(c.Version, c.nodes.Add(1))
	if err != nil {
		t.Fatal(err)
	}
	delete(n.Labels, fakeNode) // kwok has no part in it
	n.Status.Addresses = []core.NodeAddress{{Type: core.NodeInternalIP, Address: "127.0.0.1"}}
	n.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(number)
	now := metav1.Now()
	n.Status.Conditions = []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionTrue, Reason: "KubeletReady", Message: "it is a test's", LastHeartbeatTime: now, LastTransitionTime: now}}
	if _, err := c.Client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := k.live(ctx); err != nil {
		t.Fatal(err)
	}
	k.owned.Go(func() { k.renew(ctx) })
	k.owned.Go(func() { k.watch(ctx) })
	c.Eventually(t, "the node "+name+" is ready", func(ctx context.Context) (bool, error) {
		seen, err := c.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		return err == nil && ready(seen), err
	})
	return k
}

// listen serves on a port of loopback, to the API server alone.
func (k *Kubelet) listen() (number int, err error) {
	p, err := k.c.authority.server("kubelet")
	if err != nil {
		return 0, err
	}
	own, err := tls.X509KeyPair(p.cert, p.key)
	if err != nil {
		return 0, err
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(k.c.authority.cert)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("listen as a kubelet: %w", err)
	}
	k.server = &http.Server{
		Handler: k.routes(), ReadHeaderTimeout: patience,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted, MinVersion: tls.VersionTLS12},
		ConnState: func(c net.Conn, s http.ConnState) {
			k.mu.Lock()
			defer k.mu.Unlock()
			if s == http.StateClosed || s == http.StateHijacked {
				delete(k.open, c)
			} else {
				k.open[c] = true
			}
		},
	}
	k.owned.Go(func() { _ = k.server.ServeTLS(l, "", "") }) // it ends when the server is closed
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Cut breaks all logs off that are being read now, in the middle of a connection.
func (k *Kubelet) Cut() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for c := range k.open {
		c.Close()
	}
}

// live renews the node's lease.
func (k *Kubelet) live(ctx context.Context) error {
	seconds, now := int32(40), metav1.NowMicro()
	leases := k.c.Client.CoordinationV1().Leases(core.NamespaceNodeLease)
	lease, err := leases.Get(ctx, k.Node, metav1.GetOptions{})
	if err != nil {
		lease = &coordination.Lease{ObjectMeta: metav1.ObjectMeta{Name: k.Node}, Spec: coordination.LeaseSpec{HolderIdentity: &k.Node, LeaseDurationSeconds: &seconds, RenewTime: &now}}
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
		return err
	}
	lease.Spec.RenewTime = &now
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

func (k *Kubelet) renew(ctx context.Context) {
	ticker := time.NewTicker(renewal)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = k.live(ctx) // the next time then
		case <-ctx.Done():
			return
		}
	}
}

// watch takes in the pods of the node until ctx is done.
func (k *Kubelet) watch(ctx context.Context) {
	mine := metav1.ListOptions{FieldSelector: "spec.nodeName=" + k.Node}
	for ; ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		list, err := k.c.Client.CoreV1().Pods("").List(ctx, mine)
		if err != nil {
			continue
		}
		for i := range list.Items {
			k.heard(ctx, &list.Items[i])
		}
		from := mine
		from.ResourceVersion = list.ResourceVersion
		w, err := k.c.Client.CoreV1().Pods("").Watch(ctx, from)
		if err != nil {
			continue
		}
		for e := range w.ResultChan() {
			if p, ok := e.Object.(*core.Pod); ok && e.Type != "DELETED" {
				k.heard(ctx, p)
			}
		}
		w.Stop()
	}
}

// heard starts a new pod, and ends a deleted one.
func (k *Kubelet) heard(ctx context.Context, p *core.Pod) {
	k.mu.Lock()
	known := k.pods[p.UID]
	if known == nil && p.DeletionTimestamp == nil {
		known = newKubeletPod(p)
		k.pods[p.UID] = known
		defer k.report(ctx, known)
	}
	gone := known != nil && p.DeletionTimestamp != nil
	if gone {
		delete(k.pods, p.UID)
		known.endAll()
	}
	k.tell()
	k.mu.Unlock()
	if p.DeletionTimestamp != nil {
		now := int64(0)
		_ = k.c.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
	}
}

// tell wakes who waits for a change; k.mu is held.
func (k *Kubelet) tell() {
	close(k.changed)
	k.changed = make(chan struct{})
}
