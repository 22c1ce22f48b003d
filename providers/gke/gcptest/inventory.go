package gcptest

import (
	"maps"
	"slices"

	compute "google.golang.org/api/compute/v1"
	file "google.golang.org/api/file/v1"
)

// Object is something that exists, whether or not it is finished.
type Object struct {
	// Path is its name in its API: "projects/p/locations/l/clusters/c",
	// "projects/p/zones/z/disks/d", "projects/p/global/firewalls/f".
	Path        string
	Labels      map[string]string // of a pool: its resource labels
	Description string
	Nodes       int // of a pool or a cluster: machines that are there, and bill
	// Value is a copy of it as its API answers it: a *containerpb.Cluster or
	// *containerpb.NodePool, *compute.Disk, *compute.Snapshot, *compute.Firewall
	// or *file.Instance.
	Value any
}

// Inventory is all that exists, sorted by path.
func (c *Cloud) Inventory() []Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []Object
	for path, k := range c.clusters {
		shown := c.shown(k)
		out = append(out, Object{Path: path, Labels: shown.GetResourceLabels(), Description: shown.GetDescription(), Nodes: int(shown.GetCurrentNodeCount()), Value: shown})
		for _, p := range k.pools {
			shown := c.shownPool(p)
			out = append(out, Object{Path: p.path, Labels: shown.GetConfig().GetResourceLabels(), Nodes: p.size(), Value: shown})
		}
	}
	for path, d := range c.disks {
		one := *d
		out = append(out, Object{Path: path, Labels: maps.Clone(d.Labels), Description: d.Description, Value: &one})
	}
	for path, s := range c.snapshots {
		one := *s
		out = append(out, Object{Path: path, Labels: maps.Clone(s.Labels), Description: s.Description, Value: &one})
	}
	for path, f := range c.firewalls {
		one := *f
		out = append(out, Object{Path: path, Description: f.Description, Value: &one})
	}
	for path, f := range c.files {
		one := *f
		out = append(out, Object{Path: path, Labels: maps.Clone(f.Labels), Description: f.Description, Value: &one})
	}
	slices.SortFunc(out, func(a, b Object) int {
		if a.Path < b.Path {
			return -1
		}
		return 1
	})
	return out
}

// Paths are those of the inventory.
func (c *Cloud) Paths() []string {
	var out []string
	for _, o := range c.Inventory() {
		out = append(out, o.Path)
	}
	return out
}

// Put makes an object of somebody else, as the console does, or changes one:
// value is a *compute.Disk, *compute.Snapshot, *compute.Firewall,
// *compute.Instance or *file.Instance, at the path that Object has. It must be
// whole: nothing is filled in. Machines are in no inventory. Change, ChangePool and Resize do this for clusters and pools.
func (c *Cloud) Put(path string, value any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch v := value.(type) {
	case *compute.Disk:
		one := *v
		one.LabelFingerprint = fingerprint(one.Labels)
		c.disks[path] = &one
	case *compute.Snapshot:
		one := *v
		one.LabelFingerprint = fingerprint(one.Labels)
		c.snapshots[path] = &one
	case *compute.Firewall:
		one := *v
		c.firewalls[path] = &one
	case *file.Instance:
		one := *v
		c.files[path] = &one
	case *compute.Instance:
		one := *v
		c.instances[path] = &one
	}
}

// Remove makes an object disappear, as the console does; of a cluster with its
// pools.
func (c *Cloud) Remove(path string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.disks, path)
	delete(c.snapshots, path)
	delete(c.firewalls, path)
	delete(c.files, path)
	delete(c.instances, path)
	if k := c.clusters[path]; k != nil {
		for _, p := range k.pools {
			c.release(p)
		}
		delete(c.clusters, path)
		return
	}
	if k, p, err := c.findPool(path); err == nil {
		c.release(p)
		k.pools = slices.DeleteFunc(k.pools, func(other *pool) bool { return other == p })
	}
}
