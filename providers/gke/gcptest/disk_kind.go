package gcptest

import (
	compute "google.golang.org/api/compute/v1"
)

// diskKind is a type of disk: its sizes in GiB, its speed, and who may use it.
type diskKind struct {
	least, most int64 // GiB
	standard    int64 // GiB, where nobody says how much
	regional    int64 // least GiB of a regional one; 0 where there are none
	zonal       bool
	iops        speed
	throughput  speed // MiB a second
	fixed       bool  // IOPS are chosen when it is made, and never again
	access      []string
}

// speed is how fast a disk may be told to be; the zero one cannot be told.
type speed struct {
	standard int64 // where nobody says how much, within the limits
	limits   func(d *compute.Disk) (least, most int64)
}

func (s speed) told() bool { return s.limits != nil }

// between are limits that are the same for all sizes.
func between(least, most int64) func(*compute.Disk) (int64, int64) {
	return func(*compute.Disk) (int64, int64) { return least, most }
}

// balanced are the IOPS of the balanced Hyperdisks: 500 for each GiB.
func balanced(most int64) speed {
	return speed{3600, func(d *compute.Disk) (int64, int64) { return min(3000, 500*d.SizeGb), min(500*d.SizeGb, most) }}
}

// balancedThroughput goes with the IOPS of the balanced Hyperdisks: between one
// MiB/s for 256 of them and one for 4.
var balancedThroughput = speed{290, func(d *compute.Disk) (int64, int64) {
	return max(140, d.ProvisionedIops/256), min(2400, max(140, d.ProvisionedIops/4))
}}

const (
	single    = "READ_WRITE_SINGLE"
	writeMany = "READ_WRITE_MANY"
	readMany  = "READ_ONLY_MANY"
)

// diskKinds are from https://cloud.google.com/compute/docs/disks/persistent-disks,
// …/disks/extreme-persistent-disk, and the pages hyperdisk-balanced,
// hyperdisk-balanced-ha, hyperdisk-extreme, hyperdisk-throughput and hyperdisk-ml
// in …/disks/hd-types/ with their formulas of size and speed. That the access mode
// of two of them cannot be set is from disksWithUnsettableAccessMode of
// kubernetes-sigs/gcp-compute-persistent-disk-csi-driver.
var diskKinds = map[string]diskKind{
	"pd-standard": {least: 10, most: 65536, standard: 500, regional: 200, zonal: true},
	"pd-balanced": {least: 10, most: 65536, standard: 100, regional: 10, zonal: true},
	"pd-ssd":      {least: 10, most: 65536, standard: 100, regional: 10, zonal: true},
	"pd-extreme":  {least: 500, most: 65536, standard: 1000, zonal: true, fixed: true, iops: speed{100000, between(10000, 120000)}},

	"hyperdisk-balanced":                   {least: 4, most: 65536, standard: 100, zonal: true, iops: balanced(160000), throughput: balancedThroughput, access: []string{single, writeMany, readMany}},
	"hyperdisk-balanced-high-availability": {least: 4, most: 65536, standard: 100, regional: 4, iops: balanced(100000), throughput: balancedThroughput, access: []string{single, writeMany, readMany}},
	"hyperdisk-extreme": {least: 64, most: 65536, standard: 1000, zonal: true, iops: speed{10000, func(d *compute.Disk) (int64, int64) {
		return 2 * d.SizeGb, min(1200*d.SizeGb, 350000)
	}}},
	"hyperdisk-throughput": {least: 2048, most: 32768, standard: 2048, zonal: true, throughput: speed{90, func(d *compute.Disk) (int64, int64) {
		return max(20, 10*d.SizeGb/1024), min(600, 90*d.SizeGb/1024)
	}}},
	"hyperdisk-ml": {least: 4, most: 65536, standard: 100, zonal: true, access: []string{single, readMany}, throughput: speed{1200, func(d *compute.Disk) (int64, int64) {
		return max(400, 12*d.SizeGb/100), min(1600*d.SizeGb, 1200000)
	}}},
}

// fillSpeed gives a disk the speed that nobody has said, and refuses what its type
// and size do not allow.
func (k diskKind) fillSpeed(name string, d *compute.Disk) error {
	for _, of := range []struct {
		field, what string
		speed       speed
		value       *int64
	}{
		{"provisionedIops", "Provisioned IOPS", k.iops, &d.ProvisionedIops},
		{"provisionedThroughput", "Provisioned throughput", k.throughput, &d.ProvisionedThroughput}, // which may go with IOPS
	} {
		if !of.speed.told() {
			if *of.value != 0 {
				return computeInvalid("Invalid value for field 'resource.%s': '%d'. %s cannot be specified for disk type %s.", of.field, *of.value, of.what, name)
			}
			continue
		}
		least, most := of.speed.limits(d)
		standard(of.value, min(max(of.speed.standard, least), most))
		if *of.value < least || *of.value > most {
			return computeInvalid("Invalid value for field 'resource.%s': '%d'. %s of a disk of type %s with %d GB must be between %d and %d.", of.field, *of.value, of.what, name, d.SizeGb, least, most)
		}
	}
	return nil
}
