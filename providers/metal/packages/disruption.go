package packages

import (
	"path"
	"slices"

	"github.com/stokehq/stoke/providers/metal/host"
)

// interrupts is what changing a package interrupts, by its name; the first
// pattern counts. Names of packages are the names in Debian 12 and 13, Ubuntu
// 22.04 and 24.04, and the repositories of Docker, Kubernetes and NVIDIA. Their
// maintainer scripts were read where Debian has them: dh_installsystemd puts
// deb-systemd-invoke into every package that ships a unit, and that begins with
// systemctl daemon-reload; systemd and libc6 re-execute the manager, which
// reloads, too.
var interrupts = []struct {
	patterns     []string
	there, fresh host.Disruption // where it is there and changes; where it comes in
}{
	{[]string{"containerd.io", "containerd", "cri-o"}, host.RestartsContainer, host.ReloadsSystemd},
	{[]string{"kubelet"}, host.RestartsKubelet, host.ReloadsSystemd},
	// Plain files, all of them.
	{[]string{"kubeadm", "kubectl", "cri-tools", "kubernetes-cni", "runc"}, host.None, host.None},
	{[]string{"libc6", "init-system-helpers"}, host.ReloadsSystemd, host.None},
	{[]string{
		// 1.18 and later bring nvidia-cdi-refresh.path and .service.
		"nvidia-container-toolkit-base", "nvidia-container-toolkit",
		"nvidia-persistenced", "nvidia-fabricmanager*", "nvidia-kernel-common*", "nvidia-compute-utils*", "datacenter-gpu-manager*",
		"docker-ce", "docker.io", "systemd", "systemd-*", "udev", "dbus", "openssh-server", "cron", "rsyslog", "chrony", "ntpsec",
		"nfs-common", "rpcbind", "unattended-upgrades", "nftables", "ufw", "apparmor", "open-iscsi", "multipath-tools",
	}, host.ReloadsSystemd, host.ReloadsSystemd},
}

func disruption(name string, there, scripts bool) (d host.Disruption) {
	if scripts {
		d = host.ReloadsSystemd
	}
	for _, i := range interrupts {
		switch {
		case !slices.ContainsFunc(i.patterns, func(p string) bool { ok, _ := path.Match(p, name); return ok }):
		case there:
			return max(d, i.there)
		default:
			return max(d, i.fresh)
		}
	}
	return d
}

func interrupted(actions []Action) (most host.Disruption, which Action) {
	for _, a := range actions {
		if d := disruption(a.Package, a.Old != "", a.Scripts); d > most {
			most, which = d, a
		}
	}
	return most, which
}
