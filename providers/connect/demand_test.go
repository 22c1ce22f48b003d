package connect

import (
	"strings"
	"testing"
)

const gi = int64(1) << 30

// gpuNode is a node with GPUs of one model.
func gpuNode(name string, gpus int64, more func(*NodeGroup)) NodeGroup {
	g := NodeGroup{
		Name: name, Min: 1, Max: 1, CPU: 64000, Memory: 512 * gi, EphemeralStorage: NotKnown, Pods: 110,
		Extended: map[string]int64{"nvidia.com/gpu": gpus}, GPUModel: "H100", Labels: map[string]string{"zone": "a", "slot": "3"},
	}
	if more != nil {
		more(&g)
	}
	return g
}

func TestDemand(t *testing.T) {
	plain := NodeGroup{Name: "plain", Min: 1, Max: 1, CPU: 8000, Memory: 32 * gi, Pods: 110, Labels: map[string]string{"zone": "b"}}
	tainted := func(key string) func(*NodeGroup) {
		return func(g *NodeGroup) { g.Taints = []Taint{{Key: key, Value: "team", Effect: "NoSchedule"}} }
	}
	asks := func(requests map[string]int64) Demand {
		return Demand{Name: "Job a", Count: 1, Requests: requests}
	}
	gpus := func(n int64) Demand { return asks(map[string]int64{"nvidia.com/gpu": n, "cpu": 1000, "pods": 1}) }
	with := func(d Demand, change func(*Demand)) Demand { change(&d); return d }
	two := []NodeGroup{plain, gpuNode("gpu-1", 8, nil)}
	for name, c := range map[string]struct {
		demand Demand
		nodes  []NodeGroup
		want   Capability
		why    string
	}{
		"fits":                   {gpus(8), two, Fits, ""},
		"too many":               {gpus(16), two, Never, "each pod asks for 16 nvidia.com/gpu, and the largest node, gpu-1, has 8"},
		"none at all":            {asks(map[string]int64{"amd.com/gpu": 1}), two, Never, "each pod asks for 1 amd.com/gpu, and no node has any"},
		"not both at once":       {asks(map[string]int64{"cpu": 60000, "memory": 600 * gi}), []NodeGroup{gpuNode("a", 1, nil), gpuNode("b", 1, func(g *NodeGroup) { g.CPU, g.Memory = 1000, 1024*gi })}, Never, "asks for 60 cpu, 600Gi memory, and no one node has all of it"},
		"memory":                 {asks(map[string]int64{"memory": 600 * gi}), two, Never, "600Gi memory, and the largest node, gpu-1, has 512Gi"},
		"selector":               {with(gpus(1), func(d *Demand) { d.Selector = map[string]string{"zone": "c"} }), two, Never, "no node has the label zone=c; there are a, b"},
		"selector and too small": {with(gpus(1), func(d *Demand) { d.Selector = map[string]string{"zone": "b"} }), two, Never, "no node that its selector matches has any"},
		"model":                  {with(gpus(1), func(d *Demand) { d.Selector = map[string]string{"nvidia.com/gpu.product": "H100"} }), two, Fits, ""},
		"another model":          {with(gpus(1), func(d *Demand) { d.Selector = map[string]string{"nvidia.com/gpu.product": "B200"} }), two, Never, "no node has the label nvidia.com/gpu.product=B200; there are H100"},
		"affinity": {with(gpus(1), func(d *Demand) {
			d.Affinity = []Term{{Labels: []Requirement{{"zone", "In", []string{"a"}}, {"slot", "Gt", []string{"2"}}, {"x", "DoesNotExist", nil}}}}
		}), two, Fits, ""},
		"affinity of none": {with(gpus(1), func(d *Demand) { d.Affinity = []Term{{}, {Labels: []Requirement{{"slot", "Lt", []string{"3"}}}}} }), two, Never, "no node has what its node affinity asks for"},
		"affinity by name": {with(gpus(1), func(d *Demand) {
			d.Affinity = []Term{{Fields: []Requirement{{"metadata.name", "In", []string{"gpu-1"}}}}}
		}), two, Fits, ""},
		"spread":                    {with(gpus(1), func(d *Demand) { d.Present = []string{"rack"} }), two, Never, "no node has the label rack, over which the pods have to be spread"},
		"tainted":                   {gpus(1), []NodeGroup{plain, gpuNode("gpu-1", 8, tainted("dedicated"))}, Never, "the one node with enough (gpu-1) is tainted by dedicated=team:NoSchedule, which the pods do not tolerate"},
		"tolerated":                 {with(gpus(1), func(d *Demand) { d.Tolerations = []Toleration{{"dedicated", "", "team", ""}} }), []NodeGroup{gpuNode("gpu-1", 8, tainted("dedicated"))}, Fits, ""},
		"tolerates another":         {with(gpus(1), func(d *Demand) { d.Tolerations = []Toleration{{"dedicated", "", "others", ""}} }), []NodeGroup{gpuNode("gpu-1", 8, tainted("dedicated"))}, Never, "tainted by dedicated"},
		"tainted by what they ask":  {gpus(1), []NodeGroup{gpuNode("gpu-1", 8, tainted("nvidia.com/gpu"))}, Unsure, "the cluster may add a toleration of nvidia.com/gpu=team:NoSchedule"},
		"tainted, a runtime class":  {with(gpus(1), func(d *Demand) { d.Rewritten = "the runtime class nvidia" }), []NodeGroup{gpuNode("gpu-1", 8, tainted("dedicated"))}, Unsure, "the runtime class nvidia may add a toleration"},
		"not ready for now":         {gpus(1), []NodeGroup{gpuNode("gpu-1", 8, tainted("node.kubernetes.io/not-ready"))}, Fits, ""},
		"cordoned":                  {gpus(1), []NodeGroup{gpuNode("gpu-1", 8, func(g *NodeGroup) { g.Unschedulable = true })}, Unsure, "the one node that could take them (gpu-1) is cordoned"},
		"no nodes":                  {gpus(1), nil, Unsure, "no nodes yet"},
		"a group of none":           {gpus(1), []NodeGroup{gpuNode("gpu-1", 8, func(g *NodeGroup) { g.Min, g.Max = 0, 0 })}, Unsure, "no nodes yet"},
		"scaled from none":          {gpus(1), []NodeGroup{gpuNode("gpu-1", 8, func(g *NodeGroup) { g.Min, g.Max = 0, 4 })}, Fits, ""},
		"not known":                 {gpus(1), []NodeGroup{{Name: "pool", Min: 1, Max: 1, CPU: NotKnown, Memory: NotKnown, Pods: NotKnown, Partial: true}}, Unsure, "what pool will have is not known yet"},
		"not known, but too little": {gpus(1), []NodeGroup{{Name: "pool", Min: 1, Max: 1, CPU: 500, Memory: NotKnown, Pods: NotKnown, Partial: true}}, Never, "each pod asks for 1 cpu, and the largest node, pool, has 500m"},
		"on each node of none":      {with(gpus(1), func(d *Demand) { d.Selector, d.Each = map[string]string{"zone": "c"}, true }), two, Fits, ""},
		"on each that is too small": {with(gpus(16), func(d *Demand) { d.Selector, d.Each = map[string]string{"zone": "a"}, true }), two, Never, "has 8"},
		"unclear":                   {with(gpus(16), func(d *Demand) { d.Unclear = "they ask for devices" }), two, Unsure, "they ask for devices"},
	} {
		got := c.demand.CheckOn(Capacity{Groups: c.nodes})
		if got.Fit != c.want || !strings.Contains(got.Why, c.why) || c.why == "" != (got.Why == "") {
			t.Errorf("%s: got %d, %q, want %d, %q", name, got.Fit, got.Why, c.want, c.why)
		}
	}
}

func TestMostPods(t *testing.T) {
	d := Demand{Count: 9, Requests: map[string]int64{"nvidia.com/gpu": 3, "pods": 1}}
	pool := gpuNode("pool", 8, func(g *NodeGroup) { g.Min, g.Max = 0, 3 })
	if got := d.CheckOn(Capacity{Groups: []NodeGroup{pool, gpuNode("one", 4, nil)}}); got.Fit != Fits || got.Most != 2*3+1 {
		t.Errorf("got %+v", got)
	}
	partly := gpuNode("pool", 8, func(g *NodeGroup) { g.Pods = NotKnown })
	if got := d.CheckOn(Capacity{Groups: []NodeGroup{partly}}); got.Fit != Fits || got.Most != NotKnown {
		t.Errorf("got %+v", got)
	}
}
