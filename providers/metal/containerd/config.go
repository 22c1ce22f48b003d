package containerd

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Where containerd reads.
const (
	ConfigFile = "/etc/containerd/config.toml"
	// DropIns is where others put what they add to the configuration.
	DropIns    = "/etc/containerd/conf.d"
	optDir     = "/var/lib/containerd/opt" // Debian's place; containerd's own choice would make a folder in /opt
	certsDir   = "/etc/containerd/certs.d"
	proxyFile  = "/etc/systemd/system/containerd.service.d/http-proxy.conf"
	defaultBin = "/opt/cni/bin"
)

// major is the first number of a version such as 1.6.20~ds1 or v2.2.1, 0 if it
// is none.
func major(version string) int {
	first, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	n, err := strconv.Atoi(first)
	if err != nil {
		return 0
	}
	return n
}

// binDirs is how a containerd of version 2 calls the folders of CNI plugins: 2.1
// takes several, and 2.0 passes over a key that it does not know.
func binDirs(version, dir string) string {
	if strings.HasPrefix(strings.TrimPrefix(version, "v"), "2.0.") {
		return fmt.Sprintf("bin_dir = %q", dir)
	}
	return fmt.Sprintf("bin_dirs = [%q]", dir)
}

// configFor is config.toml for a version of containerd: of format 3 from 2.0 on,
// of format 2 before. The runtime that pods get is runc, with control groups by
// systemd, which is what kubeadm's kubelet expects.
func (s Spec) configFor(version string) (string, error) {
	const head = `# Written by stoke, which owns this file and restores it.
# Put additions into files of their own: /etc/containerd/conf.d/NAME.toml
`
	bin := cmp.Or(s.BinDir, defaultBin)
	var b strings.Builder
	b.WriteString(head)
	switch n := major(version); {
	case n >= 2:
		b.WriteString("version = 3\nimports = [\"" + DropIns + "/*.toml\"]\n")
		if s.Sandbox != "" {
			fmt.Fprintf(&b, "\n[plugins.'io.containerd.cri.v1.images'.pinned_images]\n  sandbox = %q\n", s.Sandbox)
		}
		fmt.Fprintf(&b, "\n[plugins.'io.containerd.cri.v1.images'.registry]\n  config_path = %q\n", certsDir)
		fmt.Fprintf(&b, "\n[plugins.'io.containerd.cri.v1.runtime'.cni]\n  %s\n", binDirs(version, bin))
		b.WriteString(runtimes("plugins.'io.containerd.cri.v1.runtime'.containerd"))
		fmt.Fprintf(&b, "\n[plugins.'io.containerd.internal.v1.opt']\n  path = %q\n", optDir)
	case n == 1:
		const cri = `plugins."io.containerd.grpc.v1.cri"`
		b.WriteString("version = 2\nimports = [\"" + DropIns + "/*.toml\"]\n")
		if s.Sandbox != "" {
			fmt.Fprintf(&b, "\n[%s]\n  sandbox_image = %q\n", cri, s.Sandbox)
		}
		fmt.Fprintf(&b, "\n[%s.registry]\n  config_path = %q\n", cri, certsDir)
		fmt.Fprintf(&b, "\n[%s.cni]\n  bin_dir = %q\n", cri, bin)
		b.WriteString(runtimes(cri + ".containerd"))
		fmt.Fprintf(&b, "\n[plugins.\"io.containerd.internal.v1.opt\"]\n  path = %q\n", optDir)
	default:
		return "", fmt.Errorf("containerd %q: stoke knows 1.6 and later", version)
	}
	return b.String(), nil
}

func runtimes(table string) string {
	return fmt.Sprintf(`
[%[1]s]
  default_runtime_name = "runc"

[%[1]s.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[%[1]s.runtimes.runc.options]
  SystemdCgroup = true
`, table)
}

func hostsFile(registry string) string { return certsDir + "/" + registry + "/hosts.toml" }

// Owns tells whether a file of the machine is written for the declaration.
func (s Spec) Owns(name string) bool {
	_, is := s.files()[name]
	return is || s.Config && name == ConfigFile
}

// Text is the mirror's hosts.toml.
func (m Mirror) Text(registry string) string {
	server := m.Server
	switch {
	case server != "" || registry == "_default":
	case registry == "docker.io":
		server = "https://registry-1.docker.io"
	default:
		server = "https://" + registry
	}
	var b strings.Builder
	b.WriteString("# Written by stoke.\n")
	if server != "" {
		fmt.Fprintf(&b, "server = %q\n", server)
	}
	for _, e := range m.Endpoints {
		fmt.Fprintf(&b, "\n[host.%q]\n  capabilities = [\"pull\", \"resolve\"]\n", e.URL)
		if e.CA != "" {
			fmt.Fprintf(&b, "  ca = %q\n", e.CA)
		}
		if e.SkipVerify {
			b.WriteString("  skip_verify = true\n")
		}
		if e.OverridePath {
			b.WriteString("  override_path = true\n")
		}
	}
	return b.String()
}

func (p Proxy) text() string {
	var b strings.Builder
	b.WriteString("# Written by stoke.\n[Service]\n")
	for _, v := range []struct{ name, value string }{{"HTTP_PROXY", p.HTTP}, {"HTTPS_PROXY", p.HTTPS}, {"NO_PROXY", p.No}} {
		if v.value != "" {
			fmt.Fprintf(&b, "Environment=\"%s=%s\"\n", v.name, v.value)
		}
	}
	return b.String()
}
