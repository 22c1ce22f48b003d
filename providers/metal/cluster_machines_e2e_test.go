//go:build e2e && linux

package metal_test

import (
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
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
	network := ""
	if !stubs {
		network = kubetest.Programs(t, "network/install", "coredns", buildCluster)
		plugins = append(plugins, filepath.Join(network, "portmap"))
	}
	names := strings.Fields(printed(t, filepath.Join(programs, "kubeadm"), "config", "images", "list", "--kubernetes-version", k.release))
	k.images = k.archive(t, programs, containers, network, names)
	minor := k.release[:strings.LastIndexByte(k.release, '.')]
	k.kubernetes = l.RepositoryAt("core:/stable:/"+minor+"/deb/", l.KubernetesPackages(k.release, programs, plugins...)...)
	version := strings.Fields(printed(t, filepath.Join(containers, "containerd"), "--version"))[2]
	k.debian = l.Repository(l.RealContainerdPackage(version, containers, imagesFolder+"/"+filepath.Base(k.images)))
	return k
}

// machinesFor makes machines that can run containerd and the kubelet. Where there
// is no CAP_SYS_RESOURCE, runc cannot lower the score by which processes are
// killed when memory is short.
func (k *kubernetesLab) machinesFor(t *testing.T, names ...string) []*lab.Machine {
	t.Helper()
	options := []lab.Option{
		lab.Pods(), lab.Mirror("runc", "libseccomp2"), lab.Folder(filepath.Dir(k.images), imagesFolder),
		lab.With("/etc/containerd/conf.d/lab.toml", "version = 3\n\n[plugins.'io.containerd.cri.v1.runtime']\n  restrict_oom_score_adj = true\n"),
	}
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
func (k *kubernetesLab) archive(t *testing.T, programs, containers, network string, names []string) string {
	t.Helper()
	const dir = "/usr/local/bin/"
	pause := podtest.Image{Files: map[string]string{"/pause": filepath.Join(containers, "pause")}, Command: []string{"/pause"}}
	kubernetes := podtest.Image{Files: k.Programs("/usr/sbin/nft"), Links: map[string]string{}, Env: []string{"PATH=/usr/local/bin:/usr/sbin"}}
	kubernetes.Files[dir+"hyper"] = filepath.Join(programs, "hyper")
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
		}, Env: []string{"PATH=/bin"}})
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

// hosts declares the machines, the first of which is to be the control plane.
func (k *kubernetesLab) hosts(machines []*lab.Machine) string {
	var b strings.Builder
	for i, m := range machines {
		role := "worker"
		if i == 0 {
			role = "control-plane"
		}
		fmt.Fprintf(&b, `resource "metal_host" %[1]q {
  address            = %[2]q
  host_key           = %[3]q
  hostname           = %[1]q
  cluster            = "lab"
  role               = %[4]q
  swap               = "off"
  allow_cgroup_v1    = true # the kernel of this machine
  kernel_modules     = ["overlay", "br_netfilter"]
  sysctl             = { "net.ipv4.ip_forward" = 1, "net.bridge.bridge-nf-call-iptables" = 1 }
  containerd_package = { version = "*", source = "distribution" }
  containerd         = { sandbox_image = %[5]q }
}
`, m.Name, m.Address, m.HostKey, role, k.pause)
	}
	return b.String()
}
