package facts

import (
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/runtime/pattern"
)

func (a *answer) software(f *Facts) {
	f.Modules = a.words("modules")
	f.Features = a.features()
	running := a.words("processes")
	units := host.ReadUnits(strings.Join(a.sections["units"], "\n"))
	packages := a.packages()
	f.Runtimes = a.runtimes(running, packages)
	f.Node.Kubelet = slices.Contains(running, "kubelet")
	f.Node.Other = otherKubernetes(running)
	f.Clock.Synchronized = a.pairs("time")["NTPSynchronized"] == "yes"
	f.Clock.Service = timeService(units)
	f.Packages.Needrestart = f.Packages.Needrestart || packages["needrestart"] != ""
	f.Packages.Unattended = packages["unattended-upgrades"] != "" && a.unattended()
}

func (a *answer) features() map[string]Feature {
	said := a.pairs("features")
	m := map[string]Feature{}
	for _, name := range FeatureNames() {
		switch is := Feature(said[name]); is {
		case Present, Loadable, Blocked, Missing:
			m[name] = is
		default:
			a.addUnreadable("features", name+"="+said[name])
			m[name] = Missing
		}
	}
	return m
}

func timeService(units map[string]host.Unit) string {
	for _, name := range []string{"chrony", "chronyd", "ntpsec", "ntp", "ntpd", "openntpd", "systemd-timesyncd"} {
		if units[name+".service"].Active == "active" {
			return name
		}
	}
	return ""
}

func otherKubernetes(running []string) string {
	for _, p := range []struct{ process, name string }{
		{"k3s", "k3s"}, {"k3s-server", "k3s"}, {"k3s-agent", "k3s"}, {"rke2", "rke2"}, {"k0s", "k0s"}, {"kubelite", "microk8s"},
	} {
		if slices.Contains(running, p.process) {
			return p.name
		}
	}
	return ""
}

func (a *answer) packages() map[string]string {
	m := map[string]string{}
	for _, row := range a.rows("packages", 3) {
		if strings.HasPrefix(row[0], "ii") || strings.HasPrefix(row[0], "hi") {
			m[a.word("packages", row[1])] = a.word("packages", row[2])
		}
	}
	return m
}

func packagesOf(runtime string) []string {
	switch runtime {
	case "containerd":
		return []string{"containerd.io", "containerd"}
	case "dockerd":
		return []string{"docker-ce", "docker.io", "moby-engine"}
	case "crio":
		return []string{"cri-o"}
	}
	return []string{runtime}
}

var versionInText = pattern.New(`\bv?([0-9]+\.[0-9]+[0-9A-Za-z.+~-]*)`)

func (a *answer) runtimes(running []string, packages map[string]string) []Runtime {
	list := []Runtime{}
	for _, row := range a.rows("runtimes", 2) {
		r := Runtime{Name: a.word("runtimes", row[0]), Running: slices.Contains(running, row[0])}
		// containerd says its source first: github.com/containerd/containerd v1.6.20
		if m := versionInText.FindStringSubmatch(row[1]); m != nil {
			r.Version = clean(m[1])
		}
		for _, p := range packagesOf(r.Name) {
			if packages[p] != "" {
				r.Package = p
				break
			}
		}
		if r.Name != "" {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(x, y Runtime) int { return strings.Compare(x.Name, y.Name) })
	return list
}

// unattended reads apt's setting, which is a number of days or "always".
func (a *answer) unattended() bool {
	for _, line := range a.sections["apt"] {
		name, value, ok := strings.Cut(strings.TrimSuffix(strings.TrimSpace(line), ";"), " ")
		if ok && name == "APT::Periodic::Unattended-Upgrade" {
			v := unquote(value)
			return v != "" && v != "0"
		}
	}
	return false
}
