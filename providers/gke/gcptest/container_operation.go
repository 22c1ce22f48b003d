package gcptest

import (
	"context"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"cloud.google.com/go/container/apiv1/containerpb"
)

const containerURL = "https://container.googleapis.com/v1/"

// concurrentOperations is how many operations of pools one cluster takes.
const concurrentOperations = 5

// GetOperation answers for an operation, and brings it nearer to its end.
func (c *Cloud) GetOperation(ctx context.Context, r *containerpb.GetOperationRequest) (*containerpb.Operation, error) {
	parent, name, ok := strings.Cut(r.GetName(), "/operations/")
	if err := c.inProject(parent, "locations"); err != nil {
		return nil, err
	}
	o := c.findOperation("container", parent, name)
	if !ok || o == nil {
		return nil, notFound(r.GetName())
	}
	callOf(ctx).Operation = o.name
	c.look(o)
	return c.containerOperation(o), nil
}

// ListOperations answers for all operations of a location, or with "-" of all
// locations.
func (c *Cloud) ListOperations(_ context.Context, r *containerpb.ListOperationsRequest) (*containerpb.ListOperationsResponse, error) {
	if err := c.inProject(r.GetParent(), "locations"); err != nil {
		return nil, err
	}
	out := &containerpb.ListOperationsResponse{}
	for _, o := range c.running {
		if o.service == "container" && (o.parent == r.GetParent() || strings.HasSuffix(r.GetParent(), "/-")) {
			c.look(o)
			out.Operations = append(out.Operations, c.containerOperation(o))
		}
	}
	return out, nil
}

// containerOperation is an operation in the words of container v1. Its links
// have the project's number, and zones/ for a zone.
func (c *Cloud) containerOperation(o *operation) *containerpb.Operation {
	location := o.parent[strings.LastIndex(o.parent, "/")+1:]
	out := &containerpb.Operation{
		Name:          o.name,
		Zone:          location,
		Location:      location,
		OperationType: containerpb.Operation_Type(containerpb.Operation_Type_value[o.kind]),
		Status:        containerpb.Operation_RUNNING,
		SelfLink:      containerURL + c.numbered(o.parent) + "/operations/" + o.name,
		TargetLink:    containerURL + c.numbered(o.target),
		StartTime:     c.stamp(o.start),
	}
	out.Progress = progress(o)
	if !o.done() {
		return out
	}
	out.Status = containerpb.Operation_DONE
	out.EndTime = c.stamp(o.end)
	if o.err != nil {
		out.Error = status.Convert(o.err).Proto()
		out.StatusMessage = out.Error.GetMessage()
	}
	return out
}

// stages are those of a cluster's creation; its metrics count up to the total.
var stages = []string{"CLUSTER_CONFIGURING", "CLUSTER_DEPLOYING", "CLUSTER_HEALTHCHECKING"}

// progress tells how far an operation has come, of the kinds that tell it.
func progress(o *operation) *containerpb.OperationProgress {
	steps := max(o.need, 0) + 1
	done := min(o.looks, steps)
	switch o.kind {
	case "CREATE_CLUSTER", "DELETE_CLUSTER":
		out := &containerpb.OperationProgress{}
		const total = 10
		for i, stage := range stages {
			// All of them together count from 0 to the end.
			at := min(max(total*len(stages)*done/steps-total*i, 0), total)
			metrics := []*containerpb.OperationProgress_Metric{metric(stage, at), metric(stage+"_TOTAL", total)}
			state := containerpb.Operation_RUNNING
			switch at {
			case 0:
				state = containerpb.Operation_PENDING
			case total:
				state = containerpb.Operation_DONE
			}
			out.Metrics = append(out.Metrics, metrics...)
			out.Stages = append(out.Stages, &containerpb.OperationProgress{Name: stage, Status: state, Metrics: metrics})
		}
		return out
	case "CREATE_NODE_POOL", "UPDATE_NODE_POOL", "UPGRADE_NODES", "SET_NODE_POOL_SIZE":
		return &containerpb.OperationProgress{Metrics: []*containerpb.OperationProgress_Metric{
			metric("NODES_COMPLETE", done), metric("NODES_TOTAL", steps),
		}}
	}
	return nil
}

func metric(name string, value int) *containerpb.OperationProgress_Metric {
	return &containerpb.OperationProgress_Metric{Name: name, Value: &containerpb.OperationProgress_Metric_IntValue{IntValue: int64(value)}}
}

// numbered is a path as links in operations have it.
func (c *Cloud) numbered(path string) string {
	parts := strings.Split(path, "/")
	if len(parts) > 3 {
		parts[1] = c.projectNumber()
		if isZone(parts[3]) {
			parts[2] = "zones"
		}
	}
	return strings.Join(parts, "/")
}

// mayOperate rejects an operation while a conflicting one runs: on a cluster
// any, on a pool an operation of the cluster or of the same pool. pool is a
// path, "" for an operation of the whole cluster.
func (c *Cloud) mayOperate(k *cluster, pool string) error {
	others := c.runningOn("container", k.path)
	pools := 0
	for _, o := range others {
		if pool == "" || o.target == k.path || o.target == pool {
			err := detailed(codes.FailedPrecondition, "Cluster is running incompatible operation "+o.name+".", &errdetails.ErrorInfo{
				Reason: "CLUSTER_ALREADY_HAS_OPERATION", Domain: "container.googleapis.com",
			})
			c.look(o)
			return err
		}
		pools++
	}
	if pools >= concurrentOperations {
		for _, o := range others {
			c.look(o)
		}
		return detailed(codes.ResourceExhausted, `Too many operations: cluster "`+k.name+`" hits the concurrent operations quota 5, please try again later.`)
	}
	return nil
}

// detailed is an error of container v1, which always names its request.
func detailed(code codes.Code, message string, details ...protoadapt.MessageV1) error {
	details = append(details, &errdetails.RequestInfo{RequestId: "0x" + hash(16, message)})
	s, err := status.New(code, message).WithDetails(details...)
	if err != nil {
		return status.Error(code, message)
	}
	return s.Err()
}

func notFound(path string) error {
	return detailed(codes.NotFound, "Not found: "+inZones(path)+".")
}

func alreadyExists(path string) error {
	return detailed(codes.AlreadyExists, "Already exists: "+inZones(path)+".")
}

// inZones is a path as errors and links have it, where a zone is no location.
func inZones(path string) string {
	parts := strings.Split(path, "/")
	if len(parts) > 3 && parts[2] == "locations" && isZone(parts[3]) {
		parts[2] = "zones"
	}
	return strings.Join(parts, "/")
}

// isZone tells a zone, us-central1-a, from a region, us-central1.
func isZone(location string) bool { return strings.Count(location, "-") == 2 }

func regionOf(location string) string {
	if isZone(location) {
		return location[:strings.LastIndex(location, "-")]
	}
	return location
}
