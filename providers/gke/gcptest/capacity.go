package gcptest

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"

	"cloud.google.com/go/container/apiv1/containerpb"

	"github.com/stokehq/stoke/providers/gke/catalogue"
)

// Capacity names machines that may run out; an empty field stands for any.
type Capacity struct {
	Zone, MachineType string
	Accelerator       string // type of GPU
	// Provisioning is "on-demand", "spot", "flex-start" or "reservation:NAME".
	Provisioning string
}

// SetCapacity sets how many more machines of a kind are available. Kinds that
// the test did not set are always available, except reservations, of which the
// double has none. Machines that a pool still lacks appear when there is room
// for them.
func (c *Cloud) SetCapacity(of Capacity, free int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.capacity[of] = free
	for _, k := range sortedValues(c.clusters) {
		for _, p := range k.pools {
			c.fillUp(p)
		}
	}
}

// Attempt is one try to get machines for a pool in a zone.
type Attempt struct {
	Pool         string // path
	Operation    string
	Of           Capacity
	Wanted, Free int // machines; Free is -1 without a limit
	Got          int
}

// Attempts are all tries so far to get machines, in their order.
func (c *Cloud) Attempts() []Attempt {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.attempts)
}

// free is how many machines of a kind can be had, -1 without a limit.
func (c *Cloud) free(of Capacity) int {
	least := -1
	for limit, free := range c.capacity {
		if limit.covers(of) && (least < 0 || free < least) {
			least = free
		}
	}
	if least < 0 && strings.HasPrefix(of.Provisioning, "reservation:") {
		return 0
	}
	return least
}

func (c *Cloud) take(of Capacity, machines int) {
	for limit := range c.capacity {
		if limit.covers(of) {
			c.capacity[limit] -= machines
		}
	}
}

func (l Capacity) covers(of Capacity) bool {
	covers := func(mine, theirs string) bool { return mine == "" || mine == theirs }
	return covers(l.Zone, of.Zone) && covers(l.MachineType, of.MachineType) &&
		covers(l.Accelerator, of.Accelerator) && covers(l.Provisioning, of.Provisioning)
}

// kind is what a pool's machines in a zone are taken from.
func (p *pool) kind(zone string) Capacity {
	config := p.proto.GetConfig()
	of := Capacity{Zone: zone, MachineType: config.GetMachineType(), Provisioning: "on-demand"}
	if gpus := config.GetAccelerators(); len(gpus) > 0 {
		of.Accelerator = gpus[0].GetAcceleratorType()
	}
	affinity := config.GetReservationAffinity()
	switch {
	case config.GetFlexStart():
		of.Provisioning = "flex-start"
	case config.GetSpot() || config.GetPreemptible():
		of.Provisioning = "spot"
	case affinity.GetConsumeReservationType() == containerpb.ReservationAffinity_SPECIFIC_RESERVATION && len(affinity.GetValues()) > 0:
		name := affinity.GetValues()[0]
		of.Provisioning = "reservation:" + name[strings.LastIndex(name, "/")+1:]
	}
	return of
}

// provision tries to have as many machines as a pool wants in each zone, gives
// back what is too many, and answers the error of a stock-out.
func (c *Cloud) provision(p *pool, operation string) error {
	var short []string
	for _, zone := range p.zonesSeen() {
		of, have, want := p.kind(zone), p.nodes[zone], p.want[zone]
		if want <= have {
			c.take(of, want-have)
			p.nodes[zone] = want
			continue
		}
		got, free := want-have, c.free(of)
		if free >= 0 {
			got = min(got, max(free, 0))
		}
		c.attempts = append(c.attempts, Attempt{Pool: p.path, Operation: operation, Of: of, Wanted: want - have, Free: free, Got: got})
		c.take(of, got)
		p.nodes[zone] = have + got
		if p.nodes[zone] < want {
			short = append(short, zone)
		}
	}
	if len(short) == 0 {
		p.recover()
		return nil
	}
	return c.stockOut(p, short)
}

// stockOut marks a pool that could not have all its machines.
func (c *Cloud) stockOut(p *pool, zones []string) error {
	var reasons []string
	for _, zone := range zones {
		reasons = append(reasons, fmt.Sprintf("[GCE_STOCKOUT]: Instance '%s-%s' creation failed: The zone 'projects/%s/zones/%s' does not have enough resources available to fulfill the request.  Try a different zone, or try again later.",
			p.instanceBase(zone), hash(4, p.path, zone), c.options.Project, zone))
	}
	message := fmt.Sprintf("All cluster resources were brought up, but: only %d nodes out of %d have registered; this is likely due to Nodes failing to start correctly. Current errors: %s",
		p.size(), p.wanted(), strings.Join(reasons, "; "))
	p.fail(containerpb.StatusCondition_GCE_STOCKOUT, message)
	return detailed(codes.ResourceExhausted, message)
}

// fillUp gives a pool machines that it lacks, without anybody asking.
func (c *Cloud) fillUp(p *pool) {
	missing := p.wanted() - p.size()
	if missing <= 0 || len(p.proto.GetConditions()) == 0 {
		return
	}
	for _, zone := range p.zonesSeen() {
		of := p.kind(zone)
		got := p.want[zone] - p.nodes[zone]
		if free := c.free(of); free >= 0 {
			got = min(got, max(free, 0))
		}
		c.take(of, got)
		p.nodes[zone] += got
	}
	if p.size() == p.wanted() {
		p.recover()
	}
}

// SetQuota limits a metric, such as "NVIDIA_A100_GPUS", in a region, or in the project for "".
func (c *Cloud) SetQuota(region, metric string, limit float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setQuota(region, metric, limit)
}

func (c *Cloud) setQuota(region, metric string, limit float64) {
	if c.quota[region] == nil {
		c.quota[region] = make(map[string]float64)
	}
	c.quota[region][metric] = limit
}

// metrics is what one machine of a pool takes from the quotas of its region, and of the project.
func (c *Cloud) metrics(p *pool) map[string]float64 {
	config := p.proto.GetConfig()
	m := c.machine(config.GetMachineType())
	scarce := ""
	if config.GetSpot() || config.GetPreemptible() {
		scarce = catalogue.Spot
	}
	out := map[string]float64{scarce + catalogue.CPUQuota(m.Name): float64(m.CPUs)}
	for _, gpu := range config.GetAccelerators() {
		if metric := catalogue.GPUQuota(gpu.GetAcceleratorType()); metric != "" {
			out[scarce+metric] += float64(gpu.GetAcceleratorCount())
			out[catalogue.AllGPUs] += float64(gpu.GetAcceleratorCount())
		}
	}
	return out
}

// usage is what all pools of a region, or of the project for "", take of a metric together.
func (c *Cloud) usage(region, metric string) float64 {
	sum := 0.0
	for _, k := range c.clusters {
		for _, p := range k.pools {
			if region == "" || regionOf(k.location) == region {
				sum += c.metrics(p)[metric] * float64(p.wanted())
			}
		}
	}
	return sum
}

// mayHave refuses machines for a pool that go beyond a quota.
func (c *Cloud) mayHave(region string, p *pool, more int) error {
	each := c.metrics(p)
	for _, metric := range slices.Sorted(maps.Keys(each)) {
		region, of := region, "regional"
		if metric == catalogue.AllGPUs {
			region, of = "", "project"
		}
		limit, limited := c.quota[region][metric]
		request := each[metric] * float64(more)
		available := max(limit-c.usage(region, metric), 0)
		if !limited || request <= available || more <= 0 {
			continue
		}
		decimal := func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }
		return detailed(codes.PermissionDenied, fmt.Sprintf(
			"Insufficient %s quota to satisfy request: resource %q: request requires '%s' and is short '%s'. project has a quota of '%s' with '%s' available. View and manage quotas at https://console.cloud.google.com/iam-admin/quotas?usage=USED&project=%s.",
			of, metric, decimal(request), decimal(request-available), decimal(limit), decimal(available), c.options.Project))
	}
	return nil
}

func sortedValues[V any](of map[string]V) []V {
	names := make([]string, 0, len(of))
	for name := range of {
		names = append(names, name)
	}
	sort.Strings(names)
	out := make([]V, len(names))
	for i, name := range names {
		out[i] = of[name]
	}
	return out
}
