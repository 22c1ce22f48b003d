package nvidia

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/stokehq/stoke/providers/metal/facts"
)

// Architecture is a generation of NVIDIA's GPUs. They are ordered by age.
type Architecture uint8

const (
	Unknown   Architecture = iota // newer than this table, most likely
	Ancient                       // Kepler and older: no driver that is still maintained
	Maxwell                       // 2014
	Pascal                        // 2016
	Volta                         // 2017
	Turing                        // 2018: the first with a GSP, which the open modules need
	Ampere                        // 2020
	Hopper                        // 2022
	Ada                           // 2022
	Blackwell                     // 2024
)

func (a Architecture) String() string {
	names := [...]string{"unknown", "Kepler or older", "Maxwell", "Pascal", "Volta", "Turing", "Ampere", "Hopper", "Ada", "Blackwell"}
	if int(a) < len(names) {
		return names[a]
	}
	return "unknown"
}

// Device is a GPU of NVIDIA's on the PCI bus.
type Device struct {
	facts.GPU
	ID uint16 // PCI device id
}

func devices(gpus []facts.GPU) []Device {
	var all []Device
	for _, g := range gpus {
		if id, ok := strings.CutPrefix(g.ID, "10de:"); ok {
			n, _ := strconv.ParseUint(id, 16, 16) // as package facts has checked
			all = append(all, Device{g, uint16(n)})
		}
	}
	return all
}

// Name is the device's name, such as "H100 SXM5 80GB"; "10de:xxxx" for an unknown one.
func (d Device) Name() string { return cmp.Or(d.GPU.Name, d.GPU.ID) }

// Architecture is the GPU's generation, by the range that its id is in.
func (d Device) Architecture() Architecture {
	for _, r := range ranges {
		if d.ID >= r.from && d.ID <= r.to {
			return r.arch
		}
	}
	return Unknown
}

// graceHopper are the GPUs of Grace Hopper superchips, which only the open
// modules drive, as they alone drive Blackwell
// (Driver Installation Guide, "Kernel Modules").
func (d Device) graceHopper() bool { return d.ID >= 0x2340 && d.ID <= 0x234f }

func (d Device) needsOpen() bool { return d.Architecture() >= Blackwell || d.graceHopper() }

// tooOldForOpen reports whether only the proprietary ones do: those before
// Turing lack the GPU System Processor.
func (d Device) tooOldForOpen() bool {
	a := d.Architecture()
	return a != Unknown && a < Turing
}

// branches are the first branch that drives GPUs of an architecture (NVIDIA's
// release notes: Ampere's A100 in 450, Hopper in 525, Ada in 525, Blackwell's
// B200 in 570), and the last; 0 for no limit. Branch 580 is the last one for
// Maxwell, Pascal and Volta (forums.developer.nvidia.com, "Unix graphics feature
// deprecation schedule").
var branches = map[Architecture]struct{ oldest, newest int }{
	Ancient: {0, 470}, Maxwell: {0, 580}, Pascal: {0, 580}, Volta: {0, 580}, Ampere: {450, 0}, Hopper: {525, 0}, Ada: {525, 0}, Blackwell: {570, 0},
}

// oldest returns the first driver of the architecture, except for later GPUs: B300
// in 580 (MIG User Guide, "Deployment Considerations", which has a table of first
// drivers).
func (d Device) oldest() int {
	if d.ID == 0x3182 {
		return 580
	}
	return branches[d.Architecture()].oldest
}

// fabric reports whether the machine's NVSwitches are reached through a ConnectX
// device, as in HGX B200 and B300, which also need the subnet manager nvlsm
// (Fabric Manager User Guide, "HGX B200 and later").
func (d Device) fabric() bool { return d.ID == 0x2901 || d.ID == 0x3182 }

// ranges has the ids of each generation, from the public list of PCI ids
// (pci-ids.ucw.cz, vendor 10de). Other ids are unknown.
var ranges = []struct {
	from, to uint16
	arch     Architecture
}{
	{0x0020, 0x133f, Ancient},
	{0x1340, 0x13ff, Maxwell},
	{0x1400, 0x14ff, Maxwell},
	{0x15f0, 0x15ff, Pascal},
	{0x1600, 0x16ff, Maxwell},
	{0x1725, 0x172f, Pascal},
	{0x1730, 0x17ff, Maxwell},
	{0x1b00, 0x1d7f, Pascal},
	{0x1d80, 0x1dff, Volta},
	{0x1e00, 0x1fff, Turing},
	{0x2080, 0x20ff, Ampere},
	{0x2180, 0x21ff, Turing},
	{0x2200, 0x22a2, Ampere},
	{0x2300, 0x23ff, Hopper},
	{0x2400, 0x25ff, Ampere},
	{0x2680, 0x28ff, Ada},
	{0x2900, 0x29ff, Blackwell},
	{0x2b80, 0x2fff, Blackwell},
	{0x3180, 0x31ff, Blackwell},
}
