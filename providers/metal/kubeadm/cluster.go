package kubeadm

import (
	"time"
)

// Cluster is what holds for a cluster as a whole.
type Cluster struct {
	// Version is a release of Kubernetes, such as "1.36.3".
	Version string
	// Name is what kubeconfigs call the cluster; "": kubernetes.
	Name string
	// Endpoint is where nodes and users reach the API server, as HOST:PORT. It
	// stays for as long as the cluster does.
	Endpoint string
	// Advertise is the control plane machine's own address, and Port where its API
	// server listens; "" and 0: the address of its default route, 6443.
	Advertise string
	Port      int
	// Pods and Services are the networks of pods and Services, as CIDR: one, or
	// one of IPv4 and one of IPv6. Empty Services: 10.96.0.0/12.
	Pods, Services []string
	// Domain is that of names in the cluster; "": cluster.local.
	Domain string
	// APIServer are further arguments of the API server, by name without dashes.
	APIServer map[string]string
	// CertNames are further DNS names and addresses in the API server's
	// certificate.
	CertNames []string
	// CertificateLife and CALife are for how long certificates and their
	// authorities are valid; 0: one year, ten years.
	CertificateLife, CALife time.Duration
	// Images is the registry that the control plane's images come from; "":
	// registry.k8s.io.
	Images string
	// Kubelet and Proxy are fields of KubeletConfiguration and
	// KubeProxyConfiguration, which are laid over those that stoke writes.
	Kubelet, Proxy map[string]any
}

// Node is what holds for one machine of a cluster.
type Node struct {
	// Name is the node's in the cluster, and IP the address that the kubelet says
	// it has: that of the cluster's network.
	Name, IP string
	// CRISocket is containerd's; "": DefaultCRISocket.
	CRISocket string
	// Labels and Taints are what the node registers itself with.
	Labels map[string]string
	Taints []Taint
	// Schedulable says that a control plane takes all pods: it has no taint but
	// those in Taints.
	Schedulable bool
	// MaxPods is how many pods may run there; 0: as the kubelet's configuration
	// says.
	MaxPods int
	// KubeletArgs are further arguments of the kubelet, by name without dashes.
	KubeletArgs map[string]string
	// IgnorePreflight names the checks of kubeadm whose failure is none.
	IgnorePreflight []string
	// PullImages says when kubeadm pulls the control plane's images: Always,
	// IfNotPresent or Never; "": IfNotPresent.
	PullImages string
	// Patches is a folder on the machine with patches that kubeadm lays over what
	// it writes, such as kube-apiserver+strategic.yaml; "" for none.
	Patches string
}

// DefaultCRISocket is where containerd listens, as its packages have it.
const DefaultCRISocket = "unix:///run/containerd/containerd.sock"

// Taint keeps pods that do not tolerate it from a node.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"` // NoSchedule, PreferNoSchedule or NoExecute
}

func (t Taint) String() string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect
	}
	return t.Key + "=" + t.Value + ":" + t.Effect
}

// controlPlaneTaint is the one by which kubeadm keeps pods from control planes.
var controlPlaneTaint = Taint{Key: "node-role.kubernetes.io/control-plane", Effect: "NoSchedule"}

// Join is what a machine needs to become a worker.
type Join struct {
	Endpoint string // the cluster's
	CAHash   string // of its authority, as CAHash has it: no other API server is believed
	Token    Token
}
