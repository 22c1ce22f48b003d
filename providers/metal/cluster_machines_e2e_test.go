//go:build e2e && linux

package metal_test

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/connect/kubetest"
	"github.com/stokehq/stoke/providers/connect/podtest"
	"github.com/stokehq/stoke/providers/metal/lab"
)

// cniOfOneMachine is a network of pods that ends at their machine: with it a node is
// ready.
const cniOfOneMachine = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{
  "type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
  "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": "10.244.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}
}]}
`

const (
	buildCluster = "make e2e-metal-cluster"
	// Where machines are shown images, which no registry has.
	imagesFolder = "/opt/images"
	// What flannel's manifest asks for.
	flannelImage    = "ghcr.io/flannel-io/flannel:v0.28.4"
	flannelCNIImage = "ghcr.io/flannel-io/flannel-cni-plugin:v1.9.1-flannel1"
	// A device plugin of the tests' own, and what tries GPUs.
	gpuPluginImage = "stoke.test/gpu-plugin:1"
	shellImage     = "stoke.test/shell:1"
)

// kubernetesLab is a lab whose machines can become a cluster: repositories with
// kubeadm and containerd, and the images that a cluster is made of. It is nothing
// that stoke knows of.
type kubernetesLab struct {
	*lab.Lab
	release string // of Kubernetes, such as "v1.37.2"
	pause   string // the sandbox image that this release of kubeadm wants
	// kubernetes is laid out as pkgs.k8s.io is, and debian has containerd.
	kubernetes, debian *lab.Repository

	images string // their archive
	stubs  bool   // there is no CoreDNS and no flannel, but images of their names
}

// newKubernetesLab makes one without machines. With stubs, what is built of
// CoreDNS and flannel is not needed, and does not work.
func newKubernetesLab(t *testing.T, l *lab.Lab, stubs bool) *kubernetesLab {
	t.Helper()
	programs := kubetest.Programs(t, "install", "hyper", buildCluster)
	containers := kubetest.Programs(t, "containerd/install", "containerd", buildCluster)
	k := &kubernetesLab{Lab: l, stubs: stubs, release: printed(t, filepath.Join(programs, "kubeadm"), "version", "-o", "short")}
	var plugins []string
	for _, name := range []string{"bridge", "host-local", "loopback"} {
		plugins = append(plugins, filepath.Join(containers, name))
	}
	network, gpus := "", ""
	if !stubs {
		gpus = kubetest.Programs(t, "gpus/install", "plugin", buildCluster)
		network = kubetest.Programs(t, "network/install", "coredns", buildCluster)
		plugins = append(plugins, filepath.Join(network, "portmap"))
	}
	names := strings.Fields(printed(t, filepath.Join(programs, "kubeadm"), "config", "images", "list", "--kubernetes-version", k.release))
	k.images = k.archive(t, programs, containers, network, gpus, names)
	minor := k.release[:strings.LastIndexByte(k.release, '.')]
	k.kubernetes = l.RepositoryAt("core:/stable:/"+minor+"/deb/", l.KubernetesPackages(k.release, programs, plugins...)...)
	version := strings.Fields(printed(t, filepath.Join(containers, "containerd"), "--version"))[2]
	k.debian = l.Repository(l.RealContainerdPackage(version, containers, imagesFolder+"/"+filepath.Base(k.images)))
	return k
}

// containerdOfLab is what containerd needs where there is no CAP_SYS_RESOURCE, and a
// runtime by the name of NVIDIA's, which is runc.
const containerdOfLab = `version = 3

[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia]
  runtime_type = "io.containerd.runc.v2"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia.options]
  SystemdCgroup = true
`

// options are those of machines that can run containerd and the kubelet, which have
// the images.
func (k *kubernetesLab) options() []lab.Option {
	return []lab.Option{lab.Pods(), lab.Mirror("runc", "libseccomp2"), lab.Folder(filepath.Dir(k.images), imagesFolder)}
}

// machinesFor makes such machines. Where there is no CAP_SYS_RESOURCE, runc cannot
// lower the score by which processes are killed when memory is short.
func (k *kubernetesLab) machinesFor(t *testing.T, names ...string) []*lab.Machine {
	t.Helper()
	options := append(k.options(), lab.With("/etc/containerd/conf.d/lab.toml", containerdOfLab))
	if k.stubs {
		options = append(options, lab.With("/etc/cni/net.d/10-pods.conflist", cniOfOneMachine))
	}
	machines := k.MachinesWith(options, names...)
	for _, m := range machines {
		k.debian.AddTo(m)
	}
	return machines
}

// archive has all that kubeadm asks for, made of the programs that were built: one
// layer has those of Kubernetes, and nft for kube-proxy.
func (k *kubernetesLab) archive(t *testing.T, programs, containers, network, gpus string, names []string) string {
	t.Helper()
	const dir = "/usr/local/bin/"
	pause := podtest.Image{Files: map[string]string{"/pause": filepath.Join(containers, "pause")}, Command: []string{"/pause"}}
	kubernetes := podtest.Image{Files: k.Programs("/usr/sbin/nft"), Links: map[string]string{}, Env: []string{"PATH=/usr/local/bin:/usr/sbin"}}
	kubernetes.Files[dir+"hyper"] = filepath.Join(programs, "hyper")
	// Without it nft prints numbers for protocols, by which a kube-proxy that starts
	// again takes the entries of Services for others, and removes them.
	protocols := filepath.Join(t.TempDir(), "protocols")
	if err := os.WriteFile(protocols, []byte("icmp 1 ICMP\ntcp 6 TCP\nudp 17 UDP\nsctp 132 SCTP\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	kubernetes.Files["/etc/protocols"] = protocols
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler"} {
		kubernetes.Links[dir+name] = "hyper"
	}
	coredns := pause // it never becomes ready
	if !k.stubs {
		coredns = podtest.Image{Files: map[string]string{"/coredns": filepath.Join(network, "coredns")}, Command: []string{"/coredns"}}
	}
	var all []podtest.Image
	for _, ref := range names {
		image := kubernetes
		switch name, _, _ := strings.Cut(path.Base(ref), ":"); {
		case name == "pause":
			image, k.pause = pause, ref
		case name == "coredns":
			image = coredns
		case kubernetes.Links[dir+name] == "":
			t.Fatalf("kubeadm wants the image %s, which cannot be made", ref)
		}
		image.Ref = ref
		all = append(all, image)
	}
	if k.pause == "" {
		t.Fatalf("kubeadm wants no pause among %v", names)
	}
	all = append(all, podtest.Image{Ref: podtest.Demo, Files: map[string]string{"/demo": filepath.Join(containers, "demo")}, Command: []string{"/demo"}})
	if !k.stubs {
		all = append(all, k.flannel(network), podtest.Image{Ref: flannelCNIImage, Files: map[string]string{
			"/flannel": filepath.Join(network, "flannel"), "/bin/cp": filepath.Join(network, "cp"),
		}, Env: []string{"PATH=/bin"}},
			podtest.Image{Ref: gpuPluginImage, Files: map[string]string{"/plugin": filepath.Join(gpus, "plugin")}, Command: []string{"/plugin"}},
			podtest.Image{Ref: shellImage, Files: k.Programs("/usr/bin/dash", "/usr/bin/sleep"), Links: map[string]string{"/usr/bin/sh": "dash"}, Env: []string{"PATH=/usr/bin"}})
	}
	return podtest.Archive(t, all...)
}

// flannel is flanneld with what it writes rules with: it looks for iptables even
// where it uses nft.
func (k *kubernetesLab) flannel(network string) podtest.Image {
	const multi = "/usr/sbin/xtables-nft-multi"
	files := k.Programs("/usr/sbin/nft", multi, "/usr/lib/*/xtables/*.so")
	files["/opt/bin/flanneld"], files["/bin/cp"] = filepath.Join(network, "flanneld"), filepath.Join(network, "cp")
	links := map[string]string{}
	for _, name := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"} {
		links["/usr/sbin/"+name] = "xtables-nft-multi"
	}
	return podtest.Image{Ref: flannelImage, Files: files, Links: links, Env: []string{"PATH=/opt/bin:/usr/sbin:/bin"}}
}

// printed is what a command prints, which has to succeed.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).Output()
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

// provider is the provider block for such a lab: pkgs.k8s.io is its repository.
func (k *kubernetesLab) provider() string {
	return fmt.Sprintf(`terraform {
  required_providers {
    metal = { source = "stokehq/metal" }
  }
}
provider "metal" {
  ssh {
    user             = "ops"
    private_key_file = "${path.module}/id"
  }
  mirrors = { "https://pkgs.k8s.io" = %q }
}
`, strings.TrimSuffix(k.kubernetes.URL, strings.SplitAfterN(k.kubernetes.URL, "/", 4)[3]))
}

// minor is that of the release, such as "1.37".
func (k *kubernetesLab) minor() string {
	return strings.TrimPrefix(k.release[:strings.LastIndexByte(k.release, '.')], "v")
}

// argument is one of a resource: its name, and its value as it is written.
type argument struct{ name, value string }

// hosts declares the machines, the first of which is to be the control plane. edit
// may change what one of them declares.
func (k *kubernetesLab) hosts(machines []*lab.Machine, edit func(name string, declared []argument) []argument) string {
	var b strings.Builder
	for i, m := range machines {
		role := "worker"
		if i == 0 {
			role = "control-plane"
		}
		declared := []argument{
			{"address", strconv.Quote(m.Address)},
			{"host_key", strconv.Quote(m.HostKey)},
			{"cluster", `"lab"`},
			{"role", strconv.Quote(role)},
			{"allow_cgroup_v1", "true"}, // the kernel of this machine
			{"hostname", strconv.Quote(m.Name)},
			{"swap", `"off"`},
			{"kernel_modules", `["overlay", "br_netfilter"]`},
			{"sysctl", `{ "net.ipv4.ip_forward" = 1, "net.bridge.bridge-nf-call-iptables" = 1 }`},
			{"containerd", fmt.Sprintf("{ sandbox_image = %q }", k.pause)},
			{"containerd_package", `{ version = "*", source = "distribution" }`},
		}
		fmt.Fprintf(&b, "resource \"metal_host\" %q {\n", m.Name)
		for _, a := range edit(m.Name, declared) {
			fmt.Fprintf(&b, "  %s = %s\n", a.name, a.value)
		}
		b.WriteString("}\n")
	}
	return b.String()
}
