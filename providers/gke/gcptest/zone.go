package gcptest

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
)

// Zone is what a zone has.
type Zone struct {
	// Accelerators are the types of GPU in the zone, such as "nvidia-l4".
	Accelerators []string
	// MachineTypes are those of the zone; nil means all whose GPUs it has.
	MachineTypes []string
}

// DefaultZones are three zones of us-central1, one of europe-west1 and two of europe-west4, of which
// us-central1-b and europe-west4-b have fewer GPUs than the rest.
func DefaultZones() map[string]Zone {
	return map[string]Zone{
		"us-central1-a":  {Accelerators: []string{"nvidia-tesla-t4", "nvidia-tesla-v100", "nvidia-l4", "nvidia-tesla-a100", "nvidia-a100-80gb", "nvidia-h100-80gb", "nvidia-h200-141gb"}},
		"us-central1-b":  {Accelerators: []string{"nvidia-tesla-t4", "nvidia-l4", "nvidia-tesla-a100"}},
		"us-central1-c":  {Accelerators: []string{"nvidia-tesla-t4", "nvidia-tesla-v100", "nvidia-l4", "nvidia-tesla-a100", "nvidia-a100-80gb", "nvidia-h100-80gb"}},
		"europe-west1-b": {Accelerators: []string{"nvidia-tesla-t4", "nvidia-l4"}},
		"europe-west4-a": {Accelerators: []string{"nvidia-tesla-t4", "nvidia-tesla-v100", "nvidia-l4", "nvidia-tesla-a100", "nvidia-a100-80gb"}},
		"europe-west4-b": {Accelerators: []string{"nvidia-l4", "nvidia-h100-80gb"}},
	}
}

// location refuses a zone or region that is not there.
func (c *Cloud) location(name string) error {
	for zone := range c.options.Zones {
		if zone == name || regionOf(zone) == name {
			return nil
		}
	}
	return detailed(codes.InvalidArgument, fmt.Sprintf("Location %q does not exist.", name))
}

// zonesOf are the zones of a region, or a zone alone.
func (c *Cloud) zonesOf(location string) []string {
	var zones []string
	for zone := range c.options.Zones {
		if zone == location || regionOf(zone) == location {
			zones = append(zones, zone)
		}
	}
	sort.Strings(zones)
	return zones
}

func (c *Cloud) projectNumber() string { return strconv.FormatInt(c.options.ProjectNumber, 10) }

// inProject refuses a path that does not begin with a project that is there,
// followed by a collection of that name.
func (c *Cloud) inProject(path, collection string) error {
	parts := strings.Split(path, "/")
	if len(parts) < 4 || parts[0] != "projects" || parts[2] != collection {
		return detailed(codes.InvalidArgument, fmt.Sprintf("Invalid resource name %q: want projects/*/%s/*.", path, collection))
	}
	if parts[1] != c.options.Project && parts[1] != c.projectNumber() {
		return detailed(codes.PermissionDenied, fmt.Sprintf("Permission denied on resource project %s.", parts[1]))
	}
	return nil
}

// Machine is a machine type.
type Machine struct {
	Name             string
	CPUs             int
	MemoryMiB        int
	Accelerator      string // "" without GPUs of its own
	AcceleratorCount int
}

// accelerated are the machine types with GPUs of their own.
var accelerated = []Machine{
	{"a2-highgpu-1g", 12, 85 << 10, "nvidia-tesla-a100", 1},
	{"a2-highgpu-2g", 24, 170 << 10, "nvidia-tesla-a100", 2},
	{"a2-highgpu-4g", 48, 340 << 10, "nvidia-tesla-a100", 4},
	{"a2-highgpu-8g", 96, 680 << 10, "nvidia-tesla-a100", 8},
	{"a2-megagpu-16g", 96, 1360 << 10, "nvidia-tesla-a100", 16},
	{"a2-ultragpu-1g", 12, 170 << 10, "nvidia-a100-80gb", 1},
	{"a2-ultragpu-2g", 24, 340 << 10, "nvidia-a100-80gb", 2},
	{"a2-ultragpu-4g", 48, 680 << 10, "nvidia-a100-80gb", 4},
	{"a2-ultragpu-8g", 96, 1360 << 10, "nvidia-a100-80gb", 8},
	{"a3-highgpu-1g", 26, 234 << 10, "nvidia-h100-80gb", 1},
	{"a3-highgpu-2g", 52, 468 << 10, "nvidia-h100-80gb", 2},
	{"a3-highgpu-4g", 104, 936 << 10, "nvidia-h100-80gb", 4},
	{"a3-highgpu-8g", 208, 1872 << 10, "nvidia-h100-80gb", 8},
	{"a3-megagpu-8g", 208, 1872 << 10, "nvidia-h100-mega-80gb", 8},
	{"a3-ultragpu-8g", 224, 2952 << 10, "nvidia-h200-141gb", 8},
	{"g2-standard-4", 4, 16 << 10, "nvidia-l4", 1},
	{"g2-standard-8", 8, 32 << 10, "nvidia-l4", 1},
	{"g2-standard-12", 12, 48 << 10, "nvidia-l4", 1},
	{"g2-standard-16", 16, 64 << 10, "nvidia-l4", 1},
	{"g2-standard-24", 24, 96 << 10, "nvidia-l4", 2},
	{"g2-standard-32", 32, 128 << 10, "nvidia-l4", 1},
	{"g2-standard-48", 48, 192 << 10, "nvidia-l4", 4},
	{"g2-standard-96", 96, 384 << 10, "nvidia-l4", 8},
}

// plain are the series without GPUs of their own: series and class, MiB per CPU.
var plain = []struct {
	prefix string
	perCPU int
	sizes  []int
}{
	{"n1-standard", 3840, []int{1, 2, 4, 8, 16, 32, 64, 96}},
	{"n1-highmem", 6656, []int{2, 4, 8, 16, 32, 64, 96}},
	{"e2-standard", 4096, []int{2, 4, 8, 16, 32}},
	{"e2-highmem", 8192, []int{2, 4, 8, 16}},
	{"n2-standard", 4096, []int{2, 4, 8, 16, 32, 48, 64, 80, 96, 128}},
	{"n2-highmem", 8192, []int{2, 4, 8, 16, 32, 48, 64, 80, 96, 128}},
	{"c2-standard", 4096, []int{4, 8, 16, 30, 60}},
	{"c3-standard", 4096, []int{4, 8, 22, 44, 88, 176}},
	{"n4-standard", 4096, []int{2, 4, 8, 16, 32, 48, 64, 80}},
	{"t2a-standard", 4096, []int{1, 2, 4, 8, 16, 32, 48}}, // Arm
}

// machines are all machine types there are.
var machines = func() map[string]Machine {
	all := map[string]Machine{
		"e2-micro":  {Name: "e2-micro", CPUs: 2, MemoryMiB: 1024},
		"e2-small":  {Name: "e2-small", CPUs: 2, MemoryMiB: 2048},
		"e2-medium": {Name: "e2-medium", CPUs: 2, MemoryMiB: 4096},
	}
	for _, series := range plain {
		for _, cpus := range series.sizes {
			name := fmt.Sprintf("%s-%d", series.prefix, cpus)
			all[name] = Machine{Name: name, CPUs: cpus, MemoryMiB: cpus * series.perCPU}
		}
	}
	for _, m := range accelerated {
		all[m.Name] = m
	}
	return all
}()

// machinesIn are the machine types of a zone, sorted by name.
func (c *Cloud) machinesIn(zone string) []Machine {
	has := c.options.Zones[zone]
	var out []Machine
	for _, m := range machines {
		switch {
		case has.MachineTypes != nil && !slices.Contains(has.MachineTypes, m.Name):
		case m.Accelerator != "" && !slices.Contains(has.Accelerators, m.Accelerator):
		default:
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b Machine) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// machineIn is a machine type, refused where the zone does not have it.
func (c *Cloud) machineIn(zone, name string) (Machine, error) {
	for _, m := range c.machinesIn(zone) {
		if m.Name == name {
			return m, nil
		}
	}
	return Machine{}, detailed(codes.InvalidArgument, fmt.Sprintf("Machine type with name %q does not exist in zone %q.", name, zone))
}

// acceleratorIn refuses a type of GPU that a zone does not have.
func (c *Cloud) acceleratorIn(zone, name string) error {
	if slices.Contains(c.options.Zones[zone].Accelerators, name) {
		return nil
	}
	return detailed(codes.InvalidArgument, fmt.Sprintf("Accelerator type %q does not exist in zone %s.", name, zone))
}
