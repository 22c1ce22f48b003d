package draintest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Cluster is an API server with what it stores.
type Cluster struct {
	// URL is where it listens.
	URL string
	// Lists lets nodes list all nodes, as API servers before 1.32 did.
	Lists bool
	// BeforePatch, when not nil, is called before a node is patched: what it
	// changes makes the patch a conflict.
	BeforePatch func(node string)
	// OnEvict, when not nil, hears of every eviction that was tried for real.
	OnEvict func(pod string)
	// Forbid, when not nil, says why admission refuses a request ("" lets it
	// pass), such as "PATCH nodes/a".
	Forbid func(request string) string
	// Fault, when not nil, decides about each request, such as "PATCH nodes/a". A
	// refused request ends with an error, after its whole effect where after is set.
	Fault func(request string) (refused, after bool)
	// Linger is how many lists a pod stays that is being deleted.
	Linger int

	t       testing.TB
	ca      *x509.Certificate
	caKey   *ecdsa.PrivateKey
	caPEM   []byte
	mu      sync.Mutex
	version int
	nodes   map[string]*core.Node
	pods    map[string]*core.Pod
	linger  map[string]int
	budgets map[string]*policy.PodDisruptionBudget
	dead    map[string]bool // kubelets
	renewed map[string]time.Time
	objects map[string]map[string]any // of all other kinds; see keyOf
	applied map[string]map[string]any // the last configuration that was applied
	log     []string
}

// New starts an API server. listener is nil for one on loopback; its address is
// what the server's certificate is for.
func New(t testing.TB, listener net.Listener) *Cluster {
	c := &Cluster{t: t, nodes: map[string]*core.Node{}, pods: map[string]*core.Pod{}, linger: map[string]int{},
		budgets: map[string]*policy.PodDisruptionBudget{}, dead: map[string]bool{}, renewed: map[string]time.Time{}}
	c.authority()
	c.Reset()
	server := httptest.NewUnstartedServer(http.HandlerFunc(c.serve))
	if listener != nil {
		server.Listener.Close()
		server.Listener = listener
	}
	host, _, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	cert, key := c.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "kube-apiserver"}, IPAddresses: []net.IP{net.ParseIP(host)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of clients that go in the middle of a handshake
	// As the real one, it takes any certificate and then says 401.
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

func (c *Cluster) authority() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		c.t.Fatal(err)
	}
	if c.ca, err = x509.ParseCertificate(der); err != nil {
		c.t.Fatal(err)
	}
	c.caKey, c.caPEM = key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func (c *Cluster) sign(template *x509.Certificate) (cert, key []byte) {
	c.t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	if cert, err = c.certify(template, private.Public()); err != nil {
		c.t.Fatal(err)
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		c.t.Fatal(err)
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: text})
}

// certify signs a public key with the cluster's authority, for a day unless the
// template has an end.
func (c *Cluster) certify(template *x509.Certificate, public any) ([]byte, error) {
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(24 * time.Hour)
	}
	template.NotBefore = time.Now().Add(-time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, c.ca, public, c.caKey)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}

// CA returns the certificate of the cluster's authority in PEM.
func (c *Cluster) CA() []byte { return c.caPEM }

// Serving returns a certificate of the API server for names and addresses, and its key.
func (c *Cluster) Serving(names ...string) (cert, key []byte) {
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "kube-apiserver"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	return c.sign(template)
}

// Files are what kubeadm and the kubelet leave on a node, by path.
func (c *Cluster) Files(node string) map[string][]byte {
	return c.FilesUntil(node, time.Time{})
}

// FilesUntil is Files with a certificate that ends at a time.
func (c *Cluster) FilesUntil(node string, end time.Time) map[string][]byte {
	const current = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	cert, key := c.sign(&x509.Certificate{NotAfter: end, Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	conf := fmt.Sprintf(`apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: %s
    server: %s
  name: default-cluster
contexts:
- context:
    cluster: default-cluster
    namespace: default
    user: default-auth
  name: default-context
current-context: default-context
kind: Config
preferences: {}
users:
- name: default-auth
  user:
    client-certificate: %s
    client-key: %s
`, base64.StdEncoding.EncodeToString(c.caPEM), c.URL, current, current)
	return map[string][]byte{"/etc/kubernetes/kubelet.conf": []byte(conf), current: append(cert, key...)}
}

// lister is a user whom RBAC lets list nodes, and nothing else.
const (
	lister      = "node-lister"
	listerToken = "token-of-the-lister"
)

// Kubeconfig is that of a user who may list nodes and nothing else, by a client
// certificate, or by a token.
func (c *Cluster) Kubeconfig(token bool) []byte {
	if token {
		return c.kubeconfig("token: " + listerToken)
	}
	return c.kubeconfigOf(pkix.Name{CommonName: lister})
}

// Administrator returns the kubeconfig of a user who may do everything: admin.conf.
func (c *Cluster) Administrator() []byte {
	return c.kubeconfigOf(pkix.Name{CommonName: "kubernetes-admin", Organization: []string{masters}})
}

func (c *Cluster) kubeconfigOf(user pkix.Name) []byte {
	cert, key := c.sign(&x509.Certificate{Subject: user, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return c.kubeconfig(fmt.Sprintf("client-certificate-data: %s, client-key-data: %s", base64.StdEncoding.EncodeToString(cert), base64.StdEncoding.EncodeToString(key)))
}

func (c *Cluster) kubeconfig(user string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: lab, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: lister, user: {%s}}]
contexts: [{name: lab, context: {cluster: lab, user: lister}}]
current-context: lab
`, c.URL, base64.StdEncoding.EncodeToString(c.caPEM), user)
}

// AddNode adds a node that is ready.
func (c *Cluster) AddNode(name string, change ...func(*core.Node)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := &core.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name), Labels: map[string]string{"kubernetes.io/hostname": name}},
		Status:     core.NodeStatus{Conditions: []core.NodeCondition{{Type: core.NodeReady, Status: core.ConditionTrue}}},
	}
	for _, f := range change {
		f(n)
	}
	c.nodes[name] = n
	c.touch(&n.ObjectMeta)
}

// Node is a node as it is stored.
func (c *Cluster) Node(name string) core.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return *c.nodes[name].DeepCopy()
}

// ChangeNode changes a node as somebody else does.
func (c *Cluster) ChangeNode(name string, change func(*core.Node)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c.nodes[name])
	c.touch(&c.nodes[name].ObjectMeta)
}

// SetReady makes the node Ready or NotReady.
func (c *Cluster) SetReady(name string, ready bool) {
	status := core.ConditionTrue
	if !ready {
		status = core.ConditionUnknown
	}
	c.ChangeNode(name, func(n *core.Node) { n.Status.Conditions[0].Status = status })
}

// SetKubelet makes a node's kubelet live or die.
func (c *Cluster) SetKubelet(name string, alive bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead[name] = !alive
}

// AddPod adds a pod "namespace/name" that runs on a node, of a Job unless
// changed.
func (c *Cluster) AddPod(node, name string, change ...func(*core.Pod)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	namespace, name, _ := strings.Cut(name, "/")
	yes := true
	c.version++
	p := &core.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(fmt.Sprintf("pod-%d", c.version)),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: name, Controller: &yes}}},
		Spec: core.PodSpec{NodeName: node, Containers: []core.Container{{Name: "main", Image: "example.com/a"}}},
		Status: core.PodStatus{Phase: core.PodRunning, Conditions: []core.PodCondition{
			{Type: core.PodReady, Status: core.ConditionTrue}}},
	}
	for _, f := range change {
		f(p)
	}
	c.pods[namespace+"/"+name] = p
	c.touch(&p.ObjectMeta)
}

// ChangePod changes a pod as somebody else does.
func (c *Cluster) ChangePod(name string, change func(*core.Pod)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c.pods[name])
	c.touch(&c.pods[name].ObjectMeta)
}

// Pods are the names of a node's pods that are not being deleted.
func (c *Cluster) Pods(node string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for name, p := range c.pods {
		if p.Spec.NodeName == node && p.DeletionTimestamp == nil {
			all = append(all, name)
		}
	}
	return all
}

// SetBudget sets how many of the pods with a label may be disrupted.
func (c *Cluster) SetBudget(namespace, name, label string, allowed int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.budgets[namespace+"/"+name] = &policy.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       policy.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": label}}},
		Status:     policy.PodDisruptionBudgetStatus{DisruptionsAllowed: allowed, CurrentHealthy: 1 + allowed, DesiredHealthy: 1},
	}
}

// Requests lists the requests in order, such as "PATCH nodes/a".
func (c *Cluster) Requests() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.log...)
}

// touch is under mu.
func (c *Cluster) touch(meta *metav1.ObjectMeta) {
	c.version++
	meta.ResourceVersion = strconv.Itoa(c.version)
}

// GPUs makes a pod ask for GPUs.
func GPUs(n int64) func(*core.Pod) {
	return func(p *core.Pod) {
		p.Spec.Containers[0].Resources.Limits = core.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(n, resource.DecimalSI)}
	}
}

// Owner makes a pod be of a controller, or of none when kind is "".
func Owner(apiVersion, kind string) func(*core.Pod) {
	return func(p *core.Pod) {
		if kind == "" {
			p.OwnerReferences = nil
			return
		}
		p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].Kind = apiVersion, kind
	}
}

// Label gives a pod the label app.
func Label(app string) func(*core.Pod) {
	return func(p *core.Pod) { p.Labels = map[string]string{"app": app} }
}
