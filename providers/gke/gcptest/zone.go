package gcptest

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"github.com/stokehq/stoke/providers/gke/catalogue"
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

// machinesIn are the machine types of a zone, sorted by name.
func (c *Cloud) machinesIn(zone string) []catalogue.Machine {
	has := c.options.Zones[zone]
	var out []catalogue.Machine
	for _, m := range slices.Concat(catalogue.Machines(), c.options.Machines) {
		switch {
		case has.MachineTypes != nil && !slices.Contains(has.MachineTypes, m.Name):
		case m.GPU != "" && !slices.Contains(has.Accelerators, m.GPU):
		default:
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b catalogue.Machine) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// machine is a machine type, wherever it is offered.
func (c *Cloud) machine(name string) catalogue.Machine {
	for _, m := range c.options.Machines {
		if m.Name == name {
			return m
		}
	}
	m, _ := catalogue.Find(name)
	return m
}

// machineIn is a machine type, refused where the zone does not have it.
func (c *Cloud) machineIn(zone, name string) (catalogue.Machine, error) {
	for _, m := range c.machinesIn(zone) {
		if m.Name == name {
			return m, nil
		}
	}
	return catalogue.Machine{}, detailed(codes.InvalidArgument, fmt.Sprintf("Machine type with name %q does not exist in zone %q.", name, zone))
}

// acceleratorIn refuses a type of GPU that a zone does not have.
func (c *Cloud) acceleratorIn(zone, name string) error {
	if slices.Contains(c.options.Zones[zone].Accelerators, name) {
		return nil
	}
	return detailed(codes.InvalidArgument, fmt.Sprintf("Accelerator type %q does not exist in zone %s.", name, zone))
}
