//go:build e2e && linux

package podtest

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// initScript is the first process of a node: it makes of this machine's file
// system the node's, starts the programs, and starts the kubelet and
// kube-proxy again whenever they end, as systemd does. It is given the node's name, its folder, the folder
// of containerd's programs, the kubelet, the node's address, and the folders of
// the control groups for all of these.
//
// The sysctls that the kubelet writes are the kernel's, so that the node has
// plain files in their place.
const initScript = `set -eu
name=$1 dir=$2 programs=$3 kubelet=$4 address=$5
shift 5
for group; do echo 0 > "$group/cgroup.procs"; done
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs -o mode=0755 tmpfs /run
for key in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
  mkdir -p "/run/sysctl/${key%/*}"
  cat "/proc/sys/$key" > "/run/sysctl/$key"
  mount --bind "/run/sysctl/$key" "/proc/sys/$key"
done
mount --bind "$dir/boot_id" /proc/sys/kernel/random/boot_id
[ ! -e /etc/machine-id ] || mount --bind "$dir/machine-id" /etc/machine-id
mount --bind "$dir/lib" /var/lib
mount --bind "$dir/log" /var/log
echo "$name" > /proc/sys/kernel/hostname
mount --make-rshared /
export HOME=/run TMPDIR=/run PATH="$programs:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
containerd --config "$dir/containerd.toml" >> "$dir/containerd.log" 2>&1 &
while :; do
  "$(dirname "$kubelet")/kube-proxy" --config="$dir/proxy.yaml" --hostname-override="$name" >> "$dir/proxy.log" 2>&1 || :
  sleep 1
done &
while :; do
  "$kubelet" --config="$dir/kubelet.yaml" --kubeconfig="$dir/kubeconfig" --hostname-override="$name" --node-ip="$address" >> "$dir/kubelet.log" 2>&1 || :
  sleep 1
done &
wait
`

// containerdConfig has no opt plugin, which makes /opt/containerd. Without
// CAP_SYS_RESOURCE, runc cannot lower the score by which processes are killed
// when memory is short.
const containerdConfig = `version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri"]

[plugins.'io.containerd.cri.v1.images']
  snapshotter = "SNAPSHOTTER"

[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "PAUSE"

[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["PROGRAMS"]
  conf_dir = "DIR/cni"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  BinaryName = "RUNC"
  SystemdCgroup = false
`

// kubeletConfig evicts no pod and removes no image for want of space: the disk
// is that of the machine that tests run on.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: ADDRESS
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: AUTHORITY}}
authorization: {mode: Webhook}
cgroupDriver: cgroupfs
cgroupRoot: CGROUP
clusterDNS: [RESOLVER]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
evictionHard: {imagefs.available: 0%, nodefs.available: 0%, nodefs.inodesFree: 0%}
failCgroupV1: false
failSwapOn: false
imageGCHighThresholdPercent: 100
oomScoreAdj: 0
resolvConf: ""
volumePluginDir: DIR/plugins
`

// proxyConfig does not set connection tracking: these settings belong to the
// kernel of this machine.
const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: DIR/proxy.kubeconfig}
clusterCIDR: 10.244.0.0/16
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
metricsBindAddress: 127.0.0.1:10249
`

// cniConfig keeps its leases in /run, where they end with the pods when the
// power is cut.
const cniConfig = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{
  "type": "bridge", "bridge": "pods", "isGateway": true, "hairpinMode": true,
  "ipam": {"type": "host-local", "dataDir": "/run/cni", "ranges": [[{"subnet": "PODS"}]], "routes": [{"dst": "0.0.0.0/0"}]}
}]}
`

// configure writes the files that a node's programs read.
func (n *Node) configure() error {
	for _, dir := range []string{"cni", "lib", "log", "plugins"} {
		if err := os.MkdirAll(n.file(dir), 0o755); err != nil {
			return err
		}
	}
	snapshotter, err := snapshotter(n.dir)
	if err != nil {
		return err
	}
	fill := strings.NewReplacer(
		"SNAPSHOTTER", snapshotter, "PAUSE", pauseRef, "PROGRAMS", n.cluster.programs, "RUNC", n.cluster.runc, "DIR", n.dir,
		"ADDRESS", nodeAddress(n.number), "AUTHORITY", n.cluster.CAFile(), "CGROUP", n.group, "RESOLVER", servedAddress, "PODS", podRange(n.number),
	)
	for name, text := range map[string]string{
		"containerd.toml": containerdConfig, "kubelet.yaml": kubeletConfig, "proxy.yaml": proxyConfig, "cni/pods.conflist": cniConfig, "machine-id": n.machineID + "\n",
	} {
		if err := os.WriteFile(filepath.Join(n.dir, name), []byte(fill.Replace(text)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// snapshotter is what containerd keeps file systems of containers with: an
// overlay cannot lie on another one, which temporary folders in containers are on.
func snapshotter(dir string) (string, error) {
	const overlay = 0x794c7630
	var on syscall.Statfs_t
	if err := syscall.Statfs(dir, &on); err != nil {
		return "", err
	}
	if on.Type == overlay {
		return "native", nil
	}
	return "overlayfs", nil
}
