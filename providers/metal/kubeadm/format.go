package kubeadm

// The documents that kubeadm reads, as far as stoke writes them. Sources:
// kubeadm.k8s.io/v1beta4, https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4/.

const (
	kubeadmAPI = "kubeadm.k8s.io/v1beta4"
	kubeletAPI = "kubelet.config.k8s.io/v1beta1"
	proxyAPI   = "kubeproxy.config.k8s.io/v1alpha1"
)

type kind struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

type argument struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type initConfiguration struct {
	kind
	BootstrapTokens  []bootstrapToken `json:"bootstrapTokens"`
	LocalAPIEndpoint *localEndpoint   `json:"localAPIEndpoint,omitempty"`
	NodeRegistration registration     `json:"nodeRegistration"`
	Patches          *patches         `json:"patches,omitempty"`
	Timeouts         timeouts         `json:"timeouts"`
}

type timeouts struct {
	KubernetesAPICall string `json:"kubernetesAPICall"`
}

type patches struct {
	Directory string `json:"directory"`
}

type bootstrapToken struct {
	Token       string   `json:"token"`
	Description string   `json:"description"`
	TTL         string   `json:"ttl"`
	Usages      []string `json:"usages"`
	Groups      []string `json:"groups"`
}

type localEndpoint struct {
	AdvertiseAddress string `json:"advertiseAddress,omitempty"`
	BindPort         int    `json:"bindPort,omitempty"`
}

type registration struct {
	Name      string `json:"name"`
	CRISocket string `json:"criSocket"`
	// Taints is never left out: kubeadm has its own where nothing is said.
	Taints                []Taint    `json:"taints"`
	KubeletExtraArgs      []argument `json:"kubeletExtraArgs"`
	IgnorePreflightErrors []string   `json:"ignorePreflightErrors,omitempty"`
	ImagePullPolicy       string     `json:"imagePullPolicy,omitempty"`
}

type clusterConfiguration struct {
	kind
	KubernetesVersion           string     `json:"kubernetesVersion"`
	ClusterName                 string     `json:"clusterName,omitempty"`
	ControlPlaneEndpoint        string     `json:"controlPlaneEndpoint"`
	ImageRepository             string     `json:"imageRepository,omitempty"`
	Networking                  networking `json:"networking"`
	APIServer                   apiServer  `json:"apiServer"`
	CertificateValidityPeriod   string     `json:"certificateValidityPeriod,omitempty"`
	CACertificateValidityPeriod string     `json:"caCertificateValidityPeriod,omitempty"`
}

type networking struct {
	PodSubnet     string `json:"podSubnet"`
	ServiceSubnet string `json:"serviceSubnet"`
	DNSDomain     string `json:"dnsDomain"`
}

type apiServer struct {
	ExtraArgs []argument `json:"extraArgs,omitempty"`
	CertSANs  []string   `json:"certSANs,omitempty"`
}

type joinConfiguration struct {
	kind
	Discovery        discovery    `json:"discovery"`
	NodeRegistration registration `json:"nodeRegistration"`
}

type discovery struct {
	BootstrapToken tokenDiscovery `json:"bootstrapToken"`
}

type tokenDiscovery struct {
	APIServerEndpoint string   `json:"apiServerEndpoint"`
	Token             string   `json:"token"`
	CACertHashes      []string `json:"caCertHashes"`
}
