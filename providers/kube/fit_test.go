package kube

import (
	"strings"
	"testing"

	"github.com/zclconf/go-cty/cty"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubetest"
)

// deployment is one whose pods have a spec.
func deployment(name, spec string) string {
	return "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + name + "}\nspec:\n  replicas: 3\n  selector: {matchLabels: {app: a}}\n  template: {metadata: {labels: {app: a}}, spec: " + spec + "}\n"
}

// asks is a container that is limited, and by that asks for as much.
func asks(limits string) string {
	return "containers: [{name: a, image: x, resources: {limits: {" + limits + "}}}]"
}

// TestPodsThatNoNodeTakes: an error at plan, before anything is made.
func TestPodsThatNoNodeTakes(t *testing.T) {
	w := newWorld(t)
	node := "shut-" + w.ns
	w.cluster.AddNodes(t, kubetest.Node{Name: node, Labels: map[string]string{"pool": w.ns}, Taints: []core.Taint{{Key: "dedicated", Value: "others", Effect: core.TaintEffectNoSchedule}}})
	for name, c := range map[string]struct{ spec, want string }{
		"gpus":       {"{" + asks("nvidia.com/gpu: 16") + "}", "each pod asks for 16 nvidia.com/gpu, and the largest node, gpu-1, has 8"},
		"no such":    {"{" + asks("amd.com/gpu: 1") + "}", "each pod asks for 1 amd.com/gpu, and no node has any"},
		"memory":     {"{" + asks("memory: 2Ti") + "}", "2Ti memory, and the largest node, gpu-1, has 512Gi"},
		"a sidecar":  {"{initContainers: [{name: s, image: x, restartPolicy: Always, resources: {requests: {cpu: 60}}}], " + asks("cpu: 5") + "}", "asks for 65 cpu"},
		"selector":   {"{nodeSelector: {nvidia.com/gpu.product: B200}, " + asks("cpu: 1") + "}", "no node has the label nvidia.com/gpu.product=B200; there are NVIDIA-H100-80GB-HBM3"},
		"affinity":   {"{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: nvidia.com/gpu.count, operator: Gt, values: [\"8\"]}]}]}}}, " + asks("cpu: 1") + "}", "no node has what its node affinity asks for"},
		"taint":      {"{nodeSelector: {pool: " + w.ns + "}, " + asks("cpu: 1") + "}", "the one node with enough (" + node + ") is tainted by dedicated=others:NoSchedule, which the pods do not tolerate"},
		"spread":     {"{topologySpreadConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: DoNotSchedule}], " + asks("cpu: 1") + "}", "no node has the label rack"},
		"init alone": {"{initContainers: [{name: s, image: x, resources: {requests: {cpu: 70}}}], " + asks("cpu: 5") + "}", "asks for 70 cpu, and the largest node, gpu-1, has 64"},
	} {
		t.Run(name, func(t *testing.T) {
			pl := w.plan(thing{}, w.yaml(deployment("a", c.spec)))
			says(t, pl.said(), "No node can take the pods", "Deployment "+w.ns+"/a would wait for a node for ever: ")
			says(t, pl.said(), "No node can take the pods", c.want)
		})
	}
	for name, spec := range map[string]string{
		"gpus":       "{" + asks("nvidia.com/gpu: 8") + "}",
		"tolerated":  "{nodeSelector: {pool: " + w.ns + "}, tolerations: [{key: dedicated, operator: Exists}], " + asks("cpu: 1") + "}",
		"init alone": "{initContainers: [{name: s, image: x, resources: {requests: {cpu: 60}}}], " + asks("cpu: 5") + "}",
		"preferred":  "{topologySpreadConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway}], " + asks("cpu: 1") + "}",
	} {
		if pl := w.plan(thing{}, w.yaml(deployment("a", spec))); pl.said().HasErrors() || strings.Contains(strings.Join(pl.notes, "\n"), "stoke cannot tell") {
			t.Errorf("%s: %v %v", name, pl.said(), pl.notes)
		}
	}
	notes := strings.Join(w.plan(thing{}, w.yaml(deployment("a", "{"+asks("nvidia.com/gpu: 5")+"}"))).notes, "\n")
	if want := "Deployment " + w.ns + "/a has 3 pods; even if nothing else ran, its cluster has room for 1 of them at a time"; !strings.Contains(notes, want) {
		t.Errorf("no %q in %q", want, notes)
	}
}

// What is in the cluster and stays as it is, is no news.
func TestPodsThatAreThereAlready(t *testing.T) {
	w := newWorld(t)
	patient := map[string]cty.Value{"wait": cty.False}
	text := deployment("a", "{"+asks("nvidia.com/gpu: 16")+"}")
	pl := w.plan(thing{}, w.yaml(text, patient))
	says(t, pl.said(), "No node can take the pods", "16")
	it, r := w.apply(pl)
	if r.Diagnostics.HasErrors() {
		t.Fatal(r.Diagnostics)
	}
	more := w.plan(w.refresh(it), w.yaml(text+"---\n"+configMap1("b", "1"), patient))
	if more.said().HasErrors() {
		t.Error(more.said())
	}
	says(t, w.plan(w.refresh(it), w.yaml(strings.ReplaceAll(text, "16", "17"), patient)).said(), "No node can take the pods", "17")
}

// TestPodsBesideOtherProviders: what providers make that stoke does not have in
// it may be nodes.
func TestPodsBesideOtherProviders(t *testing.T) {
	w := newWorld(t)
	w.others = []string{"aws_eks_node_group.gpu"}
	pl := w.plan(thing{}, w.yaml(deployment("a", "{"+asks("nvidia.com/gpu: 16")+"}")))
	if want := "/a: aws_eks_node_group.gpu may add nodes"; pl.said().HasErrors() || !strings.Contains(strings.Join(pl.notes, "\n"), want) {
		t.Errorf("%v %q", pl.said(), pl.notes)
	}
}

// TestPodsNobodyCanTell: what cannot be told is said, and is no error.
func TestPodsNobodyCanTell(t *testing.T) {
	w := newWorld(t)
	node := "own-" + w.ns
	w.cluster.AddNodes(t, kubetest.Node{Name: node, Labels: map[string]string{"pool": w.ns}, Allocatable: map[string]string{"example.com/npu": "4"}, Taints: []core.Taint{{Key: "example.com/npu", Effect: core.TaintEffectNoSchedule}}})
	plugin := "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: plugin}\nspec: {selector: {matchLabels: {app: p}}, template: {metadata: {labels: {app: p}}, spec: {" + asks("cpu: 1") + "}}}\n"
	machines := strings.NewReplacer("shape", "machineset", "Shape", "MachineSet", "NS", w.ns).Replace("---" + shape + oneShape + "{sides: 3}\n")
	machines = strings.Replace(machines, "metadata: {name: a}", "metadata: {name: more}", 1)
	for name, c := range map[string]struct{ text, want string }{
		"claims":        {deployment("a", "{resourceClaims: [{name: g, resourceClaimTemplateName: g}], "+asks("cpu: 1000")+"}"), "they ask for devices by resource claims"},
		"a scheduler":   {deployment("a", "{schedulerName: other, "+asks("cpu: 1000")+"}"), "the scheduler other has rules of its own"},
		"own taint":     {deployment("a", "{nodeSelector: {pool: "+w.ns+"}, "+asks("example.com/npu: 4")+"}"), "the cluster may add a toleration of example.com/npu:NoSchedule to pods that ask for example.com/npu"},
		"machines":      {deployment("a", "{"+asks("cpu: 1000")+"}") + machines, "/a: MachineSet " + w.ns + "/more of kube_manifest.x may add nodes"},
		"device plugin": {deployment("a", "{"+asks("amd.com/gpu: 1")+"}") + plugin, "and no node has any now, and DaemonSet " + w.ns + "/plugin of kube_manifest.x may bring it"},
	} {
		t.Run(name, func(t *testing.T) {
			pl := w.plan(thing{}, w.yaml(c.text))
			if pl.said().HasErrors() || !strings.Contains(strings.Join(pl.notes, "\n"), c.want) {
				t.Errorf("%v %q", pl.said(), pl.notes)
			}
		})
	}
	pl := w.plan(thing{}, w.yaml(deployment("a", "{"+asks("cpu: 65")+"}")+plugin))
	says(t, pl.said(), "No node can take the pods", "asks for 65 cpu") // which no plugin brings
	daemon := strings.Replace(plugin, "spec: {containers", "spec: {nodeSelector: {nowhere: \"1\"}, containers", 1)
	if pl := w.plan(thing{}, w.yaml(daemon)); pl.said().HasErrors() {
		t.Errorf("a DaemonSet for nodes that are to come: %v", pl.said())
	}

	w.kubectl("create", "clusterrole", "narrow-"+w.ns, "--verb=get,patch,create", "--resource=deployments.apps,namespaces")
	w.kubectl("create", "clusterrolebinding", "narrow-"+w.ns, "--clusterrole=narrow-"+w.ns, "--user=narrow-"+w.ns)
	narrow := *w
	narrow.config = w.cluster.KubeconfigFor(t, kubetest.Login{User: "narrow-" + w.ns})
	pl = narrow.plan(thing{}, w.yaml(deployment("a", "{"+asks("cpu: 65")+"}")))
	if want := "the user of the connection may not list nodes"; pl.said().HasErrors() || !strings.Contains(strings.Join(pl.notes, "\n"), want) {
		t.Errorf("%v %q", pl.said(), pl.notes)
	}
}

// TestAutoscaledCluster: nodes that are not there now may be added.
func TestAutoscaledCluster(t *testing.T) {
	w := newWorld(t)
	maps := w.cluster.Client.CoreV1().ConfigMaps("kube-system")
	if _, err := maps.Create(t.Context(), &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cluster-autoscaler-status"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pl := w.plan(thing{}, w.yaml(deployment("a", "{"+asks("cpu: 65")+"}")))
	w.kubectl("-n", "kube-system", "delete", "configmap", "cluster-autoscaler-status")
	if pl.said().HasErrors() || !strings.Contains(strings.Join(pl.notes, "\n"), "/a: an autoscaler adds nodes") {
		t.Errorf("%v %q", pl.said(), pl.notes)
	}

	// Who may not read that, is told of nodes that are a cloud's.
	w.kubectl("create", "clusterrole", "some-"+w.ns, "--verb=get,list,patch,create", "--resource=deployments.apps,namespaces,nodes")
	w.kubectl("create", "clusterrolebinding", "some-"+w.ns, "--clusterrole=some-"+w.ns, "--user=some-"+w.ns)
	w.config = w.cluster.KubeconfigFor(t, kubetest.Login{User: "some-" + w.ns})
	text := deployment("a", "{"+asks("cpu: 65")+"}")
	says(t, w.plan(thing{}, w.yaml(text)).said(), "No node can take the pods", "has 64")
	w.cluster.AddNodes(t, kubetest.Node{Name: "cloud-" + w.ns})
	w.kubectl("patch", "node", "cloud-"+w.ns, "-p", `{"spec": {"providerID": "gce://project/zone/name"}}`)
	pl = w.plan(thing{}, w.yaml(text))
	if pl.said().HasErrors() || !strings.Contains(strings.Join(pl.notes, "\n"), "an autoscaler, which may be there, adds nodes") {
		t.Errorf("%v %q", pl.said(), pl.notes)
	}
}

// TestPlannedNodes: what the plan adds to a cluster counts.
func TestPlannedNodes(t *testing.T) {
	w := newWorld(t)
	uid := w.cluster.Kubectl(t, "", "get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")
	pool := func(gpus, most int64) cty.Value {
		v, err := connect.Capacity{Groups: []connect.NodeGroup{{Max: most, CPU: 96000, Memory: 1 << 40, EphemeralStorage: connect.NotKnown, Pods: 110, Extended: map[string]int64{"nvidia.com/gpu": gpus}}}}.Value()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	access := func(id cty.Value) cty.Value {
		return cty.ObjectVal(map[string]cty.Value{"id": id, "endpoint": cty.NullVal(cty.String)})
	}
	pl := w.plan(thing{}, w.yaml(deployment("a", "{"+asks("nvidia.com/gpu: 16")+"}")))
	says(t, pl.said(), "No node can take the pods", "has 8")
	for name, c := range map[string]struct {
		instance  map[string]cty.Value
		typeName  string
		bad, note string
	}{
		"enough":          {map[string]cty.Value{"cluster_id": cty.StringVal(uid), "capacity": pool(16, 3)}, "x_pool", "", ""},
		"by its cluster":  {map[string]cty.Value{"cluster": access(cty.StringVal(uid)), "capacity": pool(16, 3)}, "x_pool", "", ""},
		"too small":       {map[string]cty.Value{"cluster_id": cty.StringVal(uid), "capacity": pool(12, 3)}, "x_pool", "the largest node, x_pool.p, has 12", ""},
		"none at most":    {map[string]cty.Value{"cluster_id": cty.StringVal(uid), "capacity": pool(16, 0)}, "x_pool", "the largest node, gpu-1, has 8", ""},
		"another cluster": {map[string]cty.Value{"cluster_id": cty.StringVal("other"), "capacity": pool(16, 3)}, "x_pool", "the largest node, gpu-1, has 8", ""},
		"which cluster":   {map[string]cty.Value{"cluster": access(cty.UnknownVal(cty.String)), "capacity": pool(16, 3)}, "x_pool", "", "whether the nodes of x_pool.p are in this cluster is not known yet"},
		"not known":       {map[string]cty.Value{"cluster_id": cty.StringVal(uid), "capacity": cty.UnknownVal(connect.CapacityType)}, "x_pool", "", "what x_pool.p brings is not known yet"},
		"a node":          {map[string]cty.Value{"host": cty.StringVal("a")}, "x_node", "", "what x_node.p brings is not known"},
		"something else":  {map[string]cty.Value{"host": cty.StringVal("a")}, "x_disk", "the largest node, gpu-1, has 8", ""},
	} {
		planned := []providers.PlannedInstance{
			{Source: Source, Address: pl.prior.address(), Type: pl.kind, Prior: pl.prior.state, Planned: pl.Planned},
			{Source: "registry.terraform.io/x/x", Address: c.typeName + ".p", Type: c.typeName, Prior: cty.NullVal(cty.DynamicPseudoType), Planned: cty.ObjectVal(c.instance)},
		}
		notes, diags := w.entry.Review(t.Context(), providers.Review{Planned: planned})
		if c.bad != "" {
			says(t, diags, "No node can take the pods", c.bad)
			continue
		}
		text := ""
		for _, n := range notes {
			text += n.Text + "\n"
		}
		if diags.HasErrors() || !strings.Contains(text, c.note) {
			t.Errorf("%s: %v %q", name, diags, text)
		}
	}
}

// TestAssumedNodes: pods that no node could take are a note where the configuration
// assumes nodes, and the refusal names the argument.
func TestAssumedNodes(t *testing.T) {
	w := newWorld(t)
	text := deployment("a", "{"+asks("nvidia.com/gpu: 16")+"}")
	says(t, w.plan(thing{}, w.yaml(text)).said(), "No node can take the pods", "set assume_nodes = true.")
	pl := w.plan(thing{}, w.yaml(text, map[string]cty.Value{"assume_nodes": cty.True}))
	if want := "Deployment " + w.ns + "/a would wait for a node for ever"; pl.said().HasErrors() || !strings.Contains(strings.Join(pl.notes, "\n"), want) {
		t.Errorf("%v %q", pl.said(), pl.notes)
	}
}
