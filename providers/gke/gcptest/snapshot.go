package gcptest

import (
	"fmt"
	"maps"
	"strings"

	compute "google.golang.org/api/compute/v1"

	"github.com/stokehq/stoke/runtime/pattern"
)

var computeName = pattern.New(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)

func checkComputeName(name string) error {
	if computeName.MatchString(name) {
		return nil
	}
	return computeInvalid("Invalid value for field 'resource.name': '%s'. Must be a match of regex '(?:[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?)'", name)
}

func (c *Cloud) snapshot(r *request) (string, *compute.Snapshot, error) {
	scope, err := c.scope(r)
	if err != nil {
		return "", nil, err
	}
	path := scope + "/snapshots/" + r.path["snapshot"] + r.path["resource"]
	if s := c.snapshots[path]; s != nil {
		return path, s, nil
	}
	return path, nil, computeNotFound(path)
}

func (c *Cloud) getSnapshot(r *request) (any, error) {
	path, _, err := c.snapshot(r)
	if err != nil {
		return nil, err
	}
	for _, o := range c.runningOn("compute", path) {
		c.look(o)
	}
	_, s, err := c.snapshot(r)
	return s, err
}

func (c *Cloud) listSnapshots(r *request) (any, error) {
	if _, err := c.scope(r); err != nil {
		return nil, err
	}
	return list(r, "compute#snapshotList", sortedValues(c.snapshots), func(s *compute.Snapshot) map[string]string {
		return labelFields(map[string]string{"name": s.Name, "status": s.Status, "sourceDisk": s.SourceDisk}, s.Labels)
	})
}

func (c *Cloud) insertSnapshot(r *request) (any, error) {
	return c.once(r, func() (*operation, error) {
		scope, err := c.scope(r)
		if err != nil {
			return nil, err
		}
		s := &compute.Snapshot{}
		if err := r.decode(s); err != nil {
			return nil, err
		}
		at := strings.Index(s.SourceDisk, "projects/")
		if at < 0 {
			return nil, computeInvalid("Invalid value for field 'resource.sourceDisk': '%s'. The URL is malformed.", s.SourceDisk)
		}
		return c.takeSnapshot(s, s.SourceDisk[at:], scope)
	})
}

// snapshotDisk is the older way: the operation is one of the disk.
func (c *Cloud) snapshotDisk(r *request) (any, error) {
	return c.once(r, func() (*operation, error) {
		path, _, err := c.disk(r)
		if err != nil {
			return nil, err
		}
		s := &compute.Snapshot{}
		if err := r.decode(s); err != nil {
			return nil, err
		}
		return c.takeSnapshot(s, path, path[:strings.Index(path, "/disks/")])
	})
}

func (c *Cloud) takeSnapshot(s *compute.Snapshot, disk, scope string) (*operation, error) {
	source := c.disks[disk]
	if source == nil {
		return nil, computeNotFound(disk)
	}
	if err := checkComputeName(s.Name); err != nil {
		return nil, err
	}
	if err := checkComputeLabels("resource.labels", s.Labels); err != nil {
		return nil, err
	}
	path := "projects/" + c.options.Project + "/global/snapshots/" + s.Name
	if c.snapshots[path] != nil {
		return nil, computeExists(path)
	}
	if err := c.busy(disk); err != nil {
		return nil, err
	}
	s.Kind, s.Id, s.Status = "compute#snapshot", number(path, fmt.Sprint(c.begun)), "CREATING"
	s.CreationTimestamp, s.SelfLink = c.now(), computeURL+path
	s.SourceDisk, s.SourceDiskId, s.DiskSizeGb = source.SelfLink, fmt.Sprint(source.Id), source.SizeGb
	s.LabelFingerprint = fingerprint(s.Labels)
	standard(&s.SnapshotType, "STANDARD")
	if s.StorageLocations == nil {
		s.StorageLocations = []string{"us"}
	}
	c.snapshots[path] = s
	return c.begin("compute", scope, "createSnapshot", path, func(half error) error {
		if half != nil {
			delete(c.snapshots, path)
			return half
		}
		s.Status, s.StorageBytesStatus = "READY", "UP_TO_DATE"
		return nil
	}), nil
}

func (c *Cloud) labelSnapshot(r *request) (any, error) {
	return c.once(r, func() (*operation, error) {
		path, s, err := c.snapshot(r)
		if err != nil {
			return nil, err
		}
		wanted := &compute.GlobalSetLabelsRequest{}
		if err := r.decode(wanted); err != nil {
			return nil, err
		}
		if err := c.mayLabel(path, wanted.LabelFingerprint, s.Labels, wanted.Labels); err != nil {
			return nil, err
		}
		return c.begin("compute", path[:strings.Index(path, "/snapshots/")], "setLabels", path, func(half error) error {
			if half == nil {
				s.Labels, s.LabelFingerprint = maps.Clone(wanted.Labels), fingerprint(wanted.Labels)
			}
			return half
		}), nil
	})
}

func (c *Cloud) deleteSnapshot(r *request) (any, error) {
	return c.once(r, func() (*operation, error) {
		path, s, err := c.snapshot(r)
		if err != nil {
			return nil, err
		}
		if err := c.busy(path); err != nil {
			return nil, err
		}
		s.Status = "DELETING"
		return c.begin("compute", path[:strings.Index(path, "/snapshots/")], "delete", path, func(half error) error {
			if half == nil {
				delete(c.snapshots, path)
			} else {
				s.Status = "READY"
			}
			return half
		}), nil
	})
}
