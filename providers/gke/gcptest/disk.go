package gcptest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	compute "google.golang.org/api/compute/v1"
)

// disk finds the disk of a call; operations on it come nearer to their end.
func (c *Cloud) disk(r *request) (string, *compute.Disk, error) {
	scope, err := c.scope(r)
	if err != nil {
		return "", nil, err
	}
	path := scope + "/disks/" + r.path["disk"] + r.path["resource"]
	if d := c.disks[path]; d != nil {
		return path, d, nil
	}
	return path, nil, computeNotFound(path)
}

func (c *Cloud) getDisk(r *request) (any, error) {
	path, _, err := c.disk(r)
	if err != nil {
		return nil, err
	}
	for _, o := range c.runningOn("compute", path) {
		c.look(o)
	}
	_, d, err := c.disk(r)
	return d, err
}

func (c *Cloud) listDisks(r *request) (any, error) {
	scope, err := c.scope(r)
	if err != nil {
		return nil, err
	}
	var items []*compute.Disk
	for _, d := range sortedValues(c.disks) {
		if strings.HasPrefix(d.SelfLink, computeURL+scope+"/") {
			items = append(items, d)
		}
	}
	return list(r, "compute#diskList", items, func(d *compute.Disk) map[string]string {
		return labelFields(map[string]string{"name": d.Name, "status": d.Status, "type": d.Type}, d.Labels)
	})
}

func (c *Cloud) insertDisk(r *request) (any, error) {
	return c.once(r, func() (*operation, error) {
		scope, err := c.scope(r)
		if err != nil {
			return nil, err
		}
		d := &compute.Disk{}
		if err := r.decode(d); err != nil {
			return nil, err
		}
		path := scope + "/disks/" + d.Name
		if err := checkComputeName(d.Name); err != nil {
			return nil, err
		}
		if c.disks[path] != nil {
			return nil, computeExists(path)
		}
		if err := c.fillDisk(d, scope, r.path["zone"]); err != nil {
			return nil, err
		}
		c.disks[path] = d
		delete(c.tuned, path)
		return c.begin("compute", scope, "insert", path, func(half error) error {
			if half != nil {
				delete(c.disks, path)
				return half
			}
			d.Status = "READY"
			return nil
		}), nil
	})
}

// fillDisk checks a declared disk and adds what the server adds.
func (c *Cloud) fillDisk(d *compute.Disk, scope, zone string) error {
	kind := last(d.Type)
	standard(&kind, "pd-standard")
	limits, ok := diskKinds[kind]
	if !ok || (zone == "" && limits.regional == 0) || (zone != "" && !limits.zonal) {
		return computeNotFound(scope + "/diskTypes/" + kind)
	}
	if err := checkComputeLabels("resource.labels", d.Labels); err != nil {
		return err
	}
	if at := strings.Index(d.Type, "/diskTypes/"); at >= 0 && !strings.HasSuffix(strings.TrimPrefix(d.Type[:at], computeURL), scope[strings.Index(scope, "/")+1+len(c.options.Project)+1:]) {
		return computeInvalid("Invalid value for field 'resource.type': '%s'. It is not in %s.", d.Type, scope)
	}
	if err := c.fillSource(d); err != nil {
		return err
	}
	if zone == "" {
		limits.least = limits.regional
	}
	standard(&d.SizeGb, max(limits.standard, limits.least))
	if d.SizeGb < limits.least || d.SizeGb > limits.most {
		return computeInvalid("Invalid value for field 'resource.sizeGb': '%d'. Disk size: '%d' GB must be between '%d' and '%d' GB.", d.SizeGb, d.SizeGb, limits.least, limits.most)
	}
	if err := limits.fillSpeed(kind, d); err != nil {
		return err
	}
	if d.AccessMode != "" && !slices.Contains(limits.access, d.AccessMode) {
		return computeInvalid("Invalid value for field 'resource.accessMode': '%s'. Access mode is not supported for disk type %s.", d.AccessMode, kind)
	}
	if err := c.mayStore(regionOf(last(scope)), kind, d.SizeGb); err != nil {
		return err
	}
	if limits.access != nil {
		standard(&d.AccessMode, single)
	}
	if err := checkReplicas(d, last(scope), zone); err != nil {
		return err
	}
	d.Kind, d.Id, d.Status = "compute#disk", number(scope, d.Name, fmt.Sprint(c.begun)), "CREATING"
	d.CreationTimestamp, d.SelfLink = c.now(), computeURL+scope+"/disks/"+d.Name
	d.Type = computeURL + scope + "/diskTypes/" + kind
	d.LabelFingerprint = fingerprint(d.Labels)
	standard(&d.PhysicalBlockSizeBytes, 4096)
	if zone != "" {
		d.Zone = computeURL + scope
	} else {
		d.Region = computeURL + scope
	}
	return nil
}

// fillSource looks at the snapshot that a disk begins as, which has to be finished.
func (c *Cloud) fillSource(d *compute.Disk) error {
	if d.SourceSnapshot == "" {
		return nil
	}
	path := "projects/" + c.options.Project + "/global/snapshots/" + last(d.SourceSnapshot)
	source := c.snapshots[path]
	switch {
	case source == nil:
		return computeNotFound(path)
	case source.Status != "READY":
		return notReady(path)
	}
	standard(&d.SizeGb, source.DiskSizeGb)
	if d.SizeGb < source.DiskSizeGb {
		return computeInvalid("Invalid value for field 'resource.sizeGb': '%d'. Requested disk size cannot be smaller than the snapshot size (%d GB)", d.SizeGb, source.DiskSizeGb)
	}
	d.SourceSnapshot, d.SourceSnapshotId = source.SelfLink, fmt.Sprint(source.Id)
	return nil
}

func checkReplicas(d *compute.Disk, region, zone string) error {
	switch {
	case zone != "" && len(d.ReplicaZones) > 0:
		return computeInvalid("Invalid value for field 'resource.replicaZones': a zonal disk has none.")
	case zone == "" && len(d.ReplicaZones) != 2:
		return computeInvalid("Invalid value for field 'resource.replicaZones': a regional disk needs exactly two zones.")
	}
	for _, replica := range d.ReplicaZones {
		if regionOf(last(replica)) != region {
			return computeInvalid("Invalid value for field 'resource.replicaZones': '%s' is not in region %s.", replica, region)
		}
	}
	if zone == "" && last(d.ReplicaZones[0]) == last(d.ReplicaZones[1]) {
		return computeInvalid("Invalid value for field 'resource.replicaZones': a regional disk needs two different zones.")
	}
	return nil
}

// mayStore refuses a disk that goes beyond a quota of its region.
func (c *Cloud) mayStore(region, kind string, more int64) error {
	metric := "SSD_TOTAL_GB"
	if kind == "pd-standard" {
		metric = "DISKS_TOTAL_GB"
	}
	limit, limited := c.quota[region][metric]
	if !limited {
		return nil
	}
	used := int64(0)
	for _, d := range c.disks {
		if regionOf(strings.Split(strings.TrimPrefix(d.SelfLink, computeURL), "/")[3]) == region && (last(d.Type) == "pd-standard") == (kind == "pd-standard") {
			used += d.SizeGb
		}
	}
	if float64(used+more) <= limit {
		return nil
	}
	return &restError{http.StatusForbidden, "quotaExceeded", fmt.Sprintf("Quota '%s' exceeded.  Limit: %.1f in region %s.", metric, limit, region)}
}

// changeDisk begins an operation that changes a disk at its end.
func (c *Cloud) changeDisk(kind, path string, change func(*compute.Disk)) *operation {
	return c.begin("compute", path[:strings.Index(path, "/disks/")], kind, path, func(half error) error {
		if d := c.disks[path]; d != nil && half == nil {
			changed := *d
			change(&changed)
			c.disks[path] = &changed
			if hyper(d) && sizeAndSpeed(d) != sizeAndSpeed(&changed) {
				c.tuned[path] = c.time()
			}
		}
		return half
	})
}

func hyper(d *compute.Disk) bool { return strings.HasPrefix(last(d.Type), "hyperdisk-") }

func sizeAndSpeed(d *compute.Disk) [3]int64 {
	return [3]int64{d.SizeGb, d.ProvisionedIops, d.ProvisionedThroughput}
}

// mayTune rejects a change of size and speed of a Hyperdisk by their planned
// combination, and within four hours of the last change: see
// provisioned_throughput of google_compute_disk in terraform-provider-google. How
// the real one words that is not known.
func (c *Cloud) mayTune(path string, is, wanted *compute.Disk) error {
	if sizeAndSpeed(is) == sizeAndSpeed(wanted) {
		return nil
	}
	if err := diskKinds[last(is.Type)].fillSpeed(last(is.Type), wanted); err != nil {
		return err
	}
	if last, tuned := c.tuned[path]; tuned && c.time().Sub(last) < 4*time.Hour {
		return computeInvalid("Size and performance of disk '%s' can be changed once in 4 hours.", path)
	}
	return nil
}

func (c *Cloud) resizeDisk(r *request) (any, error) {
	return c.once(r, func() (*operation, error) {
		path, d, err := c.disk(r)
		if err != nil {
			return nil, err
		}
		wanted := &compute.DisksResizeRequest{}
		if err := r.decode(wanted); err != nil {
			return nil, err
		}
		if err := c.busy(path); err != nil {
			return nil, err
		}
		if wanted.SizeGb == d.SizeGb {
			return nil, smaller(wanted.SizeGb, d.SizeGb)
		}
		if err := c.mayGrow(path, d, wanted.SizeGb); err != nil {
			return nil, err
		}
		grown := *d
		grown.SizeGb = wanted.SizeGb
		if err := c.mayTune(path, d, &grown); err != nil {
			return nil, err
		}
		return c.changeDisk("resizeDisk", path, func(d *compute.Disk) { d.SizeGb = wanted.SizeGb }), nil
	})
}

func smaller(wanted, is int64) error {
	return computeInvalid("Invalid value for field 'sizeGb': '%d'. New disk size '%d' GiB must be larger than existing size '%d' GiB.", wanted, wanted, is)
}

// mayGrow refuses a size that a disk cannot have after the one it has.
func (c *Cloud) mayGrow(path string, d *compute.Disk, size int64) error {
	switch most := diskKinds[last(d.Type)].most; {
	case size < d.SizeGb:
		return smaller(size, d.SizeGb)
	case size > most:
		return computeInvalid("Invalid value for field 'sizeGb': '%d'. Disk size cannot exceed '%d' GB.", size, most)
	}
	return c.mayStore(regionOf(last(path[:strings.Index(path, "/disks/")])), last(d.Type), size-d.SizeGb)
}

// updateDisk changes the fields that the mask, or paths, name: size of a Hyperdisk,
// speed and access.
func (c *Cloud) updateDisk(r *request) (any, error) {
	return c.once(r, func() (*operation, error) {
		path, d, err := c.disk(r)
		if err != nil {
			return nil, err
		}
		wanted := &compute.Disk{}
		if err := r.decode(wanted); err != nil {
			return nil, err
		}
		fields := r.Query["paths"]
		if mask := r.Query.Get("updateMask"); mask != "" {
			fields = append(fields, strings.Split(mask, ",")...)
		}
		if len(fields) == 0 {
			return nil, computeInvalid("Invalid value for field 'updateMask': ''. At least one field must be updated.")
		}
		if err := c.busy(path); err != nil {
			return nil, err
		}
		changed := *d
		for _, field := range fields {
			if err := changeField(&changed, wanted, field); err != nil {
				return nil, err
			}
		}
		if err := c.mayGrow(path, d, changed.SizeGb); err != nil {
			return nil, err
		}
		if err := c.mayTune(path, d, &changed); err != nil {
			return nil, err
		}
		return c.changeDisk("update", path, func(d *compute.Disk) {
			d.SizeGb, d.ProvisionedIops, d.ProvisionedThroughput, d.AccessMode = changed.SizeGb, changed.ProvisionedIops, changed.ProvisionedThroughput, changed.AccessMode
		}), nil
	})
}

// changeField changes a field of a disk as far as its type allows. The IOPS of
// pd-extreme are set for good: updates are for Hyperdisk alone, says provisioned_iops
// of google_compute_disk in terraform-provider-google; for its size,
// kubernetes-sigs/gcp-compute-persistent-disk-csi-driver#1899.
func changeField(d, wanted *compute.Disk, field string) error {
	kind := diskKinds[last(d.Type)]
	switch field {
	case "provisionedIops", "provisioned_iops":
		if kind.fixed {
			return computeInvalid("Invalid value for field 'resource.provisionedIops': '%d'. Provisioned IOPS of disk type %s cannot be changed.", wanted.ProvisionedIops, last(d.Type))
		}
		d.ProvisionedIops = wanted.ProvisionedIops
	case "provisionedThroughput", "provisioned_throughput":
		d.ProvisionedThroughput = wanted.ProvisionedThroughput
	case "sizeGb", "size_gb":
		if !hyper(d) {
			return computeInvalid("Invalid value for field 'paths': '%s'. Updating it is not supported for disk type %s.", field, last(d.Type))
		}
		d.SizeGb = wanted.SizeGb
	case "accessMode", "access_mode":
		if !slices.Contains(kind.access, wanted.AccessMode) {
			return computeInvalid("Invalid value for field 'resource.accessMode': '%s'. Access mode is not supported for disk type %s.", wanted.AccessMode, last(d.Type))
		}
		d.AccessMode = wanted.AccessMode
	default:
		return computeInvalid("Invalid value for field 'paths': '%s'. Updating it is not supported.", field)
	}
	return nil
}

func (c *Cloud) labelDisk(r *request) (any, error) {
	return c.once(r, func() (*operation, error) {
		path, d, err := c.disk(r)
		if err != nil {
			return nil, err
		}
		wanted := &compute.ZoneSetLabelsRequest{} // that of regions has the same fields
		if err := r.decode(wanted); err != nil {
			return nil, err
		}
		if err := c.mayLabel(path, wanted.LabelFingerprint, d.Labels, wanted.Labels); err != nil {
			return nil, err
		}
		return c.changeDisk("setLabels", path, func(d *compute.Disk) {
			d.Labels, d.LabelFingerprint = maps.Clone(wanted.Labels), fingerprint(wanted.Labels)
		}), nil
	})
}

// mayLabel refuses labels that are wrong, that replace others than the caller has
// seen, or while something else is under way on what is at a path.
func (c *Cloud) mayLabel(path, sent string, before, after map[string]string) error {
	if err := checkComputeLabels("labels", after); err != nil {
		return err
	}
	if sent != fingerprint(before) {
		return &restError{http.StatusPreconditionFailed, "conditionNotMet", "Labels fingerprint either invalid or resource labels have changed"}
	}
	return c.busy(path)
}

func (c *Cloud) deleteDisk(r *request) (any, error) {
	return c.once(r, func() (*operation, error) {
		path, d, err := c.disk(r)
		if err != nil {
			return nil, err
		}
		if len(d.Users) > 0 {
			return nil, inUse("disk", path, d.Users[0])
		}
		if err := c.busy(path); err != nil {
			return nil, err
		}
		d.Status = "DELETING"
		return c.begin("compute", path[:strings.Index(path, "/disks/")], "delete", path, func(half error) error {
			if half == nil {
				delete(c.disks, path)
			} else {
				d.Status = "READY"
			}
			return half
		}), nil
	})
}

func inUse(kind, path, by string) error {
	return &restError{http.StatusBadRequest, "resourceInUseByAnotherResource",
		fmt.Sprintf("The %s resource '%s' is already being used by '%s'", kind, path, strings.TrimPrefix(by, computeURL))}
}

// Attach makes an instance use a disk, or no longer: path is
// "projects/p/zones/z/disks/d", instance the name of one in the same scope, which
// runs if it is new.
func (c *Cloud) Attach(path, instance string, attached bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	d := c.disks[path]
	if d == nil {
		return computeNotFound(path)
	}
	machine := path[:strings.Index(path, "/disks/")] + "/instances/" + instance
	link := computeURL + machine
	d.Users = slices.DeleteFunc(slices.Clone(d.Users), func(user string) bool { return user == link })
	if attached {
		c.attachTo(machine)
		d.Users = append(d.Users, link)
		d.LastAttachTimestamp = c.now()
	} else {
		d.LastDetachTimestamp = c.now()
	}
	return nil
}
