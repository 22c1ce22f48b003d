package gcptest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	compute "google.golang.org/api/compute/v1"

	"github.com/stokehq/stoke/providers/gke/catalogue"
)

func (c *Cloud) getProject(r *request) (any, error) {
	if _, err := c.scope(r); err != nil {
		return nil, err
	}
	return &compute.Project{
		Kind: "compute#project", Id: uint64(c.options.ProjectNumber), Name: c.options.Project, //nolint:gosec // positive
		SelfLink: computeURL + "projects/" + c.options.Project, DefaultNetworkTier: "PREMIUM", XpnProjectStatus: "UNSPECIFIED_XPN_PROJECT_STATUS",
		Quotas:                c.quotas(""),
		DefaultServiceAccount: c.projectNumber() + "-compute@developer.gserviceaccount.com",
	}, nil
}

// regions are the names of all regions, sorted.
func (c *Cloud) regions() []string {
	var names []string
	for zone := range c.options.Zones {
		names = append(names, regionOf(zone))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (c *Cloud) region(name string) *compute.Region {
	self := "projects/" + c.options.Project + "/regions/" + name
	out := &compute.Region{Kind: "compute#region", Id: number(self), Name: name, Status: "UP", SelfLink: computeURL + self}
	for _, zone := range c.zonesOf(name) {
		out.Zones = append(out.Zones, computeURL+"projects/"+c.options.Project+"/zones/"+zone)
	}
	out.Quotas = c.quotas(name)
	return out
}

// quotas are the quotas of a region, or of the project for "".
func (c *Cloud) quotas(region string) []*compute.Quota {
	var all []*compute.Quota
	for _, metric := range slices.Sorted(maps.Keys(c.quota[region])) {
		all = append(all, &compute.Quota{Metric: metric, Limit: c.quota[region][metric], Usage: c.usage(region, metric), ForceSendFields: []string{"Limit", "Usage"}})
	}
	return all
}

func (c *Cloud) getRegion(r *request) (any, error) {
	if _, err := c.scope(r); err != nil {
		return nil, err
	}
	return c.region(r.path["region"]), nil
}

func (c *Cloud) listRegions(r *request) (any, error) {
	if _, err := c.scope(r); err != nil {
		return nil, err
	}
	var items []*compute.Region
	for _, name := range c.regions() {
		items = append(items, c.region(name))
	}
	return list(r, "compute#regionList", items, func(one *compute.Region) map[string]string { return map[string]string{"name": one.Name} })
}

func (c *Cloud) zone(name string) *compute.Zone {
	self := "projects/" + c.options.Project + "/zones/" + name
	return &compute.Zone{Kind: "compute#zone", Id: number(self), Name: name, Status: "UP", SelfLink: computeURL + self, Region: computeURL + "projects/" + c.options.Project + "/regions/" + regionOf(name)}
}

func (c *Cloud) getZone(r *request) (any, error) {
	if _, err := c.scope(r); err != nil {
		return nil, err
	}
	return c.zone(r.path["zone"]), nil
}

// zoneNames are all zones, sorted.
func (c *Cloud) zoneNames() []string {
	var names []string
	for name := range c.options.Zones {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func (c *Cloud) listZones(r *request) (any, error) {
	if _, err := c.scope(r); err != nil {
		return nil, err
	}
	var items []*compute.Zone
	for _, name := range c.zoneNames() {
		items = append(items, c.zone(name))
	}
	return list(r, "compute#zoneList", items, func(one *compute.Zone) map[string]string {
		return map[string]string{"name": one.Name, "region": one.Region, "status": one.Status}
	})
}

func (c *Cloud) acceleratorTypes(zone string) []*compute.AcceleratorType {
	scope := "projects/" + c.options.Project + "/zones/" + zone
	var out []*compute.AcceleratorType
	for _, name := range c.options.Zones[zone].Accelerators {
		most := int64(8)
		if name == "nvidia-tesla-a100" {
			most = 16
		}
		out = append(out, &compute.AcceleratorType{
			Kind: "compute#acceleratorType", Id: number(scope, name), Name: name, Description: name, MaximumCardsPerInstance: most,
			SelfLink: computeURL + scope + "/acceleratorTypes/" + name, Zone: computeURL + scope,
		})
	}
	return out
}

func (c *Cloud) listAcceleratorTypes(r *request) (any, error) {
	if _, err := c.scope(r); err != nil {
		return nil, err
	}
	return list(r, "compute#acceleratorTypeList", c.acceleratorTypes(r.path["zone"]), func(one *compute.AcceleratorType) map[string]string {
		return map[string]string{"name": one.Name, "zone": one.Zone}
	})
}

func (c *Cloud) getAcceleratorType(r *request) (any, error) {
	scope, err := c.scope(r)
	if err != nil {
		return nil, err
	}
	for _, one := range c.acceleratorTypes(r.path["zone"]) {
		if one.Name == r.path["acceleratorType"] {
			return one, nil
		}
	}
	return nil, computeNotFound(scope + "/acceleratorTypes/" + r.path["acceleratorType"])
}

// aggregate answers lists of all zones; those without items say so.
func aggregate[T any](c *Cloud, r *request, kind, name string, items func(zone string) []T) (any, error) {
	if _, err := c.scope(r); err != nil {
		return nil, err
	}
	if text := r.Query.Get("filter"); text != "" {
		return nil, computeInvalid("Invalid value for field 'filter': '%s'. The double filters no aggregated lists.", text)
	}
	scopes := make(map[string]any)
	for _, zone := range c.zoneNames() {
		scope := map[string]any{name: items(zone)}
		if len(items(zone)) == 0 {
			scope = map[string]any{"warning": map[string]string{"code": "NO_RESULTS_ON_PAGE", "message": "There are no results for scope 'zones/" + zone + "' on this page."}}
		}
		scopes["zones/"+zone] = scope
	}
	return map[string]any{"kind": kind, "id": "projects/" + c.options.Project + "/aggregated/" + name, "items": scopes}, nil
}

func (c *Cloud) aggregateAcceleratorTypes(r *request) (any, error) {
	return aggregate(c, r, "compute#acceleratorTypeAggregatedList", "acceleratorTypes", c.acceleratorTypes)
}

func (c *Cloud) machineType(zone string, m catalogue.Machine) *compute.MachineType {
	scope := "projects/" + c.options.Project + "/zones/" + zone
	out := &compute.MachineType{
		Kind: "compute#machineType", Id: number(scope, m.Name), Name: m.Name, GuestCpus: m.CPUs, MemoryMb: m.MemoryMiB,
		Zone: zone, SelfLink: computeURL + scope + "/machineTypes/" + m.Name, Description: fmt.Sprintf("%d vCPUs, %d MiB RAM", m.CPUs, m.MemoryMiB),
	}
	if m.GPU != "" {
		out.Accelerators = []*compute.MachineTypeAccelerators{{GuestAcceleratorType: m.GPU, GuestAcceleratorCount: m.GPUs}}
	}
	return out
}

func (c *Cloud) getMachineType(r *request) (any, error) {
	scope, err := c.scope(r)
	if err != nil {
		return nil, err
	}
	m, err := c.machineIn(r.path["zone"], r.path["machineType"])
	if err != nil {
		return nil, computeNotFound(scope + "/machineTypes/" + r.path["machineType"])
	}
	return c.machineType(r.path["zone"], m), nil
}

func (c *Cloud) listMachineTypes(r *request) (any, error) {
	if _, err := c.scope(r); err != nil {
		return nil, err
	}
	var items []*compute.MachineType
	for _, m := range c.machinesIn(r.path["zone"]) {
		items = append(items, c.machineType(r.path["zone"], m))
	}
	return list(r, "compute#machineTypeList", items, func(one *compute.MachineType) map[string]string { return map[string]string{"name": one.Name} })
}

// groupManagers are the instance groups of all pools in a zone. Their target is
// what a pool wants; what it lacks is being created.
func (c *Cloud) groupManagers(zone string) []*compute.InstanceGroupManager {
	scope := computeURL + "projects/" + c.options.Project + "/zones/" + zone
	var out []*compute.InstanceGroupManager
	for _, k := range sortedValues(c.clusters) {
		for _, p := range k.pools {
			if !slices.Contains(p.proto.GetLocations(), zone) {
				continue
			}
			name, lacking := p.instanceBase(zone)+"-grp", p.want[zone]-p.nodes[zone]
			out = append(out, &compute.InstanceGroupManager{
				Kind: "compute#instanceGroupManager", Id: number(p.path, zone), Name: name, BaseInstanceName: p.instanceBase(zone), Zone: scope,
				SelfLink: scope + "/instanceGroupManagers/" + name, InstanceGroup: scope + "/instanceGroups/" + name,
				TargetSize:      int64(p.want[zone]),
				CurrentActions:  &compute.InstanceGroupManagerActionsSummary{Creating: int64(max(lacking, 0)), None: int64(p.nodes[zone]), ForceSendFields: []string{"Creating", "None"}},
				Status:          &compute.InstanceGroupManagerStatus{IsStable: lacking <= 0, ForceSendFields: []string{"IsStable"}},
				ForceSendFields: []string{"TargetSize"},
			})
		}
	}
	return out
}

func groupFields(one *compute.InstanceGroupManager) map[string]string {
	return map[string]string{"name": one.Name, "baseInstanceName": one.BaseInstanceName, "zone": one.Zone}
}

func (c *Cloud) getGroupManager(r *request) (any, error) {
	scope, err := c.scope(r)
	if err != nil {
		return nil, err
	}
	for _, one := range c.groupManagers(r.path["zone"]) {
		if one.Name == r.path["instanceGroupManager"] {
			return one, nil
		}
	}
	return nil, computeNotFound(scope + "/instanceGroupManagers/" + r.path["instanceGroupManager"])
}

func (c *Cloud) listGroupManagers(r *request) (any, error) {
	if _, err := c.scope(r); err != nil {
		return nil, err
	}
	return list(r, "compute#instanceGroupManagerList", c.groupManagers(r.path["zone"]), groupFields)
}

func (c *Cloud) aggregateGroupManagers(r *request) (any, error) {
	return aggregate(c, r, "compute#instanceGroupManagerAggregatedList", "instanceGroupManagers", c.groupManagers)
}

func (c *Cloud) listGroups(r *request) (any, error) {
	if _, err := c.scope(r); err != nil {
		return nil, err
	}
	var items []*compute.InstanceGroup
	for _, m := range c.groupManagers(r.path["zone"]) {
		items = append(items, &compute.InstanceGroup{
			Kind: "compute#instanceGroup", Id: m.Id, Name: m.Name, Zone: m.Zone, SelfLink: m.InstanceGroup,
			Size: m.CurrentActions.None, ForceSendFields: []string{"Size"},
		})
	}
	return list(r, "compute#instanceGroupList", items, func(one *compute.InstanceGroup) map[string]string {
		return map[string]string{"name": one.Name, "zone": strings.TrimPrefix(one.Zone, computeURL)}
	})
}
