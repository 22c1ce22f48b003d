package gcptest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"cloud.google.com/go/container/apiv1/containerpb"
)

// pool is a node pool. Its nodes are numbers by zone: as many as its instance
// groups are told to have, and as many as are there.
type pool struct {
	cluster     *cluster
	path        string
	revision    int
	recreations int // how often its nodes were made anew
	proto       *containerpb.NodePool
	want, nodes map[string]int
}

func (p *pool) size() int   { return total(p.nodes) }
func (p *pool) wanted() int { return total(p.want) }

func total(by map[string]int) int {
	sum := 0
	for _, n := range by {
		sum += n
	}
	return sum
}

// zonesSeen are the zones in which a pool has or wants nodes, sorted.
func (p *pool) zonesSeen() []string {
	var zones []string
	for zone := range p.want {
		zones = append(zones, zone)
	}
	for zone := range p.nodes {
		zones = append(zones, zone)
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

// instanceBase is the name of a pool's instances in a zone, less what tells
// them apart.
func (p *pool) instanceBase(zone string) string {
	shorten := func(s string, n int) string { return s[:min(len(s), n)] }
	return strings.ToLower(fmt.Sprintf("gke-%s-%s-%s", shorten(p.cluster.name, 16), shorten(p.proto.GetName(), 16), hash(8, p.path, zone)))
}

func (p *pool) fail(code containerpb.StatusCondition_Code, message string) {
	p.proto.Status = containerpb.NodePool_RUNNING_WITH_ERROR
	if p.size() == 0 {
		p.proto.Status = containerpb.NodePool_ERROR
	}
	p.proto.StatusMessage = message
	p.proto.Conditions = []*containerpb.StatusCondition{{Code: code, Message: message}}
}

func (p *pool) recover() {
	p.proto.Status, p.proto.StatusMessage, p.proto.Conditions = containerpb.NodePool_RUNNING, "", nil
}

func (c *Cloud) release(p *pool) {
	for zone, n := range p.nodes {
		c.take(p.kind(zone), -n)
	}
	p.want, p.nodes = map[string]int{}, map[string]int{}
}

// shownPool is a pool as the API answers it.
func (c *Cloud) shownPool(p *pool) *containerpb.NodePool {
	out := proto.Clone(p.proto).(*containerpb.NodePool)
	out.Etag = etag(p.path, p.revision)
	for _, zone := range p.proto.GetLocations() {
		out.InstanceGroupUrls = append(out.InstanceGroupUrls, computeURL+"projects/"+c.options.Project+"/zones/"+zone+"/instanceGroupManagers/"+p.instanceBase(zone)+"-grp")
	}
	return out
}

const computeURL = "https://www.googleapis.com/compute/v1/"

// findPool is the pool of a path, and the cluster it is in.
func (c *Cloud) findPool(path string) (*cluster, *pool, error) {
	k, err := c.findCluster(path)
	if err != nil {
		return nil, nil, err
	}
	if k.proto.GetAutopilot().GetEnabled() {
		return nil, nil, detailed(codes.InvalidArgument, "Autopilot node pools cannot be accessed or modified.")
	}
	rest, ok := strings.CutPrefix(path[strings.Index(path, "/clusters/"):], "/clusters/"+k.name+"/nodePools/")
	if !ok || strings.Contains(rest, "/") {
		return nil, nil, invalid("Invalid resource name %q.", path)
	}
	p := k.pool(rest)
	if p == nil {
		return nil, nil, notFound(k.path + "/nodePools/" + rest)
	}
	return k, p, nil
}

// GetNodePool answers a pool; operations on it come nearer to their end.
func (c *Cloud) GetNodePool(_ context.Context, r *containerpb.GetNodePoolRequest) (*containerpb.NodePool, error) {
	_, p, err := c.findPool(r.GetName())
	if err != nil {
		return nil, err
	}
	for _, o := range c.runningOn("container", p.path) {
		c.look(o)
	}
	if _, p, err = c.findPool(r.GetName()); err != nil {
		return nil, err // it was being deleted
	}
	return c.shownPool(p), nil
}

// ListNodePools answers the pools of a cluster.
func (c *Cloud) ListNodePools(_ context.Context, r *containerpb.ListNodePoolsRequest) (*containerpb.ListNodePoolsResponse, error) {
	k, err := c.findCluster(r.GetParent())
	if err != nil {
		return nil, err
	}
	if k.proto.GetAutopilot().GetEnabled() {
		return nil, detailed(codes.InvalidArgument, "Autopilot node pools cannot be accessed or modified.")
	}
	return &containerpb.ListNodePoolsResponse{NodePools: c.shown(k).GetNodePools()}, nil
}

// CreateNodePool makes a pool. Without machines to be had it is made all the
// same, its operation ends with an error, and it stays, in error.
func (c *Cloud) CreateNodePool(_ context.Context, r *containerpb.CreateNodePoolRequest) (*containerpb.Operation, error) {
	k, err := c.findCluster(r.GetParent())
	if err != nil {
		return nil, err
	}
	if k.proto.GetAutopilot().GetEnabled() {
		return nil, detailed(codes.InvalidArgument, "Autopilot node pools cannot be accessed or modified.")
	}
	name := r.GetNodePool().GetName()
	if err := checkName("node_pool.name", name); err != nil {
		return nil, err
	}
	if k.pool(name) != nil {
		return nil, alreadyExists(k.path + "/nodePools/" + name)
	}
	if err := c.mayOperate(k, k.path+"/nodePools/"+name); err != nil {
		return nil, err
	}
	p, err := c.newPool(k, proto.Clone(r.GetNodePool()).(*containerpb.NodePool))
	if err != nil {
		return nil, err
	}
	k.pools = append(k.pools, p)
	k.revision++
	o := c.begin("container", k.parent, "CREATE_NODE_POOL", p.path, nil)
	o.finish = func(half error) error {
		if half != nil {
			p.fail(containerpb.StatusCondition_UNKNOWN, half.Error())
			return half
		}
		return c.provision(p, o.name)
	}
	return c.containerOperation(o), nil
}

// DeleteNodePool removes a pool.
func (c *Cloud) DeleteNodePool(_ context.Context, r *containerpb.DeleteNodePoolRequest) (*containerpb.Operation, error) {
	k, p, err := c.findPool(r.GetName())
	if err != nil {
		return nil, err
	}
	if err := c.mayOperate(k, p.path); err != nil {
		return nil, err
	}
	p.proto.Status = containerpb.NodePool_STOPPING
	k.revision++
	o := c.begin("container", k.parent, "DELETE_NODE_POOL", p.path, func(half error) error {
		if half != nil {
			p.fail(containerpb.StatusCondition_UNKNOWN, half.Error())
			return half
		}
		c.release(p)
		k.pools = slices.DeleteFunc(k.pools, func(other *pool) bool { return other == p })
		return nil
	})
	return c.containerOperation(o), nil
}

// SetNodePoolSize tells every instance group of a pool how many nodes to have.
func (c *Cloud) SetNodePoolSize(_ context.Context, r *containerpb.SetNodePoolSizeRequest) (*containerpb.Operation, error) {
	k, p, err := c.findPool(r.GetName())
	if err != nil {
		return nil, err
	}
	if r.GetNodeCount() < 0 {
		return nil, invalid("Node_count must not be negative.")
	}
	if p.proto.GetAutoscaling().GetEnabled() {
		return nil, detailed(codes.FailedPrecondition, "Node pool "+p.proto.GetName()+" cannot be resized while autoscaling is enabled.")
	}
	if err := c.mayOperate(k, p.path); err != nil {
		return nil, err
	}
	count, more := int(r.GetNodeCount()), 0
	for _, zone := range p.proto.GetLocations() {
		more += count - p.want[zone]
	}
	if err := c.mayHave(regionOf(k.location), p, more); err != nil {
		return nil, err
	}
	return c.changePool(k, p, "SET_NODE_POOL_SIZE", func() {
		for _, zone := range p.proto.GetLocations() {
			p.want[zone] = count
		}
	}), nil
}

// SetNodePoolAutoscaling replaces a pool's autoscaling.
func (c *Cloud) SetNodePoolAutoscaling(_ context.Context, r *containerpb.SetNodePoolAutoscalingRequest) (*containerpb.Operation, error) {
	k, p, err := c.findPool(r.GetName())
	if err != nil {
		return nil, err
	}
	if r.GetAutoscaling() == nil {
		return nil, invalid("Field \"autoscaling\" is required.")
	}
	if err := checkAutoscaling(r.GetAutoscaling()); err != nil {
		return nil, err
	}
	if err := c.mayOperate(k, p.path); err != nil {
		return nil, err
	}
	autoscaling := proto.Clone(r.GetAutoscaling()).(*containerpb.NodePoolAutoscaling)
	fillAutoscaling(autoscaling)
	// The autoscaler brings no pool to its limits by itself (kubernetes/autoscaler#2288).
	return c.changePool(k, p, "UPDATE_NODE_POOL", func() { p.proto.Autoscaling = autoscaling }), nil
}

// SetNodePoolManagement replaces a pool's repair and upgrade settings.
func (c *Cloud) SetNodePoolManagement(_ context.Context, r *containerpb.SetNodePoolManagementRequest) (*containerpb.Operation, error) {
	k, p, err := c.findPool(r.GetName())
	if err != nil {
		return nil, err
	}
	if r.GetManagement() == nil {
		return nil, invalid("Field \"management\" is required.")
	}
	if err := checkManagement(k.proto, p.proto.GetConfig(), r.GetManagement()); err != nil {
		return nil, err
	}
	if err := c.mayOperate(k, p.path); err != nil {
		return nil, err
	}
	management := proto.Clone(r.GetManagement()).(*containerpb.NodeManagement)
	return c.changePool(k, p, "SET_NODE_POOL_MANAGEMENT", func() { p.proto.Management = management }), nil
}

// changePool begins an operation that changes a pool at its end, and then has
// the machines that it wants.
func (c *Cloud) changePool(k *cluster, p *pool, kind string, change func()) *containerpb.Operation {
	p.proto.Status = containerpb.NodePool_RECONCILING
	p.revision++
	k.revision++
	o := c.begin("container", k.parent, kind, p.path, nil)
	o.finish = func(half error) error {
		change()
		if half != nil {
			p.fail(containerpb.StatusCondition_UNKNOWN, half.Error())
			return half
		}
		return c.provision(p, o.name)
	}
	return c.containerOperation(o)
}

// Resize makes a pool another size without anybody's operation, as somebody in
// the console or the autoscaler does: path is "projects/…/nodePools/p".
func (c *Cloud) Resize(path, zone string, nodes int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, p, err := c.findPool(path)
	if err != nil {
		return err
	}
	p.want[zone] = nodes
	return c.provision(p, "")
}

// Recreations is how often the nodes of a pool were made anew: once per update
// that a node cannot take as it is.
func (c *Cloud) Recreations(path string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, p, err := c.findPool(path)
	if err != nil {
		return 0
	}
	return p.recreations
}
