package facts

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

const nvidia = "10de"

// vendorsOfGPUs by their PCI ids. The display chip of a baseboard controller
// (ASPEED, Matrox) does not count as a GPU.
func vendorOfGPUs(id string) string {
	switch id {
	case nvidia:
		return "nvidia"
	case "1002":
		return "amd"
	case "8086":
		return "intel"
	}
	return ""
}

func (a *answer) gpus(f *Facts) {
	f.GPUs = []GPU{}
	f.NVIDIADriver = a.word("nvidia_version", a.first("nvidia_version"))
	f.NVSwitch = a.first("nvswitch_management") != ""
	names := a.pciNames()
	told := a.nvidiaTold()
	for _, row := range a.rows("pci", 7) {
		class, vendor, device := strings.TrimPrefix(row[1], "0x"), hex4(row[2]), hex4(row[3])
		if vendor == "" || device == "" {
			a.addUnreadable("pci", strings.Join(row, " "))
			continue
		}
		if strings.HasPrefix(class, "0680") { // a bridge of another kind, by NVIDIA: an NVSwitch up to the third generation
			f.NVSwitch = f.NVSwitch || vendor == nvidia && slices.Contains([]string{"1ac2", "1af1", "22a3"}, device) // not those of old chipsets
			continue
		}
		g := GPU{Address: strings.ToLower(a.word("pci", row[0])), ID: vendor + ":" + device, Vendor: vendorOfGPUs(vendor), Driver: a.word("pci", row[4]), NUMA: -1}
		if g.Vendor == "" || g.Address == "" {
			continue
		}
		if n, err := strconv.Atoi(row[5]); err == nil && n >= 0 && n < 1<<12 {
			g.NUMA = n
		}
		t := told[g.Address]
		g.Name = cmp.Or(t.Name, names[g.ID], namesOfGPUs[g.ID])
		g.Memory = cmp.Or(t.Memory, a.count("pci", row[6]))
		g.UUID = t.UUID
		f.GPUs = append(f.GPUs, g)
	}
	slices.SortFunc(f.GPUs, func(x, y GPU) int { return strings.Compare(x.Address, y.Address) })
}

// hex4 is what sysfs writes as 0x10de, without the 0x; "" when it is not that.
func hex4(s string) string {
	s, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(s)), "0x")
	if _, err := strconv.ParseUint(s, 16, 16); !ok || err != nil || len(s) != 4 {
		return ""
	}
	return s
}

// pciNames reads "10de:2330 GH100 [H100 SXM5 80GB]"; what is in brackets is the
// product.
func (a *answer) pciNames() map[string]string {
	m := map[string]string{}
	for _, line := range a.sections["pci_names"] {
		id, name, ok := strings.Cut(line, " ")
		if !ok || len(id) != 9 || id[4] != ':' {
			if line != "" {
				a.addUnreadable("pci_names", line)
			}
			continue
		}
		if _, product, ok := strings.Cut(name, "["); ok {
			name, _, _ = strings.Cut(product, "]")
		}
		m[id] = clean(name)
	}
	return m
}

// nvidiaTold is what the driver says of its GPUs, by their address.
func (a *answer) nvidiaTold() map[string]GPU {
	m := map[string]GPU{}
	var g GPU
	for _, line := range a.sections["nvidia_gpus"] { // procfs; the address comes after the name
		key, value, _ := strings.Cut(line, ":")
		switch value = clean(value); strings.TrimSpace(key) {
		case "Model":
			g = GPU{Name: withoutVendor(value)}
		case "GPU UUID":
			g.UUID = orEmpty(value)
		case "Bus Location":
			m[pciAddress(value)] = g
		}
	}
	for _, line := range a.sections["nvidia_smi"] {
		fields := strings.SplitN(line, ",", 4)
		if len(fields) != 4 { // a message for people, such as "No devices were found"
			continue
		}
		address := pciAddress(strings.TrimSpace(fields[0]))
		g := m[address]
		if mib, err := strconv.ParseInt(strings.TrimSpace(fields[1]), 10, 64); err == nil && mib > 0 && mib < 1<<40 {
			g.Memory = mib << 20
		}
		g.UUID, g.Name = cmp.Or(orEmpty(clean(fields[2])), g.UUID), cmp.Or(withoutVendor(orEmpty(clean(fields[3]))), g.Name)
		m[address] = g
	}
	return m
}

// orEmpty is "" for what nvidia-smi and the driver write for what they do not know.
func orEmpty(s string) string {
	if strings.HasPrefix(s, "[") || strings.Contains(s, "?") || s == "Unknown" {
		return ""
	}
	return s
}

func withoutVendor(name string) string { return strings.TrimPrefix(name, "NVIDIA ") }

// pciAddress is sysfs's way to write what nvidia-smi writes as
// 00000000:17:00.0.
func pciAddress(s string) string {
	s = strings.ToLower(s)
	if domain, rest, ok := strings.Cut(s, ":"); ok && len(domain) == 8 {
		s = domain[4:] + ":" + rest
	}
	return s
}
