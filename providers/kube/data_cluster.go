package kube

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	k8s "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stokehq/stoke/providers/kube/live"
	"github.com/stokehq/stoke/providers/kube/object"
)

// server is what kube_server finds.
type server struct {
	ID       string `tfsdk:"cluster_id" is:"UID of the namespace kube-system, which tells clusters apart; \"\" where it may not be read."`
	Endpoint string `tfsdk:"endpoint" is:"URL of the API server."`
	Version  string `tfsdk:"version" is:"Version in full, such as v1.37.2 or v1.36.1-gke.1000."`
	Major    string `tfsdk:"major" is:"Its first number, such as 1."`
	Minor    string `tfsdk:"minor" is:"Its second number, such as 37, without what vendors append."`
	Platform string `tfsdk:"platform" is:"What the API server runs on, such as linux/amd64."`
}

var serverSource = source{
	name: "server", description: "The API server of a cluster, and its version.", results: server{},
	read: func(ctx context.Context, c *live.Cluster, _ tfsdk.Config) (any, diag.Diagnostics) {
		v, err := c.Version(ctx)
		if err != nil {
			return nil, unreadable(clusterAt, "The server's version", err)
		}
		return server{ID: c.ID, Endpoint: c.Endpoint, Version: v.GitVersion, Major: v.Major, Minor: digits(v.Minor), Platform: v.Platform}, nil
	},
}

// digits returns the digits at the beginning of a text.
func digits(s string) string {
	for i, r := range s {
		if r < '0' || r > '9' {
			return s[:i]
		}
	}
	return s
}

// found are the nodes that kube_nodes finds.
type foundNodes struct {
	Nodes []node `tfsdk:"nodes" is:"The nodes by name."`
}

type node struct {
	Name          string            `tfsdk:"name" is:"Its name."`
	Labels        map[string]string `tfsdk:"labels" is:"Its labels."`
	Taints        []taint           `tfsdk:"taints" is:"What keeps pods away that do not tolerate it."`
	Ready         bool              `tfsdk:"ready" is:"Whether its kubelet says that it can run pods."`
	Unschedulable bool              `tfsdk:"unschedulable" is:"Whether it is cordoned: it gets no new pods."`
	Address       string            `tfsdk:"internal_ip" is:"Its first address within the cluster's network; \"\" where it has none."`
	External      string            `tfsdk:"external_ip" is:"Its first address from outside; \"\" where it has none."`
	Capacity      map[string]string `tfsdk:"capacity" is:"What it has, by resource, as Kubernetes writes quantities: cpu, memory, nvidia.com/gpu."`
	Allocatable   map[string]string `tfsdk:"allocatable" is:"What of that pods can have."`
	GPUs          int64             `tfsdk:"gpus" is:"GPUs that pods can have: the sum of all resources called …/gpu."`
	GPUModel      string            `tfsdk:"gpu_model" is:"Model of its GPUs as the labels nvidia.com/gpu.product or cloud.google.com/gke-accelerator say; \"\" where they do not."`
	Architecture  string            `tfsdk:"architecture" is:"Its processor's, such as amd64."`
	OS            string            `tfsdk:"os_image" is:"Its operating system, such as Debian GNU/Linux 13 (trixie)."`
	Kernel        string            `tfsdk:"kernel_version" is:"Its kernel."`
	Kubelet       string            `tfsdk:"kubelet_version" is:"Version of its kubelet."`
	Runtime       string            `tfsdk:"container_runtime" is:"Its container runtime, such as containerd://2.2.9."`
}

type taint struct {
	Key    string `tfsdk:"key" is:"Its key."`
	Value  string `tfsdk:"value" is:"Its value."`
	Effect string `tfsdk:"effect" is:"NoSchedule, PreferNoSchedule or NoExecute."`
}

var nodesSource = source{
	name: "nodes", description: "The nodes of a cluster: what they have, and whether they are ready.", results: foundNodes{},
	arguments: map[string]schema.Attribute{
		"label_selector": schema.StringAttribute{Optional: true, Description: `Which ones, such as "nvidia.com/gpu.present=true,!spot". Default: all.`},
	},
	read: func(ctx context.Context, c *live.Cluster, config tfsdk.Config) (any, diag.Diagnostics) {
		at := path.Root("label_selector")
		var selector types.String
		diags := config.GetAttribute(ctx, at, &selector)
		if _, err := labels.Parse(selector.ValueString()); err != nil {
			diags.AddAttributeError(at, "Invalid label selector", sentence(err)+` Write requirements with commas between them, such as "zone in (a, b),!spot".`)
		}
		if diags.HasError() {
			return nil, diags
		}
		all := foundNodes{Nodes: []node{}}
		err := listPages(ctx, c, k8s.GroupVersionResource{Version: "v1", Resource: "nodes"}, metav1.ListOptions{LabelSelector: selector.ValueString()},
			func(u *unstructured.Unstructured) { all.Nodes = append(all.Nodes, nodeOf(u.Object)) })
		if err != nil {
			return nil, unreadable(clusterAt, "The nodes", err)
		}
		slices.SortFunc(all.Nodes, func(a, b node) int { return cmp.Compare(a.Name, b.Name) })
		return all, nil
	},
}

func nodeOf(u map[string]any) node {
	n := node{
		Name: text(u, "metadata", "name"), Labels: texts(u, "metadata", "labels"), Taints: []taint{},
		Capacity: texts(u, "status", "capacity"), Allocatable: texts(u, "status", "allocatable"),
		Architecture: text(u, "status", "nodeInfo", "architecture"), OS: text(u, "status", "nodeInfo", "osImage"),
		Kernel: text(u, "status", "nodeInfo", "kernelVersion"), Kubelet: text(u, "status", "nodeInfo", "kubeletVersion"),
		Runtime: text(u, "status", "nodeInfo", "containerRuntimeVersion"),
	}
	n.Unschedulable, _, _ = unstructured.NestedBool(u, "spec", "unschedulable")
	for _, t := range object.Parts(u, "spec", "taints") {
		n.Taints = append(n.Taints, taint{text(t, "key"), text(t, "value"), text(t, "effect")})
	}
	for _, condition := range object.Parts(u, "status", "conditions") {
		if text(condition, "type") == "Ready" {
			n.Ready = text(condition, "status") == "True"
		}
	}
	for _, a := range object.Parts(u, "status", "addresses") {
		switch {
		case text(a, "type") == "InternalIP" && n.Address == "":
			n.Address = text(a, "address")
		case text(a, "type") == "ExternalIP" && n.External == "":
			n.External = text(a, "address")
		}
	}
	for name, amount := range n.Allocatable {
		if q, err := resource.ParseQuantity(amount); err == nil && strings.HasSuffix(name, "/gpu") {
			n.GPUs += q.Value()
		}
	}
	n.GPUModel = cmp.Or(n.Labels["nvidia.com/gpu.product"], n.Labels["cloud.google.com/gke-accelerator"])
	return n
}

// foundClasses are what kube_storage_classes finds.
type foundClasses struct {
	Default *string        `tfsdk:"default" is:"Name of the class that claims have which name none: the newest of those marked as default. Null where there is none."`
	Classes []storageClass `tfsdk:"classes" is:"The classes by name."`
}

type storageClass struct {
	Name        string            `tfsdk:"name" is:"Its name."`
	Provisioner string            `tfsdk:"provisioner" is:"What makes its volumes, such as pd.csi.storage.gke.io."`
	Default     bool              `tfsdk:"default" is:"Whether it is marked as default."`
	Reclaim     string            `tfsdk:"reclaim_policy" is:"What becomes of a volume when its claim is deleted: Delete or Retain."`
	Binding     string            `tfsdk:"volume_binding_mode" is:"Immediate, or WaitForFirstConsumer: the volume is made for the first pod that wants it."`
	Expansion   bool              `tfsdk:"allow_volume_expansion" is:"Whether its volumes can grow."`
	Parameters  map[string]string `tfsdk:"parameters" is:"What its provisioner is told."`
}

var storageClassesSource = source{
	name: "storage_classes", description: "The storage classes of a cluster, and its default one.", results: foundClasses{},
	read: func(ctx context.Context, c *live.Cluster, _ tfsdk.Config) (any, diag.Diagnostics) {
		all, newest := foundClasses{Classes: []storageClass{}}, ""
		err := listPages(ctx, c, k8s.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}, metav1.ListOptions{}, func(u *unstructured.Unstructured) {
			isDefault, _ := strconv.ParseBool(u.GetAnnotations()["storageclass.kubernetes.io/is-default-class"])
			class := storageClass{
				Name: u.GetName(), Provisioner: text(u.Object, "provisioner"), Default: isDefault, Reclaim: text(u.Object, "reclaimPolicy"),
				Binding: text(u.Object, "volumeBindingMode"), Parameters: texts(u.Object, "parameters"),
			}
			class.Expansion, _, _ = unstructured.NestedBool(u.Object, "allowVolumeExpansion")
			all.Classes = append(all.Classes, class)
			// As the API server chooses: the newest, then the first by name.
			if made := text(u.Object, "metadata", "creationTimestamp"); isDefault && (all.Default == nil || made > newest || made == newest && class.Name < *all.Default) {
				all.Default, newest = &class.Name, made
			}
		})
		if err != nil {
			return nil, unreadable(clusterAt, "The storage classes", err)
		}
		slices.SortFunc(all.Classes, func(a, b storageClass) int { return cmp.Compare(a.Name, b.Name) })
		return all, nil
	},
}
