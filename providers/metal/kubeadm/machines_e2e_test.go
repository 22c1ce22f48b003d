//go:build e2e && linux

package kubeadm_test

import (
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stokehq/stoke/providers/connect/kubetest"
	"github.com/stokehq/stoke/providers/connect/podtest"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
	"github.com/stokehq/stoke/providers/metal/lab"
)

const (
	build = "make e2e-metal-cluster"
	// Where machines have the programs that were built here.
	kubernetes, runtime = "/opt/kubernetes", "/opt/containerd"
)

// cluster is what the test makes, on its machines.
type cluster struct {
	cluster  kubeadm.Cluster
	machines []*lab.Machine
	pause    string // the sandbox image that this release of kubeadm wants
}

// newCluster makes machines that are ready for kubeadm: what the other parts of
// the provider metal do, by hand.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	programs := kubetest.Programs(t, "install", "hyper", build)
	containers := kubetest.Programs(t, "containerd/install", "containerd", build)
	l := lab.New(t)
	release := output(t, filepath.Join(programs, "kubeadm"), "version", "-o", "short")
	names := strings.Fields(output(t, filepath.Join(programs, "kubeadm"), "config", "images", "list", "--kubernetes-version", release))
	archive, pause := images(t, programs, containers, names)
	c := &cluster{pause: pause}
	c.machines = l.MachinesWith([]lab.Option{
		lab.Pods(), lab.Folder(programs, kubernetes), lab.Folder(containers, runtime), lab.Folder(filepath.Dir(archive), "/opt/images"),
		lab.With("/etc/systemd/system/kubelet.service", kubeletUnit), lab.With("/etc/systemd/system/containerd.service", containerdUnit),
		lab.With("/etc/containerd/config.toml", strings.ReplaceAll(containerdConfig, "PAUSE", pause)),
		lab.With("/etc/sysctl.d/90-kubernetes.conf", "net.ipv4.ip_forward = 1\n"),
	}, "head", "worker")
	c.prepare(t, filepath.Base(archive))
	c.cluster = kubeadm.Cluster{
		Version: strings.TrimPrefix(release, "v"), Endpoint: c.machines[0].Address + ":6443", Advertise: c.machines[0].Address,
		Pods: []string{"10.244.0.0/16"}, APIServer: map[string]string{"profiling": "false"}, CertNames: []string{"api.lab.example"},
		// Nothing is short of memory or disk here, whose sizes are those of the machine
		// that the test runs on.
		Kubelet: map[string]any{
			"failCgroupV1": false, "failSwapOn": false, "oomScoreAdj": 0, "maxPods": 40, "imageGCHighThresholdPercent": 100,
			"evictionHard": map[string]any{"imagefs.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%"},
		},
		Proxy: map[string]any{"conntrack": map[string]any{"maxPerCore": 0}},
	}
	return c
}

// prepare starts containerd and the kubelet everywhere, and brings the images.
func (c *cluster) prepare(t *testing.T, archive string) {
	t.Helper()
	var all sync.WaitGroup
	for _, m := range c.machines {
		all.Go(func() {
			if _, err := m.Try("sh", "-euc", prepare, "sh", kubernetes, runtime, archive); err != nil {
				t.Errorf("%s: %v", m.Name, err)
			}
		})
	}
	if all.Wait(); t.Failed() {
		t.FailNow()
	}
}

const prepare = `for name in kubeadm kubelet kubectl; do ln -s "$1/$name" "/usr/local/bin/$name"; done
ln -s "$2/ctr" /usr/local/bin/ctr
apt-get -qq install -y --no-install-recommends runc >/dev/null
sysctl -q -w net.ipv4.ip_forward=1
systemctl enable --quiet containerd kubelet
systemctl start containerd
ctr -n k8s.io images import "/opt/images/$3" >/dev/null`

// images are an archive of what kubeadm asks for, made of the programs that were
// built: one layer has them all, and nft for kube-proxy. CoreDNS is a stand-in
// that never becomes ready.
func images(t *testing.T, programs, containers string, names []string) (archive, pause string) {
	t.Helper()
	const dir = "/usr/local/bin/"
	files := map[string]string{dir + "hyper": filepath.Join(programs, "hyper")}
	nft, err := exec.LookPath("nft")
	if err != nil {
		t.Fatal(err)
	}
	files["/usr/sbin/nft"] = nft
	for _, library := range regexp.MustCompile(`/\S+\.so\S*`).FindAllString(output(t, "ldd", nft), -1) {
		files[library] = library
	}
	links := map[string]string{}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler"} {
		links[dir+name] = "hyper"
	}
	var all []podtest.Image
	for _, ref := range names {
		name, _, _ := strings.Cut(path.Base(ref), ":")
		image := podtest.Image{Ref: ref, Files: files, Links: links, Env: []string{"PATH=/usr/local/bin:/usr/sbin"}}
		switch name {
		case "pause":
			pause = ref
			fallthrough
		case "coredns":
			image = podtest.Image{Ref: ref, Files: map[string]string{"/pause": filepath.Join(containers, "pause")}, Command: []string{"/pause"}}
		default:
			if links[dir+name] == "" {
				t.Fatalf("kubeadm wants the image %s, which cannot be made", ref)
			}
		}
		all = append(all, image)
	}
	if pause == "" {
		t.Fatalf("kubeadm wants no pause among %v", names)
	}
	return podtest.Archive(t, all...), pause
}

func output(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).Output()
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

const kubeletUnit = `[Unit]
After=containerd.service

[Service]
Environment=KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml
Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=/usr/local/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS
Restart=always
RestartSec=2
StartLimitIntervalSec=0

[Install]
WantedBy=multi-user.target
`

const containerdUnit = `[Service]
Type=notify
Environment=PATH=/opt/containerd:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
ExecStart=/opt/containerd/containerd --log-level warn
Delegate=yes
KillMode=process
Restart=always

[Install]
WantedBy=multi-user.target
`

// containerdConfig has no opt plugin, which would write to /opt/containerd. Where
// there is no CAP_SYS_RESOURCE, runc cannot lower the score by which processes
// are killed when memory is short.
const containerdConfig = `version = 3
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]

[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "PAUSE"

[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["/opt/containerd"]

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  SystemdCgroup = true
`

const cniConfig = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{
  "type": "bridge", "bridge": "pods", "isGateway": true, "hairpinMode": true,
  "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": "PODS"}]], "routes": [{"dst": "0.0.0.0/0"}]}
}]}
`
