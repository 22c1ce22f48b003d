package packages

import (
	"path"

	"github.com/stokehq/stoke/providers/metal/host"
)

// interrupts is what changing a package interrupts, by its name; the first
// pattern counts. Names of packages are those of Debian 12 and 13, Ubuntu 22.04
// and 24.04, Docker's, Kubernetes' and NVIDIA's repositories. Their maintainer
// scripts were read where Debian has them: dh_installsystemd puts
// deb-systemd-invoke into every package that ships a unit, and that begins with
// systemctl daemon-reload; systemd and libc6 execute the manager anew, which
// reloads, too.
var interrupts = []struct {
	pattern string
	there   host.Disruption // it is there and changes
	fresh   host.Disruption // it comes in
}{
	{"containerd.io", host.RestartsContainer, host.ReloadsSystemd},
	{"containerd", host.RestartsContainer, host.ReloadsSystemd},
	{"cri-o", host.RestartsContainer, host.ReloadsSystemd},
	{"kubelet", host.RestartsKubelet, host.ReloadsSystemd},
	// Plain files, all of them.
	{"kubeadm", host.None, host.None},
	{"kubectl", host.None, host.None},
	{"cri-tools", host.None, host.None},
	{"kubernetes-cni", host.None, host.None},
	{"runc", host.None, host.None},
	// 1.18 and later bring nvidia-cdi-refresh.path and .service.
	{"nvidia-container-toolkit-base", host.ReloadsSystemd, host.ReloadsSystemd},
	{"nvidia-container-toolkit", host.ReloadsSystemd, host.ReloadsSystemd},
	{"nvidia-persistenced", host.ReloadsSystemd, host.ReloadsSystemd},
	{"nvidia-fabricmanager*", host.ReloadsSystemd, host.ReloadsSystemd},
	{"nvidia-kernel-common*", host.ReloadsSystemd, host.ReloadsSystemd},
	{"nvidia-compute-utils*", host.ReloadsSystemd, host.ReloadsSystemd},
	{"datacenter-gpu-manager*", host.ReloadsSystemd, host.ReloadsSystemd},
	{"docker-ce", host.ReloadsSystemd, host.ReloadsSystemd},
	{"docker.io", host.ReloadsSystemd, host.ReloadsSystemd},
	{"systemd", host.ReloadsSystemd, host.ReloadsSystemd},
	{"systemd-*", host.ReloadsSystemd, host.ReloadsSystemd},
	{"udev", host.ReloadsSystemd, host.ReloadsSystemd},
	{"dbus", host.ReloadsSystemd, host.ReloadsSystemd},
	{"libc6", host.ReloadsSystemd, host.None},
	{"init-system-helpers", host.ReloadsSystemd, host.None},
	{"openssh-server", host.ReloadsSystemd, host.ReloadsSystemd},
	{"cron", host.ReloadsSystemd, host.ReloadsSystemd},
	{"rsyslog", host.ReloadsSystemd, host.ReloadsSystemd},
	{"chrony", host.ReloadsSystemd, host.ReloadsSystemd},
	{"ntpsec", host.ReloadsSystemd, host.ReloadsSystemd},
	{"nfs-common", host.ReloadsSystemd, host.ReloadsSystemd},
	{"rpcbind", host.ReloadsSystemd, host.ReloadsSystemd},
	{"unattended-upgrades", host.ReloadsSystemd, host.ReloadsSystemd},
	{"nftables", host.ReloadsSystemd, host.ReloadsSystemd},
	{"ufw", host.ReloadsSystemd, host.ReloadsSystemd},
	{"apparmor", host.ReloadsSystemd, host.ReloadsSystemd},
	{"open-iscsi", host.ReloadsSystemd, host.ReloadsSystemd},
	{"multipath-tools", host.ReloadsSystemd, host.ReloadsSystemd},
}

func disruption(name string, there, scripts bool) (d host.Disruption) {
	if scripts {
		d = host.ReloadsSystemd
	}
	for _, i := range interrupts {
		if ok, _ := path.Match(i.pattern, name); ok {
			if there {
				return max(d, i.there)
			}
			return max(d, i.fresh)
		}
	}
	return d
}

// interrupted is what all actions together interrupt, and the one that does most.
func interrupted(actions []Action) (most host.Disruption, which Action) {
	for _, a := range actions {
		if d := disruption(a.Package, a.Old != "", a.Scripts); d > most {
			most, which = d, a
		}
	}
	return most, which
}
