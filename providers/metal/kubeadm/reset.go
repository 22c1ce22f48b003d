package kubeadm

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
)

// reset undoes a node, with kubeadm's own reset and then all that it leaves.
// Whatever is not there any more is passed over. $1 is the CRI's socket.
const reset = `# take this machine out of its cluster (kubeadm reset)
` + alone + `: >` + logFile + `
status=0
if command -v kubeadm >/dev/null; then
	kubeadm reset --force --cleanup-tmp-dir --cri-socket "$1" >` + logFile + ` 2>&1 || status=$?
fi
systemctl stop kubelet.service 2>/dev/null
systemctl stop kubepods.slice 2>/dev/null

# What pods' network was made of.
for link in $(cat /etc/cni/net.d/*.conf /etc/cni/net.d/*.conflist 2>/dev/null | tr ',{}' '\n\n\n' | sed -n 's/.*"bridge"[[:space:]]*:[[:space:]]*"\([A-Za-z0-9_.-]*\)".*/\1/p') cni0 flannel.1 flannel-v6.1 flannel-wg kube-ipvs0; do
	ip link delete "$link" 2>/dev/null
done

# Rules of kube-proxy, of the kubelet and of CNI's plugins; then tables that
# nobody has anything in, as they came with such rules.
if command -v nft >/dev/null; then
	for family in ip ip6; do
		nft delete table "$family" kube-proxy 2>/dev/null
	done
fi
for tool in iptables ip6tables; do
	command -v "$tool-save" >/dev/null || continue
	"$tool-save" 2>/dev/null | awk '
		/^\*/ { table = $0; next }
		/^:(KUBE|CNI|FLANNEL)-/ { chain[table] = chain[table] substr($1, 2) " "; next }
		/^-A / && $2 !~ /^(KUBE|CNI|FLANNEL)-/ && / -[jg] (KUBE|CNI|FLANNEL)-/ { sub(/^-A/, "-D"); drop[table] = drop[table] $0 "\n" }
		END {
			for (t in chain) {
				n = split(chain[t], c, " ")
				printf "%s\n%s", t, drop[t]
				for (i = 1; i <= n; i++) print "-F " c[i]
				for (i = 1; i <= n; i++) print "-X " c[i]
				print "COMMIT"
			}
		}' | "$tool-restore" --noflush 2>/dev/null
done
if command -v nft >/dev/null; then
	for family in ip ip6; do
		for table in raw mangle nat filter; do
			nft list table "$family" "$table" 2>/dev/null | awk '
				/^\t(chain|set|map) / { n++; next } /^\t\ttype .* hook .* policy accept;$/ { base++; next } /^\t}$|^}$|^table |^$|^#/ { next } { other++ }
				END { exit !(NR && n == base && !other) }' && nft delete table "$family" "$table" 2>/dev/null
		done
	done
fi

# Files. kubeadm has unmounted what pods had mounted, unless it is not there.
awk '$2 ~ "^/var/lib/kubelet/" { print $2 }' /proc/self/mounts | sort -r | while read -r mount; do umount -l "$mount"; done
owned() { dpkg -S "$1" >/dev/null 2>&1 || rpm -qf "$1" >/dev/null 2>&1; }
empty() { # remove what is in a folder, and the folder unless a package has it
	[ -d "$1" ] || return 0
	find "$1" -xdev -mindepth 1 -delete 2>/dev/null
	owned "$1" || rmdir "$1" 2>/dev/null
}
# The plugin that flannel's pods have brought.
[ ! -d /run/flannel ] || owned /opt/cni/bin/flannel || rm -f /opt/cni/bin/flannel
# Not the folder of CNI's configurations: containerd ends when that goes.
find /etc/cni/net.d -xdev -mindepth 1 -delete 2>/dev/null
for dir in /etc/kubernetes/manifests /etc/kubernetes/pki /etc/kubernetes/tmp /var/lib/kubelet /var/lib/cni /run/flannel /var/log/pods /var/log/containers; do
	empty "$dir"
done
# A service of the machine's own may keep its data there, too.
if systemctl cat etcd.service >/dev/null 2>&1; then etcd=; else etcd=/var/lib/etcd; fi
empty "$etcd"
for name in admin super-admin kubelet bootstrap-kubelet controller-manager scheduler; do rm -f "/etc/kubernetes/$name.conf"; done
rm -f /run/stoke-kubelet-restart
plugins=/usr/libexec/kubernetes
for dir in /etc/kubernetes $plugins/kubelet-plugins/volume/exec $plugins/kubelet-plugins/volume $plugins/kubelet-plugins $plugins; do
	[ ! -d "$dir" ] || owned "$dir" || rmdir "$dir" 2>/dev/null
done
find /sys/fs/cgroup -depth -type d -path '*kubepods*' -exec rmdir {} + 2>/dev/null

if [ "$status" != 0 ]; then
	tail -n 200 ` + logFile + `
	exit "$status"
fi
for dir in /etc/kubernetes/pki /etc/kubernetes/manifests /var/lib/kubelet $etcd; do
	[ -z "$(ls -A "$dir" 2>/dev/null)" ] || { echo "$dir is not empty: $(ls -A "$dir")"; status=1; }
done
exit "$status"`

// Reset takes a machine out of its cluster: what runs there ends, and what it had
// of the cluster is deleted, data of etcd too. The API server is not told, nor is
// anything drained. It may be repeated, whatever is there.
//
// Data in /var/lib/etcd stays where the machine has a service etcd of its own. It
// removes the files of CNI in /etc/cni/net.d, flannel's plugin where flannel ran,
// rules of kube-proxy, and chains of iptables that begin with KUBE-, CNI- or
// FLANNEL-. Other programs, packages, images and the kernel's settings stay.
func Reset(ctx context.Context, m host.Machine, criSocket string) error {
	host.Step(ctx, "kubeadm reset")
	out, err := m.Run(ctx, host.Command{Args: []string{"sh", "-c", reset, "sh", cmp.Or(criSocket, DefaultCRISocket)}})
	return failure(m, "reset", out, err)
}

// Await waits, for as long as ctx allows, until no kubeadm runs on a machine: one
// whose connection broke goes on.
func Await(ctx context.Context, m host.Machine) error {
	_, err := m.Run(ctx, host.Command{Args: []string{"sh", "-c", wait, "sh"}})
	var failed *ssh.CommandError
	if errors.As(err, &failed) && failed.Status == busyStatus {
		return fmt.Errorf("%s: %w", m.Name(), ErrBusy)
	}
	return err
}

// wait: kubeadm init gives up after a few minutes by itself.
const wait = `# wait for kubeadm
[ -e ` + lockFile + ` ] || exit 0
exec flock -w 900 -E 75 ` + lockFile + ` true`
