package gcptest

import (
	"context"
	"maps"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// addressing are the fields of UpdateNodePoolRequest that change nothing.
var addressing = []protoreflect.Name{"name", "etag"}

// inPlace are the fields that nodes take as they are; every other one makes
// them anew.
var inPlace = []protoreflect.Name{"locations", "upgrade_settings", "tags", "taints", "labels", "resource_labels", "node_drain_config", "maintenance_policy", "queued_provisioning", "resource_manager_tags"}

// wrapped are the fields that stand in a message of the request and bare in
// the node's configuration.
var wrapped = map[protoreflect.Name]protoreflect.Name{
	"tags": "tags", "taints": "taints", "labels": "labels", "resource_labels": "labels",
}

// UpdateNodePool changes what one request may change about a pool.
func (c *Cloud) UpdateNodePool(_ context.Context, r *containerpb.UpdateNodePoolRequest) (*containerpb.Operation, error) {
	k, p, err := c.findPool(r.GetName())
	if err != nil {
		return nil, err
	}
	if etag := r.GetEtag(); etag != "" && etag != c.shownPool(p).GetEtag() {
		return nil, detailed(codes.Aborted, "The etag "+etag+" of node pool "+p.proto.GetName()+" is stale.")
	}
	changed, recreate, err := c.updated(k, p, r)
	if err != nil {
		return nil, err
	}
	if err := c.mayOperate(k, p.path); err != nil {
		return nil, err
	}
	kind := "UPDATE_NODE_POOL"
	if r.GetNodeVersion() != "" {
		kind = "UPGRADE_NODES"
	}
	return c.changePool(k, p, kind, func() {
		status, conditions := p.proto.GetStatus(), p.proto.GetConditions()
		p.proto = proto.Clone(changed).(*containerpb.NodePool)
		p.proto.Status, p.proto.Conditions = status, conditions
		p.move()
		if recreate {
			p.recreations++
		}
	}), nil
}

// updated is a pool as an update would have it, and whether its nodes are made
// anew.
func (c *Cloud) updated(k *cluster, p *pool, r *containerpb.UpdateNodePoolRequest) (*containerpb.NodePool, bool, error) {
	out := proto.Clone(p.proto).(*containerpb.NodePool)
	var names []protoreflect.Name
	var failed error
	r.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if slices.Contains(addressing, f.Name()) {
			return true
		}
		names = append(names, f.Name())
		if failed == nil {
			failed = apply(k, out, f, v)
		}
		return true
	})
	switch {
	case failed != nil:
		return nil, false, failed
	case len(names) == 0:
		return nil, false, invalid("At least one of the fields to update must be set.")
	case len(names) > 1 && slices.Contains(names, "locations"):
		return nil, false, detailed(codes.InvalidArgument, "Locations cannot be updated together with other fields.")
	}
	if err := checkGPUs(p.proto.GetConfig().GetAccelerators(), out.GetConfig().GetAccelerators()); err != nil {
		return nil, false, err
	}
	fillNodes(out.Config, &cluster{proto: k.proto}) // no taint comes back that was taken away
	if err := c.checkPool(k, out); err != nil {
		return nil, false, err
	}
	recreate := slices.ContainsFunc(names, func(n protoreflect.Name) bool { return !slices.Contains(inPlace, n) })
	return out, recreate, nil
}

// apply sets one field of a pool.
func apply(k *cluster, p *containerpb.NodePool, f protoreflect.FieldDescriptor, v protoreflect.Value) error {
	config, all := p.GetConfig().ProtoReflect(), p.ProtoReflect()
	switch name := f.Name(); {
	case name == "node_version":
		version, err := nodeVersion(k, v.String())
		if err != nil {
			return err
		}
		p.Version = version
	case name == "disk_size_gb":
		p.Config.DiskSizeGb = int32(v.Int()) //nolint:gosec // GiB
		p.Config.BootDisk.SizeGb = v.Int()
	case name == "boot_disk":
		disk := v.Message().Interface().(*containerpb.BootDisk)
		p.Config.BootDisk = proto.Clone(disk).(*containerpb.BootDisk)
		p.Config.DiskSizeGb, p.Config.DiskType = int32(disk.GetSizeGb()), disk.GetDiskType() //nolint:gosec // GiB
	case name == "node_network_config":
		into := all.Mutable(all.Descriptor().Fields().ByName("network_config")).Message()
		v.Message().Range(func(part protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			into.Set(part, v)
			return true
		})
	case name == "resource_labels":
		p.Config.ResourceLabels = maps.Clone(v.Message().Interface().(*containerpb.ResourceLabels).GetLabels())
	case wrapped[name] != "":
		inner := v.Message().Descriptor().Fields().ByName(wrapped[name])
		config.Clear(config.Descriptor().Fields().ByName(name))
		if v.Message().Has(inner) {
			config.Set(config.Descriptor().Fields().ByName(name), v.Message().Get(inner))
		}
	case config.Descriptor().Fields().ByName(name) != nil:
		config.Set(config.Descriptor().Fields().ByName(name), v)
	case all.Descriptor().Fields().ByName(name) != nil:
		all.Set(all.Descriptor().Fields().ByName(name), v)
	default:
		return detailed(codes.Unimplemented, "the double does not apply the field "+string(name))
	}
	return nil
}

// checkGPUs refuses other GPUs; how they are shared and their driver may change.
func checkGPUs(before, after []*containerpb.AcceleratorConfig) error {
	if len(before) != len(after) {
		return invalid("Accelerators cannot be added or removed.")
	}
	for i, b := range before {
		a := after[i]
		switch {
		case a.GetAcceleratorCount() != b.GetAcceleratorCount():
			return detailed(codes.InvalidArgument, "Accelerator count: "+number10(a.GetAcceleratorCount())+" should not be updated")
		case a.GetAcceleratorType() != b.GetAcceleratorType():
			return detailed(codes.InvalidArgument, "Accelerator type: "+a.GetAcceleratorType()+" should not be updated")
		case a.GetGpuPartitionSize() != b.GetGpuPartitionSize():
			return detailed(codes.InvalidArgument, "Accelerator gpu_partition_size: "+a.GetGpuPartitionSize()+" should not be updated")
		}
	}
	return nil
}

// move follows changed locations: new zones get as many nodes as the others,
// zones that are no more lose theirs.
func (p *pool) move() {
	each := 0
	for _, n := range p.want {
		each = max(each, n)
	}
	for zone := range p.want {
		if !slices.Contains(p.proto.GetLocations(), zone) {
			p.want[zone] = 0
		}
	}
	for _, zone := range p.proto.GetLocations() {
		if _, ok := p.want[zone]; !ok {
			p.want[zone] = each
		}
	}
}
