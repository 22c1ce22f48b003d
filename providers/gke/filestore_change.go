package gke

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	file "google.golang.org/api/file/v1"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/gke/cloud"
)

func (m *filestoreModel) get(ctx context.Context, c *cloud.Cloud) (*file.Instance, error) {
	f, err := cloud.Read(ctx, c, func(ctx context.Context) (*file.Instance, error) {
		return c.File.Projects.Locations.Instances.Get(m.path(c.Project)).Context(ctx).Do()
	})
	if cloud.KindOf(err) == cloud.NotFound {
		return nil, nil
	}
	return f, err
}

// isHeld reports whether another operation holds the instance.
func (m *filestoreModel) isHeld(ctx context.Context, j job) (bool, error) {
	f, err := m.get(ctx, j.cloud)
	return f != nil && !slices.Contains([]string{"READY", "ERROR", "SUSPENDED", "STATE_UNSPECIFIED", ""}, f.State), err
}

// create is that of model. It takes minutes, and for the larger tiers an hour.
func (m *filestoreModel) create(ctx context.Context, j job, mark string, started func()) error {
	m.settle(j)
	c, wanted := j.cloud, m.render(j.cloud, mark)
	return creation[file.Instance, *file.Operation]{
		what:   "Filestore instance",
		path:   m.path(c.Project),
		get:    func(ctx context.Context) (*file.Instance, error) { return m.get(ctx, c) },
		markOf: func(f *file.Instance) string { return f.Labels[cloud.Mark] },
		insert: func(ctx context.Context, _ string) (*file.Operation, error) { // the API knows no request ids
			return c.File.Projects.Locations.Instances.Create(m.parent(c.Project), wanted).InstanceId(m.Name.ValueString()).Context(ctx).Do()
		},
		wait: func(ctx context.Context, op *file.Operation) error {
			return c.WaitFile(ctx, op, "making the Filestore instance "+m.Name.ValueString())
		},
		ready: func(ctx context.Context) error { return m.ready(ctx, c) },
	}.run(ctx, c, mark, started)
}

func (m *filestoreModel) render(c *cloud.Cloud, mark string) *file.Instance {
	return &file.Instance{
		Tier: m.Tier.ValueString(), Protocol: m.Protocol.ValueString(), KmsKeyName: m.Key.ValueString(), Description: m.Description.ValueString(),
		Labels: c.Marked(texts(m.Labels), mark), DeletionProtectionEnabled: m.Protection.ValueBool(), FileShares: m.shares(),
		Networks: []*file.NetworkConfig{{
			Network: firstNonEmpty(m.Network.ValueString(), "default"), Modes: []string{"MODE_IPV4"},
			ConnectMode: m.ConnectMode.ValueString(), ReservedIpRange: m.ReservedRange.ValueString(),
		}},
	}
}

func (m *filestoreModel) shares() []*file.FileShareConfig {
	s := &file.FileShareConfig{Name: m.Share.ValueString(), CapacityGb: m.Capacity.ValueInt64()}
	for _, e := range elementsOf[exportModel](m.Exports) {
		s.NfsExportOptions = append(s.NfsExportOptions, e.options())
	}
	return []*file.FileShareConfig{s}
}

// options returns an export with Google's defaults for omitted arguments.
func (e exportModel) options() *file.NfsExportOptions {
	o := &file.NfsExportOptions{
		IpRanges: list(e.Ranges), AccessMode: firstNonEmpty(e.Access.ValueString(), "READ_WRITE"), SquashMode: firstNonEmpty(e.Squash.ValueString(), "NO_ROOT_SQUASH"),
		AnonUid: e.UID.ValueInt64(), AnonGid: e.GID.ValueInt64(),
	}
	if isGiven(e.UID) {
		o.ForceSendFields = append(o.ForceSendFields, "AnonUid")
	}
	if isGiven(e.GID) {
		o.ForceSendFields = append(o.ForceSendFields, "AnonGid")
	}
	return o
}

// nobody is the default user and group of a squashed root.
const nobody = 65534

// exportType is the type of a block export.
var exportType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"ip_ranges": types.SetType{ElemType: types.StringType}, "access_mode": types.StringType, "squash_mode": types.StringType, "anonymous_uid": types.Int64Type, "anonymous_gid": types.Int64Type,
}}

// sameExports keeps the declared form if it means the observed one.
func sameExports(was types.List, now []*file.NfsExportOptions) types.List {
	declared := elementsOf[exportModel](was)
	if len(declared) > 0 && slices.EqualFunc(declared, now, exportModel.means) {
		return was
	}
	all := []exportModel{}
	for _, o := range now {
		all = append(all, exportModel{Ranges: setOrNull(types.SetNull(types.StringType), o.IpRanges), Access: textOrNull(o.AccessMode), Squash: textOrNull(o.SquashMode), UID: numberOrNull(o.AnonUid), GID: numberOrNull(o.AnonGid)})
	}
	return connect.MustConvert(types.ListValueFrom(context.Background(), exportType, all))
}

// means reports whether an export equals the observed one.
func (e exportModel) means(o *file.NfsExportOptions) bool {
	d := e.options()
	if d.SquashMode == "ROOT_SQUASH" {
		d.AnonUid, d.AnonGid = anonymous(e.UID), anonymous(e.GID)
	}
	is := *o
	is.AccessMode, is.SquashMode = firstNonEmpty(o.AccessMode, "READ_WRITE"), firstNonEmpty(o.SquashMode, "NO_ROOT_SQUASH")
	if is.SquashMode == "ROOT_SQUASH" && is.AnonUid == 0 && !isGiven(e.UID) {
		is.AnonUid = nobody
	}
	if is.SquashMode == "ROOT_SQUASH" && is.AnonGid == 0 && !isGiven(e.GID) {
		is.AnonGid = nobody
	}
	ranges := slices.Sorted(slices.Values(is.IpRanges))
	return slices.Equal(d.IpRanges, ranges) && d.AccessMode == is.AccessMode && d.SquashMode == is.SquashMode && d.AnonUid == is.AnonUid && d.AnonGid == is.AnonGid
}

func anonymous(id types.Int64) int64 {
	if isGiven(id) {
		return id.ValueInt64()
	}
	return nobody
}

// read is that of model.
func (m *filestoreModel) read(ctx context.Context, j job) (bool, string, error) {
	m.settle(j)
	f, err := m.get(ctx, j.cloud)
	if f == nil || err != nil {
		return false, "", err
	}
	if len(f.FileShares) != 1 || len(f.Networks) != 1 {
		return false, "", fmt.Errorf("the Filestore instance %s has %d shares and %d networks, and gke_filestore is for those with one of each", m.Name.ValueString(), len(f.FileShares), len(f.Networks))
	}
	share, network := f.FileShares[0], f.Networks[0]
	m.ID, m.Status = types.StringValue(m.path(j.cloud.Project)), types.StringValue(f.State)
	m.Tier, m.Protocol, m.Key = types.StringValue(f.Tier), textOrNull(f.Protocol), textOrNull(f.KmsKeyName)
	m.Share, m.Capacity, m.Exports = types.StringValue(share.Name), types.Int64Value(share.CapacityGb), sameExports(m.Exports, share.NfsExportOptions)
	m.Network, m.ConnectMode = link(m.Network, network.Network), textOrNull(network.ConnectMode)
	if r := m.ReservedRange.ValueString(); r == "" || strings.Contains(r, "/") { // a name stays, although Google adds the addresses
		m.ReservedRange = textOrNull(network.ReservedIpRange)
	}
	m.Description, m.Protection = textAs(m.Description, f.Description), types.BoolValue(f.DeletionProtectionEnabled)
	m.head().readLabels(j.cloud, f.Labels)
	m.Addresses = listOf(append([]string{}, network.IpAddresses...))
	return true, f.Labels[cloud.Mark], nil
}

// update implements model: one call for all changes.
func (m *filestoreModel) update(ctx context.Context, j job, prior *filestoreModel) error {
	c, name := j.cloud, m.path(j.cloud.Project)
	if err := m.ready(ctx, c); err != nil {
		return err
	}
	wanted := &file.Instance{}
	var mask []string
	if changed(m.Capacity, prior.Capacity) || changed(m.Exports, prior.Exports) {
		mask, wanted.FileShares = append(mask, "file_shares"), m.shares()
	}
	if changed(m.Description, prior.Description) {
		mask, wanted.Description = append(mask, "description"), m.Description.ValueString()
	}
	if changed(m.Protection, prior.Protection) {
		mask, wanted.DeletionProtectionEnabled = append(mask, "deletion_protection_enabled"), m.Protection.ValueBool()
	}
	if changed(m.AllLabels, prior.AllLabels) {
		mask = append(mask, "labels")
	}
	if len(mask) == 0 {
		return nil
	}
	op, err := cloud.Repeat(ctx, c, func(ctx context.Context) (*file.Operation, error) {
		if changed(m.AllLabels, prior.AllLabels) { // the mark and Google's own are sent again
			there, err := m.get(ctx, c)
			if err == nil && there == nil {
				err = fmt.Errorf("the Filestore instance %s is gone; the next plan recreates it", m.Name.ValueString())
			}
			if err != nil {
				return nil, err
			}
			wanted.Labels = c.Relabel(there.Labels, texts(m.Labels))
		}
		return c.File.Projects.Locations.Instances.Patch(name, wanted).UpdateMask(strings.Join(mask, ",")).Context(ctx).Do()
	})
	if err == nil {
		err = c.WaitFile(ctx, op, "changing the Filestore instance "+m.Name.ValueString())
	}
	return err
}

// remove is that of model.
func (m *filestoreModel) remove(ctx context.Context, j job) error {
	c := j.cloud
	op, err := cloud.Repeat(ctx, c, func(ctx context.Context) (*file.Operation, error) {
		return c.File.Projects.Locations.Instances.Delete(m.path(c.Project)).Context(ctx).Do()
	})
	if err == nil {
		err = c.WaitFile(ctx, op, "deleting the Filestore instance "+m.Name.ValueString())
	}
	if cloud.KindOf(err) == cloud.NotFound {
		return nil
	}
	return err
}
