package gcptest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	file "google.golang.org/api/file/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func (c *Cloud) findFile(r *request) (*file.Instance, error) {
	if err := c.inProject(r.path["name"], "locations"); err != nil {
		return nil, err
	}
	if f := c.files[r.path["name"]]; f != nil {
		return f, nil
	}
	return nil, fileNotFound(r.path["name"])
}

func fileNotFound(path string) error {
	return status.Errorf(codes.NotFound, "Resource '%s' was not found", path)
}

func (c *Cloud) getFile(r *request) (any, error) {
	for _, o := range c.runningOn("file", r.path["name"]) {
		c.look(o)
	}
	return c.findFile(r)
}

func (c *Cloud) listFiles(r *request) (any, error) {
	if err := c.inProject(r.path["parent"], "locations"); err != nil {
		return nil, err
	}
	out := &file.ListInstancesResponse{}
	for _, f := range sortedValues(c.files) {
		if strings.HasPrefix(f.Name, r.path["parent"]+"/") || strings.HasSuffix(r.path["parent"], "/-") {
			out.Instances = append(out.Instances, f)
		}
	}
	return out, nil
}

func (c *Cloud) createFile(r *request) (any, error) {
	parent := r.path["parent"]
	if err := c.inProject(parent, "locations"); err != nil {
		return nil, err
	}
	if err := c.location(last(parent)); err != nil {
		return nil, err
	}
	f := &file.Instance{}
	if err := r.decode(f); err != nil {
		return nil, err
	}
	f.Name = parent + "/instances/" + r.Query.Get("instanceId")
	if !computeName.MatchString(last(f.Name)) {
		return nil, invalid("Invalid instance id %q.", last(f.Name))
	}
	if c.files[f.Name] != nil {
		return nil, status.Errorf(codes.AlreadyExists, "Resource '%s' already exists", f.Name)
	}
	if err := c.fillFile(f, last(parent)); err != nil {
		return nil, err
	}
	f.CreateTime, f.State, f.Etag = c.now(), "CREATING", hash(8, f.Name, fmt.Sprint(c.begun))
	c.files[f.Name] = f
	o := c.begin("file", parent, "create", f.Name, func(half error) error {
		// One that could not be made stays, and can only be deleted: "Volume not
		// ready, current state" in CreateVolume of gcp-filestore-csi-driver.
		ended := *f
		if ended.State = "READY"; half != nil {
			ended.State, ended.StatusMessage = "ERROR", status.Convert(half).Message()
		}
		c.files[f.Name] = &ended
		return half
	})
	return c.fileOperation(o), nil
}

// fillFile checks a declared instance and adds what the server adds.
func (c *Cloud) fillFile(f *file.Instance, location string) error {
	t, ok := tiers[f.Tier]
	switch {
	case !ok:
		return invalid("Invalid tier %q.", f.Tier)
	case t.regional == isZone(location):
		return invalid("Tier %s cannot be created in location %q.", f.Tier, location)
	case len(f.FileShares) != 1:
		return invalid("Exactly one file share must be specified.")
	case len(f.Networks) != 1:
		return invalid("Exactly one network must be specified.")
	}
	if err := checkFile(f); err != nil {
		return err
	}
	size, err := t.bandOf(f.Tier, f.FileShares[0].CapacityGb)
	if err != nil {
		return err
	}
	standard(&f.Protocol, "NFS_V3")
	if !slices.Contains(t.protocols, f.Protocol) {
		return invalid("Protocol %s is not supported by tier %s.", f.Protocol, f.Tier)
	}
	n := f.Networks[0]
	standard(&n.Network, "default")
	if _, err := c.network(last(n.Network)); err != nil {
		return invalid("Network %q does not exist.", n.Network)
	}
	if n.Modes == nil {
		n.Modes = []string{"MODE_IPV4"}
	}
	standard(&n.ConnectMode, "DIRECT_PEERING")
	if err := c.fillRange(t, n); err != nil {
		return err
	}
	f.MinCapacityGb, f.MaxCapacityGb, f.CapacityStepSizeGb = size.least, size.most, size.step
	return nil
}

// checkFile refuses what an instance cannot have, neither when it is made nor later.
func checkFile(f *file.Instance) error {
	if len(f.Description) > 2048 {
		return invalid("Description has %d characters, at most 2048 are allowed.", len(f.Description))
	}
	if err := checkLabels(f.Labels); err != nil {
		return err
	}
	return tiers[f.Tier].checkShare(f.FileShares[0])
}

// patchFile changes the fields of the mask. Tier, networks, protocol and a
// share's name cannot change.
func (c *Cloud) patchFile(r *request) (any, error) {
	f, err := c.findFile(r)
	if err != nil {
		return nil, err
	}
	wanted := &file.Instance{}
	if err := r.decode(wanted); err != nil {
		return nil, err
	}
	if wanted.Etag != "" && wanted.Etag != f.Etag {
		return nil, status.Errorf(codes.Aborted, "The etag %q of instance %s is stale.", wanted.Etag, f.Name)
	}
	changed := *f
	mask := strings.FieldsFunc(r.Query.Get("updateMask"), func(sep rune) bool { return sep == ',' })
	if len(mask) == 0 {
		return nil, invalid("Update mask must not be empty.")
	}
	for _, field := range mask {
		switch field {
		case "description":
			changed.Description = wanted.Description
		case "labels":
			changed.Labels = wanted.Labels
		case "deletion_protection_enabled", "deletionProtectionEnabled":
			changed.DeletionProtectionEnabled = wanted.DeletionProtectionEnabled
		case "deletion_protection_reason", "deletionProtectionReason":
			changed.DeletionProtectionReason = wanted.DeletionProtectionReason
		case "performance_config", "performanceConfig":
			changed.PerformanceConfig = wanted.PerformanceConfig
		case "file_shares", "fileShares":
			if err := checkShares(f, wanted); err != nil {
				return nil, err
			}
			changed.FileShares = wanted.FileShares
		default:
			return nil, invalid("Invalid update mask path %q: the field cannot be changed.", field)
		}
	}
	if err := checkFile(&changed); err != nil {
		return nil, err
	}
	if err := c.mayChange(f); err != nil {
		return nil, err
	}
	if f.State != "READY" {
		return nil, status.Errorf(codes.FailedPrecondition, "instance %q is in the state %s, it must be READY", f.Name, f.State)
	}
	changed.Etag = hash(8, f.Name, fmt.Sprint(c.begun))
	o := c.begin("file", f.Name[:strings.Index(f.Name, "/instances/")], "update", f.Name, func(half error) error {
		if half == nil {
			c.files[f.Name] = &changed
		}
		return half
	})
	return c.fileOperation(o), nil
}

// mayChange refuses a change while another one is under way, in the words of
// hashicorp/terraform-provider-google#20272.
func (c *Cloud) mayChange(f *file.Instance) error {
	others := c.runningOn("file", f.Name)
	if len(others) == 0 {
		return nil
	}
	c.look(others[0])
	s, err := status.New(codes.Aborted, "unable to queue the operation").WithDetails(&errdetails.ResourceInfo{ResourceName: f.Name})
	if err != nil {
		return err
	}
	return s.Err()
}

// checkShares refuses another share, and a size outside of its band, which an
// instance says of itself as minCapacityGb and maxCapacityGb.
func checkShares(f, wanted *file.Instance) error {
	if len(wanted.FileShares) != 1 {
		return invalid("Exactly one file share must be specified.")
	}
	was, is := f.FileShares[0], wanted.FileShares[0]
	size, err := tiers[f.Tier].bandOf(f.Tier, was.CapacityGb)
	if err != nil {
		return err
	}
	switch {
	case was.Name != is.Name:
		return invalid("The name of a file share cannot be changed.")
	case !tiers[f.Tier].shrinks && is.CapacityGb < was.CapacityGb:
		return invalid("Capacity of tier %s cannot be reduced from %d to %d GiB.", f.Tier, was.CapacityGb, is.CapacityGb)
	case !size.has(is.CapacityGb):
		return invalid("Invalid capacity %d GiB for instance %s: must be %s.", is.CapacityGb, f.Name, size)
	}
	return nil
}

func (c *Cloud) deleteFile(r *request) (any, error) {
	f, err := c.findFile(r)
	if err != nil {
		return nil, err
	}
	if f.DeletionProtectionEnabled { // in the words of hashicorp/terraform-provider-google#20272
		return nil, status.Errorf(codes.FailedPrecondition, "instance %q is protected from deletion", f.Name)
	}
	if err := c.mayChange(f); err != nil {
		return nil, err
	}
	gone := *f
	gone.State = "DELETING"
	c.files[f.Name] = &gone
	o := c.begin("file", f.Name[:strings.Index(f.Name, "/instances/")], "delete", f.Name, func(half error) error {
		if half == nil {
			delete(c.files, f.Name)
		} else {
			c.files[f.Name] = f
		}
		return half
	})
	return c.fileOperation(o), nil
}

// fileOperation is a long-running operation in the words of file v1.
func (c *Cloud) fileOperation(o *operation) *file.Operation {
	metadata := map[string]any{
		"@type": "type.googleapis.com/google.cloud.common.OperationMetadata", "createTime": c.stamp(o.start),
		"target": o.target, "verb": o.kind, "cancelRequested": false, "apiVersion": "v1",
	}
	out := &file.Operation{Name: o.parent + "/operations/" + o.name, Done: o.done()}
	if o.done() {
		metadata["endTime"] = c.stamp(o.end)
	}
	out.Metadata, _ = json.Marshal(metadata)
	if !o.done() {
		return out
	}
	if o.err != nil {
		s := status.Convert(o.err)
		out.Error = &file.Status{Code: int64(s.Code()), Message: s.Message()}
		return out
	}
	out.Response = []byte(`{"@type":"type.googleapis.com/google.protobuf.Empty"}`)
	if f := c.files[o.target]; f != nil {
		answer := map[string]any{}
		if text, err := json.Marshal(f); err == nil && json.Unmarshal(text, &answer) == nil {
			answer["@type"] = "type.googleapis.com/google.cloud.filestore.v1.Instance"
			out.Response, _ = json.Marshal(answer)
		}
	}
	return out
}

func (c *Cloud) getFileOperation(r *request) (any, error) {
	parent, name, _ := strings.Cut(r.path["name"], "/operations/")
	if err := c.inProject(parent, "locations"); err != nil {
		return nil, err
	}
	o := c.findOperation("file", parent, name)
	if o == nil {
		return nil, fileNotFound(r.path["name"])
	}
	r.Operation = o.name
	c.look(o)
	return c.fileOperation(o), nil
}

func (c *Cloud) listFileOperations(r *request) (any, error) {
	if err := c.inProject(r.path["name"], "locations"); err != nil {
		return nil, err
	}
	out := &file.ListOperationsResponse{}
	for _, o := range c.running {
		if o.service == "file" && (o.parent == r.path["name"] || strings.HasSuffix(r.path["name"], "/-")) {
			c.look(o)
			out.Operations = append(out.Operations, c.fileOperation(o))
		}
	}
	return out, nil
}
