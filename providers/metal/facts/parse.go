package facts

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/runtime/pattern"
)

// parse reads what the script printed. Without the kernel, the processors and
// the memory it is no answer; anything else that is odd is listed.
func parse(out []byte) (Facts, *answer, error) {
	a, err := split(out)
	if err != nil {
		return Facts{}, nil, err
	}
	var f Facts
	if err := a.machine(&f); err != nil {
		return Facts{}, nil, err
	}
	a.storage(&f)
	a.network(&f)
	a.gpus(&f)
	f.Kernel = a.kernel(f.Kernel.Running)
	a.software(&f)
	slices.Sort(a.unread)
	f.Unread = append([]string{}, slices.Compact(a.unread)...)
	return f, a, nil
}

func (a *answer) machine(f *Facts) error {
	m := a.pairs("machine")
	word := func(key string) string { return a.word("machine", m[key]) }
	f.Hostname = clean(strings.Join(a.sections["hostname"], "\n"))
	f.MachineID, f.BootID, f.ProductUUID = word("machine_id"), word("boot_id"), strings.ToLower(word("product_uuid"))
	f.OS = a.os()
	f.Kernel.Running, f.Architecture = word("kernel"), architecture(word("arch"))
	f.Init, f.Systemd = clean(m["init"]), systemdVersion(m["systemd"])
	f.Sudo = Sudo{Works: m["uid"] == "0", User: word("user")}
	f.CPUs, f.CPUModel = int(a.count("machine", m["cpus"])), clean(m["cpu_model"])
	f.Vendor, f.Product = clean(m["vendor"]), clean(m["product"])
	f.Virtualization, f.Container = word("virtualization"), word("container")
	f.CgroupVersion = 1
	if m["cgroup"] == "cgroup2fs" {
		f.CgroupVersion = 2
	}
	f.CgroupControllers = append([]string{}, strings.Fields(clean(m["cgroup_controllers"]))...)
	slices.Sort(f.CgroupControllers)
	f.Firmware = Firmware{UEFI: m["uefi"] == "1", SecureBoot: a.secureBoot(m["secure_boot"]), Lockdown: chosen(m["lockdown"])}
	f.Node.Joined, f.Node.ControlPlane = m["joined"] == "1", m["control_plane"] == "1"
	f.Packages = Packages{APT: m["has_apt-get"] == "1" && m["has_dpkg-query"] == "1",
		Needrestart: m["has_needrestart"] == "1", RebootRequired: m["reboot_required"] == "1"}
	if m["resolved"] == "1" {
		f.DNS.File = resolvedFile
	}
	f.Memory = a.memory()
	f.Swap = a.swaps()
	switch {
	case f.Kernel.Running == "" || f.Architecture == "":
		return fmt.Errorf("uname does not print a kernel: %q, %q", clean(m["kernel"]), clean(m["arch"]))
	case f.CPUs <= 0 || f.CPUs > 1<<16:
		return fmt.Errorf("nproc says %q", clean(m["cpus"]))
	case f.Memory <= 0:
		return fmt.Errorf("/proc/meminfo says no MemTotal but %q", clean(a.first("memory")))
	}
	return nil
}

func architecture(machine string) string {
	switch machine {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return machine
}

var systemdLine = pattern.New(`^systemd ([0-9]{2,4})\b`)

func systemdVersion(line string) int {
	if m := systemdLine.FindStringSubmatch(line); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 0
}

// secureBoot reads the firmware's variable: four bytes of attributes, then 1.
func (a *answer) secureBoot(bytes string) bool {
	fields := strings.Fields(bytes)
	if len(fields) == 0 {
		return false
	}
	if len(fields) != 5 {
		a.addUnreadable("machine", "secure_boot="+bytes)
		return false
	}
	return fields[4] == "1"
}

// chosen is the word in brackets: "none [integrity] confidentiality".
func chosen(line string) string {
	_, rest, _ := strings.Cut(line, "[")
	word, _, ok := strings.Cut(rest, "]")
	if !ok {
		return ""
	}
	return clean(word)
}

// os reads os-release, whose values a shell could read.
func (a *answer) os() OS {
	m := map[string]string{}
	for _, line := range a.sections["os"] {
		line = strings.TrimSpace(line)
		if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			m[key] = clean(unquote(value))
		}
	}
	o := OS{ID: strings.ToLower(m["ID"]), Version: m["VERSION_ID"], Codename: m["VERSION_CODENAME"], Name: m["PRETTY_NAME"]}
	o.Supported = slices.Contains(Supported(), o.ID+" "+o.Version)
	return o
}

// Supported are the operating systems that metal resources work on, as ID and
// VERSION_ID of os-release.
func Supported() []string {
	return []string{"debian 12", "debian 13", "ubuntu 22.04", "ubuntu 24.04"}
}

func unquote(s string) string {
	s = strings.TrimSpace(s)
	if len(s) < 2 || s[0] != s[len(s)-1] || (s[0] != '"' && s[0] != '\'') {
		return s
	}
	if s[0] == '\'' {
		return s[1 : len(s)-1]
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\$`, `$`, "\\`", "`").Replace(s[1 : len(s)-1])
}

// memory reads MemTotal, which is what is left of the memory when the kernel
// has taken its part.
func (a *answer) memory() int64 {
	for _, line := range a.sections["memory"] {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "MemTotal:" && fields[2] == "kB" {
			if n := a.count("memory", fields[1]); n < 1<<50 {
				return n * 1024
			}
		}
	}
	return 0
}

func (a *answer) swaps() []Swap {
	list := []Swap{}
	for _, line := range a.sections["swaps"] {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "Filename" {
			continue
		}
		if len(fields) < 5 {
			a.addUnreadable("swaps", line)
			continue
		}
		size := a.count("swaps", fields[2])
		list = append(list, Swap{Name: clean(host.Unescaped(fields[0])), Type: clean(fields[1]), Size: min(size, 1<<50) * 1024})
	}
	slices.SortFunc(list, func(x, y Swap) int { return strings.Compare(x.Name, y.Name) })
	return list
}
