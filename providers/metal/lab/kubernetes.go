//go:build e2e && linux

package lab

import (
	"os"
	"path/filepath"
	"strings"
)

// KubernetesPackages are packages as pkgs.k8s.io has them, of a release such as
// "v1.37.2", with the programs in a folder that testdata/kubernetes/install made:
// kubeadm, kubelet and kubectl are links to one program there, and here to the
// one of a package that the others depend on. cri-tools is a stand-in that says
// so, and kubernetes-cni has the plugins in the folders after that.
func (l *Lab) KubernetesPackages(release, programs string, plugins ...string) []Package {
	l.t.Helper()
	const hyper = "/usr/lib/kubernetes-programs/hyper"
	version := strings.TrimPrefix(release, "v") + "-1.1"
	minor := version[:strings.LastIndexByte(version[:strings.IndexByte(version, '-')], '.')]
	link := func(name string, fields map[string]string) Package {
		fields["Depends"] = "kubernetes-programs (= " + version + ")" + fields["Depends"]
		return Package{Name: name, Version: version, Fields: fields, Files: map[string]string{"/usr/bin/" + name: "-> " + hyper}}
	}
	kubelet := link("kubelet", map[string]string{"Depends": ", kubernetes-cni, iptables, iproute2, mount, util-linux, ethtool, socat, conntrack"})
	kubelet.Files["/lib/systemd/system/kubelet.service"] = strings.Join([]string{
		"[Unit]", "Description=kubelet: The Kubernetes Node Agent", "Wants=network-online.target", "After=network-online.target", "", "[Service]",
		"ExecStart=/usr/bin/kubelet", "Restart=always", "StartLimitInterval=0", "RestartSec=10", "", "[Install]", "WantedBy=multi-user.target", "",
	}, "\n")
	kubelet.Files["/etc/kubernetes/manifests/"] = ""
	kubelet.Scripts = service("kubelet.service", false)
	kubeadm := link("kubeadm", map[string]string{"Depends": ", kubelet, kubectl, cri-tools"})
	kubeadm.Files["/lib/systemd/system/kubelet.service.d/10-kubeadm.conf"] = strings.Join([]string{
		"[Service]",
		`Environment="KUBELET_KUBECONFIG_ARGS=--bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf"`,
		`Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"`,
		"EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env", "EnvironmentFile=-/etc/default/kubelet", "ExecStart=",
		"ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS", "",
	}, "\n")
	cni := Package{Name: "kubernetes-cni", Version: "1.9.1-1.1", Files: map[string]string{}}
	for _, file := range plugins {
		cni.Files["/opt/cni/bin/"+filepath.Base(file)] = l.program(file)
	}
	return []Package{
		{Name: "kubernetes-programs", Version: version, Files: map[string]string{hyper: l.program(filepath.Join(programs, "hyper"))}},
		kubelet, kubeadm, link("kubectl", map[string]string{}), cni,
		{Name: "cri-tools", Version: minor + ".0-1.1", Files: map[string]string{"/usr/bin/crictl": "#!/bin/sh\necho 'crictl is a stand-in of the lab: kubeadm does not need it' >&2\nexit 1\n"}},
	}
}

// RealContainerdPackage is the distribution's package containerd with the programs
// in a folder that testdata/kubernetes/containerd/install made; runc is Debian's.
// At every start it loads the images of an archive, which stands for all
// registries, unless the path of the archive on the machine is "".
func (l *Lab) RealContainerdPackage(version, programs, archive string) Package {
	l.t.Helper()
	p := Package{Name: "containerd", Version: strings.TrimPrefix(version, "v") + "-1", Fields: map[string]string{"Depends": "runc"}, Files: map[string]string{}}
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		p.Files["/usr/bin/"+name] = l.program(filepath.Join(programs, name))
	}
	images := ""
	if archive != "" {
		const load = "/usr/lib/containerd/load-images"
		images = "ExecStartPost=" + load + "\n"
		p.Files[load] = "#!/bin/sh\n[ -e /var/lib/containerd/images-loaded ] || ctr -n k8s.io images import " + archive + " >/dev/null && touch /var/lib/containerd/images-loaded\n"
	}
	p.Files["/lib/systemd/system/containerd.service"] = "[Unit]\nDescription=containerd container runtime\nAfter=network.target\n\n" +
		"[Service]\nType=notify\nTimeoutStartSec=20min\nExecStart=/usr/bin/containerd --log-level warn\n" + images + "Delegate=yes\nKillMode=process\nRestart=always\nRestartSec=5\n\n[Install]\nWantedBy=multi-user.target\n"
	p.Scripts = service("containerd.service", true)
	return p
}

// program is what is in a file of this machine.
func (l *Lab) program(path string) string {
	l.t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(content)
}
