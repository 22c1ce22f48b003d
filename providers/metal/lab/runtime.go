//go:build e2e && linux

package lab

import "strings"

// ContainerdPackage is a stand-in for Docker's containerd.io of a version such
// as "2.2.1": a unit, a configuration file that people and stoke change, and a
// program that knows its version, reads its configuration and what that
// imports, and refuses what is no TOML. Like the real one it takes the place of
// the distribution's containerd and runc.
func (l *Lab) ContainerdPackage(version string) Package {
	p := Package{
		Name: "containerd.io", Version: version + "-1~debian.12~bookworm",
		Fields: map[string]string{"Conflicts": "containerd, runc", "Replaces": "containerd, runc", "Provides": "containerd, runc"},
		Files: map[string]string{
			"/usr/bin/containerd":         l.standIn("containerd", "v"+version),
			"/usr/bin/runc":               "#!/bin/sh\necho runc version 1.3.4\n",
			"/usr/bin/ctr":                "#!/bin/sh\n[ \"$1\" = version ] || exit 1\nprintf 'Client:\\n  Version:  v" + version + "\\nServer:\\n  Version:  v" + version + "\\n'\n",
			"/etc/containerd/config.toml": "disabled_plugins = [\"cri\"]\n",
			"/lib/systemd/system/containerd.service": strings.Join([]string{
				"[Unit]", "Description=containerd container runtime (stand-in)", "After=network.target", "", "[Service]", "ExecStart=/usr/bin/containerd",
				"Type=notify", "NotifyAccess=all", "Delegate=yes", "KillMode=process", "Restart=always", "RestartSec=5", "", "[Install]", "WantedBy=multi-user.target", "",
			}, "\n"),
		},
		Conffiles: []string{"/etc/containerd/config.toml"},
		Scripts:   service("containerd.service", true),
	}
	return p
}

// CUDAPackage is a stand-in for a CUDA toolkit of a version such as "12.9".
func (l *Lab) CUDAPackage(version string) Package {
	dashed := strings.ReplaceAll(version, ".", "-")
	return Package{Name: "cuda-toolkit-" + dashed, Version: version + ".1-1", Files: map[string]string{
		"/usr/local/cuda-" + version + "/bin/nvcc": "#!/bin/sh\necho 'Cuda compilation tools, release " + version + "'\n",
	}}
}

// DemoPackage is a package of no use, in any version, with a configuration file
// /etc/stoke-demo.conf and a program that prints its version. It cannot be
// installed or upgraded while there is a file /fail-stoke-demo.
func DemoPackage(version string) Package {
	return Package{
		Name: "stoke-demo", Version: version,
		Files:     map[string]string{"/etc/stoke-demo.conf": "version = " + version + "\n", "/usr/bin/stoke-demo": "#!/bin/sh\necho " + version + "\n"},
		Conffiles: []string{"/etc/stoke-demo.conf"},
		Scripts:   map[string]string{"postinst": "#!/bin/sh\n[ ! -e /fail-stoke-demo ] || { echo 'stoke-demo was told to fail' >&2; exit 1; }\n"},
	}
}

// RivalPackage conflicts with stoke-demo.
func RivalPackage() Package {
	return Package{Name: "stoke-rival", Version: "1.0-1", Fields: map[string]string{"Conflicts": "stoke-demo"}, Files: map[string]string{"/usr/share/stoke-rival": "rival\n"}, All: true}
}
