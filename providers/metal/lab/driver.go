//go:build e2e && linux

package lab

import (
	"fmt"
	"strings"
)

// The packages here are stand-ins for NVIDIA's: they have the names, relations,
// units and scripts that matter, and "building" a module copies it.

// dkmsPackage is Debian's dkms with its hooks for kernels that come later.
func (l *Lab) dkmsPackage() Package {
	// A kernel is installed although a module cannot be built for it.
	const hook = "#!/bin/sh\ndkms autoinstall -k \"$1\" || :\n"
	return Package{Name: "dkms", Version: "3.0.10-8+stoke1", All: true, Files: map[string]string{
		"/usr/sbin/dkms":                     l.standIn("dkms", ""),
		"/etc/kernel/postinst.d/dkms":        hook,
		"/etc/kernel/header_postinst.d/dkms": hook,
	}}
}

// modules are the files of the driver's modules.
func modules(version, license, signer string) map[string]string {
	files := map[string]string{}
	for _, name := range []string{"nvidia", "nvidia-uvm", "nvidia-modeset", "nvidia-drm"} {
		files[name+".ko"] = Module(strings.ReplaceAll(name, "-", "_"), version, license, signer)
	}
	return files
}

// source is a package of modules that dkms builds, and the file that says so.
func source(name, version, revision, license, conflicts string) Package {
	dir := "/usr/src/nvidia-" + version + "/"
	files := map[string]string{dir + "dkms.conf": "PACKAGE_NAME=nvidia\nPACKAGE_VERSION=" + version + "\n"}
	for file, content := range modules(version, license, "DKMS module signing key") {
		files[dir+file] = content
	}
	return Package{
		Name: name, Version: version + revision, Files: files,
		Fields: map[string]string{"Depends": "dkms", "Conflicts": conflicts, "Replaces": conflicts, "Provides": "nvidia-kernel-dkms-any"},
		Scripts: map[string]string{
			"postinst": "#!/bin/sh\nset -e\n[ \"$1\" != configure ] || /usr/sbin/dkms all\n",
			"prerm":    "#!/bin/sh\nset -e\n/usr/sbin/dkms drop nvidia " + version + "\n",
		},
	}
}

// DriverPackages are a driver of NVIDIA's repository, for Debian and Ubuntu, of
// a version such as "580.126.20": open and proprietary modules, the user space,
// persistence daemon and fabric manager, and the packages that pin apt to the
// version and to its branch.
func (l *Lab) DriverPackages(version string) []Package {
	const revision = "-1"
	v := version + revision
	branch, _, _ := strings.Cut(version, ".")
	is := func(names ...string) string {
		for i, n := range names {
			names[i] = n + " (= " + v + ")"
		}
		return strings.Join(names, ", ")
	}
	pin := func(to, pattern string) Package {
		return Package{Name: "nvidia-driver-pinning-" + to, Version: v, All: true, Files: map[string]string{
			"/etc/apt/preferences.d/nvidia-driver-pinning-" + to: "Package: *nvidia* libcuda1 cuda-drivers*\nPin: version " + pattern + "\nPin-Priority: 1000\n\nPackage: *nvidia-container* nvidia-driver-pinning-*\nPin: version *\nPin-Priority: 500\n",
		}, Fields: map[string]string{"Provides": "nvidia-driver-pinning", "Conflicts": "nvidia-driver-pinning"}}
	}
	packages := []Package{
		l.dkmsPackage(),
		source("nvidia-kernel-open-dkms", version, revision, "Dual MIT/GPL", "nvidia-kernel-dkms"),
		source("nvidia-kernel-dkms", version, revision, "NVIDIA", "nvidia-kernel-open-dkms"),
		{Name: "libcuda1", Version: v, Files: map[string]string{"/usr/lib/x86_64-linux-gnu/libcuda.so." + version: "stand-in\n", "/usr/lib/x86_64-linux-gnu/libcuda.so.1": "-> libcuda.so." + version}},
		{Name: "nvidia-smi", Version: v, Fields: map[string]string{"Depends": is("libcuda1")}, Files: map[string]string{"/usr/bin/nvidia-smi": l.standIn("nvidia-smi", version)}},
		{Name: "nvidia-open", Version: v, Fields: map[string]string{"Depends": is("nvidia-kernel-open-dkms", "nvidia-smi", "libcuda1") + ", nvidia-persistenced"}},
		{Name: "cuda-drivers", Version: v, Fields: map[string]string{"Depends": is("nvidia-kernel-dkms", "nvidia-smi", "libcuda1") + ", nvidia-persistenced"}},
		l.daemon("nvidia-persistenced", "nvidia-persistenced", version, revision, true),
		l.daemon("nvidia-fabricmanager", "nv-fabricmanager", version, revision, false),
		{Name: "nvlsm", Version: "2025.10.11-1"},
		pin(branch, branch+".*"),
	}
	if version != branch {
		packages = append(packages, pin(version, version+"-*"))
	}
	return packages
}

// daemon is a package of one of the driver's services.
func (l *Lab) daemon(name, program, version, revision string, start bool) Package {
	unit := name + ".service"
	p := Package{Name: name, Version: version + revision, Files: map[string]string{
		"/usr/bin/" + program:         l.standIn("nvidia-daemon", version),
		"/lib/systemd/system/" + unit: fmt.Sprintf("[Unit]\nDescription=%s (stand-in)\n\n[Service]\nExecStart=/usr/bin/%s\n\n[Install]\nWantedBy=multi-user.target\n", name, program),
	}, Scripts: service(unit, start)}
	return p
}

// service is what debhelper puts into the scripts of a package with a unit.
func service(unit string, start bool) map[string]string {
	s := map[string]string{
		"prerm":  "#!/bin/sh\nset -e\nif [ -d /run/systemd/system ] && [ \"$1\" = remove ]; then deb-systemd-invoke stop " + unit + " >/dev/null || :; fi\n",
		"postrm": "#!/bin/sh\nset -e\nif [ \"$1\" = remove ] && [ -d /run/systemd/system ]; then systemctl --system daemon-reload >/dev/null || :; fi\nif [ \"$1\" = purge ]; then deb-systemd-helper purge " + unit + " >/dev/null || :; fi\n",
	}
	enable := "#!/bin/sh\nset -e\nif [ \"$1\" = configure ]; then\n"
	if start {
		enable += "  if deb-systemd-helper --quiet was-enabled " + unit + "; then deb-systemd-helper enable " + unit + " >/dev/null || :; else deb-systemd-helper update-state " + unit + " >/dev/null || :; fi\n"
	}
	enable += "  if [ -d /run/systemd/system ]; then\n    systemctl --system daemon-reload >/dev/null || :\n"
	if start {
		enable += "    deb-systemd-invoke $([ -n \"$2\" ] && echo restart || echo start) " + unit + " >/dev/null || :\n"
	}
	s["postinst"] = enable + "  fi\nfi\n"
	return s
}

// UbuntuDriverPackages are a driver of Ubuntu's archive, of a version such as
// "580.126.20" and a series such as "580-server": signed modules built for
// kernels, open and proprietary, and the user space without a display.
func (l *Lab) UbuntuDriverPackages(series, version string, kernels ...string) []Package {
	const revision = "-0ubuntu0.24.04.1"
	v := version + revision
	branch, _, _ := strings.Cut(version, ".")
	packages := []Package{
		{Name: "libnvidia-compute-" + series, Version: v, Files: map[string]string{"/usr/lib/x86_64-linux-gnu/libcuda.so." + version: "stand-in\n"}},
		{Name: "nvidia-utils-" + series, Version: v, Fields: map[string]string{"Depends": "libnvidia-compute-" + series + " (= " + v + ")", "Provides": "nvidia-smi"},
			Files: map[string]string{"/usr/bin/nvidia-smi": l.standIn("nvidia-smi", version)}},
		l.daemon("nvidia-fabricmanager-"+branch, "nv-fabricmanager", version, revision, false),
	}
	for suffix, license := range map[string]string{"": "NVIDIA", "-open": "Dual MIT/GPL"} {
		packages = append(packages, Package{Name: "nvidia-headless-no-dkms-" + series + suffix, Version: v, Fields: map[string]string{"Depends": "libnvidia-compute-" + series + " (= " + v + ")"}})
		for _, kernel := range kernels {
			files := map[string]string{}
			for file, content := range modules(version, license, "Canonical Ltd. Kernel Module Signing") {
				files["/lib/modules/"+kernel+"/kernel/nvidia-"+branch+"/"+file] = content
			}
			flavour := kernel[strings.LastIndexByte(kernel, '-')+1:]
			name := "linux-modules-nvidia-" + series + suffix + "-"
			depmod := map[string]string{"postinst": "#!/bin/sh\nset -e\n[ \"$1\" != configure ] || /usr/sbin/depmod " + kernel + "\n", "postrm": "#!/bin/sh\nset -e\n[ ! -d /lib/modules/" + kernel + " ] || /usr/sbin/depmod " + kernel + "\n"}
			number := strings.ReplaceAll(strings.TrimSuffix(kernel, "-"+flavour), "-", ".") + "-1"
			packages = append(packages,
				Package{Name: name + kernel, Version: number, Files: files, Scripts: depmod, Fields: map[string]string{"Depends": "linux-image-" + kernel}},
				Package{Name: name + flavour, Version: number, Fields: map[string]string{"Depends": name + kernel}})
		}
	}
	return packages
}

// ToolkitPackages are the four packages of NVIDIA's container toolkit, with the
// units that write the CDI specification from version 1.18 on.
func (l *Lab) ToolkitPackages(version string) []Package {
	v := version + "-1"
	const unit = "nvidia-cdi-refresh"
	base := Package{Name: "nvidia-container-toolkit-base", Version: v, Files: map[string]string{
		"/usr/bin/nvidia-ctk":                          l.standIn("nvidia-ctk", version),
		"/usr/lib/systemd/system/" + unit + ".service": "[Unit]\nDescription=Refresh NVIDIA CDI specification file\n\n[Service]\nType=oneshot\nExecStart=/usr/bin/nvidia-ctk cdi generate --output=/var/run/cdi/nvidia.yaml\n\n[Install]\nWantedBy=multi-user.target\n",
		"/usr/lib/systemd/system/" + unit + ".path":    "[Unit]\nDescription=Trigger CDI refresh on NVIDIA driver changes\n\n[Path]\nPathChanged=/lib/modules/modules.dep\n\n[Install]\nWantedBy=multi-user.target\n",
	}, Scripts: service(unit+".path", true)}
	return []Package{
		{Name: "libnvidia-container1", Version: v},
		{Name: "libnvidia-container-tools", Version: v, Fields: map[string]string{"Depends": "libnvidia-container1 (>= " + v + ")"}},
		base,
		{Name: "nvidia-container-toolkit", Version: v, Fields: map[string]string{"Depends": "nvidia-container-toolkit-base (= " + v + "), libnvidia-container-tools (>= " + v + ")"}},
	}
}
