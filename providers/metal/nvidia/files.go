package nvidia

import (
	"strconv"
	"strings"
)

const nouveau = `# Written by stoke: NVIDIA's driver does not load beside nouveau.
blacklist nouveau
options nouveau modeset=0
`

// upgrades keeps unattended-upgrades away from everything that has to change
// together, what the driver's packages depend on included, and kernels where the modules come built.
func (s State) upgrades() string {
	var kernels strings.Builder
	for _, name := range s.kernels() {
		kernels.WriteString("\t\"^" + strings.NewReplacer(".", `\\.`, "+", `\\+`).Replace(name) + "$\";\n")
	}
	return strings.Replace(upgrades, "};\n", kernels.String()+"};\n", 1)
}

const upgrades = `// Written by stoke: driver, toolkit and fabric change together, by plan.
Unattended-Upgrade::Package-Blacklist {
	"^(lib)?nvidia-";
	"^linux-(modules|objects|signatures)-nvidia-";
	"^cuda-drivers";
	"^libcuda1$";
	"^nvlsm$";
	"^xserver-xorg-video-nvidia";
	"^firmware-nvidia-gsp$";
};
`

// Runtime declares the runtime nvidia for a RuntimeClass of that name. The
// default runtime stays runc, whatever a file before this one says, as
// nvidia-ctk's may: so a container which asks for no GPU sees none. Those that
// ask get theirs by CDI.
// Its version is 3, as config.toml's: containerd 2.3 refuses a file in conf.d
// of a later version than that.
const Runtime = `# Written by stoke.
version = 3

[plugins.'io.containerd.cri.v1.runtime']
  enable_cdi = true

[plugins.'io.containerd.cri.v1.runtime'.containerd]
  default_runtime_name = 'runc'

[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia]
  runtime_type = 'io.containerd.runc.v2'
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.nvidia.options]
    BinaryName = '/usr/bin/nvidia-container-runtime'
    SystemdCgroup = true
`

// files are this package's files as want has them; "" for a file that must not
// exist. A foreign blacklist of nouveau counts as ours.
func (s Spec) files(have State) map[string]string {
	f := map[string]string{UpgradesFile: have.upgrades()}
	if _, ours := have.Files[NouveauFile]; s.NoNouveau && (!have.NouveauOff || ours) {
		f[NouveauFile] = nouveau
		if have.NouveauOff { // as it stands
			f[NouveauFile] = have.Files[NouveauFile]
		}
	}
	if s.Toolkit != "" {
		f[RuntimeFile] = Runtime
	}
	return f
}

// cdiFile is where the CDI specification is: from version 1.18 on, the toolkit
// keeps it up to date itself, by nvidia-cdi-refresh.service.
func (s Spec) cdiFile() string {
	if s.refreshes() {
		return newCDIFile
	}
	return oldCDIFile
}

func (s Spec) refreshes() bool {
	f := strings.SplitN(s.Toolkit, ".", 3)
	if len(f) < 2 {
		return false
	}
	major, _ := strconv.Atoi(f[0])
	minor, _ := strconv.Atoi(f[1])
	return major > 1 || major == 1 && minor >= 18
}
