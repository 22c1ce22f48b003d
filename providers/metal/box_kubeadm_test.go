package metal

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/stokehq/stoke/providers/metal/host/hosttest"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
)

// documents are the documents of a configuration, by kind.
type documents map[string]map[string]any

func readDocuments(in []byte) documents {
	all := documents{}
	for text := range strings.SplitSeq(string(in), "---\n") {
		var d map[string]any
		if yaml.Unmarshal([]byte(text), &d) == nil && d["kind"] != nil {
			all[d["kind"].(string)] = d
		}
	}
	return all
}

// at is a field of a document.
func (d documents) at(kind string, fields ...string) any {
	var v any = d[kind]
	for _, f := range fields {
		m, _ := v.(map[string]any)
		v = m[f]
	}
	return v
}

// pairs are the arguments of a list of name and value.
func pairs(list any) (all []string) {
	items, _ := list.([]any)
	for _, item := range items {
		m, _ := item.(map[string]any)
		all = append(all, fmt.Sprintf("--%v=%v", m["name"], m["value"]))
	}
	return all
}

func textsOf(list any) (all []string) {
	items, _ := list.([]any)
	for _, item := range items {
		all = append(all, fmt.Sprint(item))
	}
	return all
}

// kubeadm carries out kubeadm's commands.
func (b *box) kubeadm(what string, args []string, in []byte) (hosttest.Answer, bool) {
	d := readDocuments(in)
	switch what {
	case "observe Kubernetes":
		return ok(b.observed())
	case "wait for kubeadm", "follow kubeadm", "remove what half of was written":
		return ok()
	case "take this machine out of its cluster (kubeadm reset)":
		b.reset()
		return ok()
	case "remove the API server's certificate, so that kubeadm makes a new one":
		delete(b.Files, "/etc/kubernetes/pki/apiserver.crt")
		delete(b.Files, "/etc/kubernetes/pki/apiserver.key")
		return ok()
	case "make room for kubeadm's patches":
		b.empty(args[0] + "/")
		return ok()
	}
	var err error
	switch what {
	case "make this machine a control plane (kubeadm init)":
		err = b.init(d)
	case "repeat a part of kubeadm init":
		err = b.phase(strings.Join(args[3:], " "), d)
	case "have this machine join a cluster (kubeadm join)":
		err = b.join(d)
	default:
		return hosttest.Answer{}, false
	}
	if err != nil {
		return bad("%v", err)
	}
	return ok()
}

// phases are the phases of kubeadm init, in its order.
var phases = []string{
	"certs all", "kubeconfig all", "etcd local", "control-plane all", "kubelet-start",
	"upload-config all", "mark-control-plane", "bootstrap-token", "kubelet-finalize all", "addon all",
}

func (b *box) init(d documents) error {
	for name := range b.Files {
		if strings.HasPrefix(name, "/etc/kubernetes/manifests/") || name == "/var/lib/etcd/member" || name == "/etc/kubernetes/kubelet.conf" {
			return fmt.Errorf("[ERROR FileAvailable]: %s already exists", name)
		}
	}
	for i, name := range phases {
		if i == len(phases)/2+1 && b.gate.halves() {
			return fmt.Errorf("kubeadm was killed before %s", name)
		}
		if err := b.phase(name, d); err != nil {
			return err
		}
	}
	return nil
}

// phase carries out a phase of init. Certificates and kubeconfigs that are there stay.
func (b *box) phase(name string, d documents) error {
	if b.packages["kubeadm"] == "" {
		return fmt.Errorf("kubeadm: command not found")
	}
	if i := slices.Index(phases, name); (i >= 5 || i < 0 && !strings.HasPrefix(name, "certs") && !strings.HasPrefix(name, "control-plane")) && !b.up() {
		return fmt.Errorf("%s: the API server cannot be reached", name)
	}
	switch name {
	case "certs all", "certs apiserver":
		return b.certify(d)
	case "kubeconfig all":
		b.keep("/etc/kubernetes/admin.conf", b.cluster.Administrator())
		b.keep("/etc/kubernetes/super-admin.conf", b.cluster.Administrator())
		b.keep("/etc/kubernetes/kubelet.conf", b.cluster.Files(b.node(d))["/etc/kubernetes/kubelet.conf"])
	case "etcd local":
		b.write("/etc/kubernetes/manifests/etcd.yaml", []byte("kind: Pod\n"))
		b.runs()
	case "control-plane all", "control-plane apiserver":
		return b.serve(d)
	case "kubelet-start":
		b.configure(d["KubeletConfiguration"], d.at("InitConfiguration", "nodeRegistration"), "")
		b.active, b.due = true, false
		b.runs()
	case "upload-config all", "upload-config kubeadm", "upload-config kubelet":
		b.upload(strings.TrimPrefix(name, "upload-config "), d)
	case "mark-control-plane":
		return b.mark(d)
	case "bootstrap-token":
		b.grant(d)
	case "kubelet-finalize all":
	case "addon all", "addon coredns", "addon kube-proxy":
		b.add(strings.TrimPrefix(name, "addon "), d)
	default:
		return fmt.Errorf("kubeadm knows no phase %s", name)
	}
	return nil
}

// keep writes a file that is not there.
func (b *box) keep(name string, content []byte) {
	if !b.has(name) {
		b.write(name, content)
	}
}

func (b *box) node(d documents) string {
	return fmt.Sprint(d.at("InitConfiguration", "nodeRegistration", "name"))
}

// certify makes the API server's certificate. One that is there has to have all names.
func (b *box) certify(d documents) error {
	const file = "/etc/kubernetes/pki/apiserver.crt"
	b.keep("/etc/kubernetes/pki/ca.crt", b.cluster.CA())
	names := append(textsOf(d.at("ClusterConfiguration", "apiServer", "certSANs")), hostOf(fmt.Sprint(d.at("ClusterConfiguration", "controlPlaneEndpoint"))))
	if b.has(file) {
		is, err := kubeadm.Observe(b.t.Context(), &b.Machine)
		for _, name := range names {
			if err == nil && !slices.Contains(is.Certificates[file].Names, name) {
				err = fmt.Errorf("certificate apiserver is invalid: it is not valid for %s", name)
			}
		}
		return err
	}
	cert, key := b.cluster.Serving(names...)
	b.write(file, cert)
	b.write("/etc/kubernetes/pki/apiserver.key", key)
	return nil
}

// serve writes the static pods of the control plane.
func (b *box) serve(d documents) error {
	command := append([]string{"kube-apiserver", "--advertise-address=" + fmt.Sprint(d.at("InitConfiguration", "localAPIEndpoint", "advertiseAddress"))},
		pairs(d.at("ClusterConfiguration", "apiServer", "extraArgs"))...)
	image := "registry.k8s.io/kube-apiserver:" + fmt.Sprint(d.at("ClusterConfiguration", "kubernetesVersion"))
	pod, err := yaml.Marshal(map[string]any{"kind": "Pod", "spec": map[string]any{"containers": []any{map[string]any{"image": image, "command": command}}}})
	if err != nil {
		return err
	}
	b.write("/etc/kubernetes/manifests/kube-apiserver.yaml", pod)
	b.keep("/etc/kubernetes/manifests/kube-controller-manager.yaml", []byte("kind: Pod\n"))
	b.keep("/etc/kubernetes/manifests/kube-scheduler.yaml", []byte("kind: Pod\n"))
	b.runs()
	return nil
}

// configure writes the kubelet's configuration and arguments.
func (b *box) configure(config map[string]any, registration any, taints string) {
	local := maps.Clone(config)
	local["resolvConf"] = "/etc/resolv.conf"
	text, err := yaml.Marshal(local)
	if err != nil {
		b.t.Error(err)
	}
	b.write("/var/lib/kubelet/config.yaml", text)
	m, _ := registration.(map[string]any)
	args := pairs(m["kubeletExtraArgs"])
	if taints != "" {
		args = append(args, "--register-with-taints="+taints)
	}
	b.write(flagsFile, fmt.Appendf(nil, "KUBELET_KUBEADM_ARGS=%q\n", strings.Join(args, " ")))
}

func configMap(name string, data map[string]any) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "kube-system"}, "data": data}
}

func (b *box) upload(what string, d documents) {
	text := func(kind string) string {
		out, err := yaml.Marshal(d[kind])
		if err != nil {
			b.t.Error(err)
		}
		return string(out)
	}
	if what != "kubelet" {
		b.cluster.Put(configMap("kubeadm-config", map[string]any{"ClusterConfiguration": text("ClusterConfiguration")}))
	}
	if what != "kubeadm" {
		b.cluster.Put(configMap(kubeadm.KubeletMap, map[string]any{"kubelet": text("KubeletConfiguration")}))
	}
	b.cluster.Put(binding("kubeadm:cluster-admins"))
}

func binding(name string) map[string]any {
	return map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": name}}
}

func (b *box) mark(d documents) error {
	node := b.node(d)
	if !slices.Contains(b.cluster.Names("nodes"), node) {
		return fmt.Errorf("nodes %q not found", node)
	}
	items, _ := d.at("InitConfiguration", "nodeRegistration", "taints").([]any)
	b.cluster.ChangeNode(node, func(n *core.Node) {
		n.Labels["node-role.kubernetes.io/control-plane"] = ""
		for _, item := range items {
			m, _ := item.(map[string]any)
			t := core.Taint{Key: fmt.Sprint(m["key"]), Effect: core.TaintEffect(fmt.Sprint(m["effect"]))}
			if !slices.ContainsFunc(n.Spec.Taints, func(is core.Taint) bool { return is.MatchTaint(&t) }) {
				n.Spec.Taints = append(n.Spec.Taints, t)
			}
		}
	})
	return nil
}

// grant makes the token of the configuration.
func (b *box) grant(d documents) {
	items, _ := d.at("InitConfiguration", "bootstrapTokens").([]any)
	for _, item := range items {
		m, _ := item.(map[string]any)
		id, _, _ := strings.Cut(fmt.Sprint(m["token"]), ".")
		b.cluster.Put(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "bootstrap-token-" + id, "namespace": "kube-system"},
			"data": map[string]any{"description": base64.StdEncoding.EncodeToString(fmt.Append(nil, m["description"]))}})
	}
}

func (b *box) add(what string, d documents) {
	workload := func(kind, name string) map[string]any {
		return map[string]any{"apiVersion": "apps/v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "kube-system"},
			"spec": map[string]any{"replicas": int64(1), "template": map[string]any{"spec": map[string]any{}}}}
	}
	if what != "kube-proxy" {
		b.cluster.Put(workload("Deployment", "coredns"))
	}
	if what != "coredns" {
		text, err := json.Marshal(d["KubeProxyConfiguration"])
		if err != nil {
			b.t.Error(err)
		}
		b.cluster.Put(configMap(kubeadm.ProxyMap, map[string]any{"config.conf": string(text)}))
		b.cluster.Put(workload("DaemonSet", "kube-proxy"))
	}
}

// join makes the machine a worker, by a token that the cluster has.
func (b *box) join(d documents) error {
	if b.packages["kubeadm"] == "" {
		return fmt.Errorf("kubeadm: command not found")
	}
	if b.has("/etc/kubernetes/kubelet.conf") {
		return fmt.Errorf("[ERROR FileAvailable--etc-kubernetes-kubelet.conf]: it already exists")
	}
	token, _, _ := strings.Cut(fmt.Sprint(d.at("JoinConfiguration", "discovery", "bootstrapToken", "token")), ".")
	secret := b.cluster.Object("secrets", "kube-system", "bootstrap-token-"+token)
	config := b.cluster.Object("configmaps", "kube-system", kubeadm.KubeletMap)
	switch {
	case !b.head.up() || config == nil:
		return fmt.Errorf("the API server cannot be reached")
	case secret == nil:
		return fmt.Errorf("there is no token %s", token)
	}
	b.write("/etc/kubernetes/pki/ca.crt", b.cluster.CA())
	var kubelet map[string]any
	if err := yaml.Unmarshal([]byte(config["data"].(map[string]any)["kubelet"].(string)), &kubelet); err != nil {
		return err
	}
	registration := d.at("JoinConfiguration", "nodeRegistration")
	var taints []string
	items, _ := registration.(map[string]any)["taints"].([]any)
	for _, item := range items {
		m, _ := item.(map[string]any)
		value := ""
		if v, given := m["value"]; given {
			value = fmt.Sprint("=", v)
		}
		taints = append(taints, fmt.Sprint(m["key"], value, ":", m["effect"]))
	}
	b.configure(kubelet, registration, strings.Join(taints, ","))
	if b.gate.halves() {
		b.write("/etc/kubernetes/bootstrap-kubelet.conf", nil)
		return fmt.Errorf("kubeadm was killed before the kubelet had its identity")
	}
	delete(b.Files, "/etc/kubernetes/bootstrap-kubelet.conf")
	name := fmt.Sprint(registration.(map[string]any)["name"])
	for file, content := range b.cluster.Files(name) {
		b.write(file, content)
	}
	b.active, b.due = true, false
	b.runs()
	return nil
}

// reset takes the machine out of its cluster, which ends with its control plane.
func (b *box) reset() {
	if b.head == b && b.has("/etc/kubernetes/manifests/kube-apiserver.yaml") {
		b.cluster.Reset()
	}
	if node := b.flags()["hostname-override"]; b.head != b && slices.Contains(b.cluster.Names("nodes"), node) {
		b.cluster.SetReady(node, false)
		b.cluster.SetKubelet(node, false)
	}
	b.empty("/etc/kubernetes/", "/var/lib/kubelet/", "/var/lib/etcd/")
	b.active, b.due = false, false
}

// empty removes the files of folders.
func (b *box) empty(folders ...string) {
	for name := range b.Files {
		if slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(name, folder) }) {
			delete(b.Files, name)
		}
	}
}
