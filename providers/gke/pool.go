package gke

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
)

// poolModel is the value of a gke_node_pool.
type poolModel struct {
	ID       types.String   `tfsdk:"id"`
	Project  types.String   `tfsdk:"project"`
	Status   types.String   `tfsdk:"status"`
	Timeouts timeouts.Value `tfsdk:"timeouts"`

	Cluster          types.String      `tfsdk:"cluster"`
	Name             types.String      `tfsdk:"name"`
	NodeCount        types.Int64       `tfsdk:"node_count"`
	Autoscaling      *scalingModel     `tfsdk:"autoscaling"`
	Zones            types.Set         `tfsdk:"zones"`
	MachineType      types.String      `tfsdk:"machine_type"`
	DiskType         types.String      `tfsdk:"disk_type"`
	DiskSize         types.Int64       `tfsdk:"disk_size_gb"`
	ImageType        types.String      `tfsdk:"image_type"`
	Labels           types.Map         `tfsdk:"labels"`
	Taints           []taintModel      `tfsdk:"taints"`
	Tags             types.Set         `tfsdk:"tags"`
	ResourceLabels   types.Map         `tfsdk:"resource_labels"`
	ServiceAccount   types.String      `tfsdk:"service_account"`
	Scopes           types.Set         `tfsdk:"oauth_scopes"`
	AutoRepair       types.Bool        `tfsdk:"auto_repair"`
	AutoUpgrade      types.Bool        `tfsdk:"auto_upgrade"`
	MaxSurge         types.Int64       `tfsdk:"max_surge"`
	MaxUnavailable   types.Int64       `tfsdk:"max_unavailable"`
	PodsPerNode      types.Int64       `tfsdk:"max_pods_per_node"`
	PodRange         types.String      `tfsdk:"pod_range"`
	WorkloadMetadata types.String      `tfsdk:"workload_metadata"`
	Spot             types.Bool        `tfsdk:"spot"`
	FlexStart        types.Bool        `tfsdk:"flex_start"`
	Queued           types.Bool        `tfsdk:"queued_provisioning"`
	Reservation      types.String      `tfsdk:"reservation"`
	Compact          types.Bool        `tfsdk:"compact_placement"`
	LocalSSDs        types.Int64       `tfsdk:"local_ssd_count"`
	ImageStreaming   types.Bool        `tfsdk:"image_streaming"`
	GVNIC            types.Bool        `tfsdk:"gvnic"`
	FastSocket       types.Bool        `tfsdk:"fast_socket"`
	Accelerator      *acceleratorModel `tfsdk:"accelerator"`
	Fallback         []fallbackModel   `tfsdk:"fallback"`

	Step     types.Int64  `tfsdk:"step"`
	Version  types.String `tfsdk:"version"`
	Capacity types.Object `tfsdk:"capacity"`
}

type scalingModel struct {
	Min      types.Int64  `tfsdk:"min"`
	Max      types.Int64  `tfsdk:"max"`
	TotalMin types.Int64  `tfsdk:"total_min"`
	TotalMax types.Int64  `tfsdk:"total_max"`
	Location types.String `tfsdk:"location_policy"`
}

type taintModel struct {
	Key    types.String `tfsdk:"key"`
	Value  types.String `tfsdk:"value"`
	Effect types.String `tfsdk:"effect"`
}

type acceleratorModel struct {
	Type      types.String `tfsdk:"type"`
	Count     types.Int64  `tfsdk:"count"`
	Partition types.String `tfsdk:"partition"`
	Sharing   types.String `tfsdk:"sharing"`
	Clients   types.Int64  `tfsdk:"shared_clients"`
	Driver    types.String `tfsdk:"driver_version"`
}

// fallbackModel is a step that a create takes where the one before ended in a
// stock-out or a missing quota. What is null is the pool's own argument.
type fallbackModel struct {
	Zones       types.Set    `tfsdk:"zones"`
	MachineType types.String `tfsdk:"machine_type"`
	Reservation types.String `tfsdk:"reservation"`
	FlexStart   types.Bool   `tfsdk:"flex_start"`
	Spot        types.Bool   `tfsdk:"spot"`
}

func (m *poolModel) kind() kind {
	return kind{name: "node_pool", what: "Node pool", limit: 60 * time.Minute, schema: poolSchema, unfinished: []string{"PROVISIONING", "RECONCILING", "ERROR"}, finishes: true}
}

func (m *poolModel) head() head { return head{&m.ID, &m.Project, &m.Status, m.Timeouts} }

// place is where the pool's cluster is, by the argument cluster: the id of a
// gke_cluster, LOCATION/NAME, or NAME where the provider has a location.
func (m *poolModel) place(j job) (project, location, cluster string, err error) {
	project, location, cluster, err = place(j, m.Cluster.ValueString(), "clusters")
	if m.Project.ValueString() != "" && !strings.HasPrefix(m.Cluster.ValueString(), "projects/") {
		project = m.Project.ValueString()
	}
	return project, location, cluster, err
}

func poolSchema(context.Context) schema.Schema {
	number := func(description string) schema.Attribute {
		return schema.Int64Attribute{Optional: true, Description: description}
	}
	return schema.Schema{
		Description: "A node pool of a gke_cluster. Arguments that are left out are Google's choice and never a difference; one that is taken out of the configuration leaves things as they are, but for labels, taints, tags and autoscaling, which are taken away. " +
			"What makes nodes anew is sent in one call, so that they are made anew once.",
		Attributes: map[string]schema.Attribute{
			"cluster":             requiredFixed("The id of a gke_cluster, or LOCATION/NAME."),
			"name":                requiredFixed("Its name."),
			"node_count":          serversNumber("Nodes in each zone: a pool in three zones has three times as many. Leave it out with autoscaling."),
			"zones":               serversSet("Zones of the nodes. A pool with GPUs in a regional cluster has to name them. Default: those of the cluster."),
			"machine_type":        servers(`Machine type, such as "n2-standard-8" or "a2-highgpu-1g". Default: e2-medium.`),
			"disk_type":           servers("Type of the boot disk."),
			"disk_size_gb":        serversNumber("Size of the boot disk, in GiB."),
			"image_type":          servers("Image of the nodes, such as COS_CONTAINERD or UBUNTU_CONTAINERD."),
			"labels":              optionalMap("Labels of the nodes in Kubernetes."),
			"taints":              taintSchema(),
			"tags":                optionalSet("Network tags, which firewall rules name."),
			"resource_labels":     optionalMap("Labels of the machines in Google Cloud. Google's own are left alone."),
			"service_account":     serversFixed("Service account of the nodes. Default: the project's default one, which many projects have deleted."),
			"oauth_scopes":        serversSetFixed("What the nodes may ask tokens for. Google adds one for monitoring, which is no difference."),
			"auto_repair":         serversFlag("Whether broken nodes are made anew. Flex-start goes without."),
			"auto_upgrade":        serversFlag("Whether nodes are upgraded. A cluster with a release channel wants it."),
			"max_surge":           serversNumber("Nodes that an upgrade may have too many."),
			"max_unavailable":     serversNumber("Nodes that an upgrade may lack."),
			"max_pods_per_node":   serversNumberFixed("Largest number of pods on one node."),
			"pod_range":           serversFixed("Name of the subnetwork's secondary range for its pods. Default: the cluster's."),
			"workload_metadata":   servers("GKE_METADATA, by which pods act as their own service accounts, or GCE_METADATA."),
			"spot":                serversFlagFixed("Whether the machines are cheap ones that Google may take back."),
			"flex_start":          serversFlagFixed("Whether the machines are waited for, and live seven days at most. It needs autoscaling."),
			"queued_provisioning": serversFlagFixed("Whether nodes come by ProvisioningRequest alone. It needs autoscaling with total_min = 0."),
			"reservation":         serversFixed("Name of a reservation to take the machines from; of another project, as projects/PROJECT/reservations/NAME."),
			"compact_placement":   serversFlagFixed("Whether the machines stand close to each other, in one zone."),
			"local_ssd_count":     serversNumberFixed("Local SSDs that are the pods' ephemeral storage."),
			"image_streaming":     serversFlag("Whether containers start before their images are there in full."),
			"gvnic":               serversFlag("Whether nodes have Google's virtual network card."),
			"fast_socket":         serversFlag("Whether NCCL has Google's plugin, which needs gvnic."),
			"step":                schema.Int64Attribute{Computed: true, Description: "Which step was taken: 0 is the pool's own arguments, 1 the first fallback.", PlanModifiers: []planmodifier.Int64{int64planmodifier.UseStateForUnknown()}},
			"version":             computed("Version of the nodes."),
			"capacity":            connect.CapacityAttribute("What its nodes have for pods, by a table of machine types less what the kubelet and GKE reserve."),
		},
		Blocks: map[string]schema.Block{
			"autoscaling": schema.SingleNestedBlock{Description: "How many nodes there may be. min and max are in each zone, total_min and total_max in all.", Attributes: map[string]schema.Attribute{
				"min": number("Least in each zone."), "max": number("Most in each zone."), "total_min": number("Least in all."), "total_max": number("Most in all."),
				"location_policy": schema.StringAttribute{Optional: true, Description: "BALANCED, or ANY, which takes machines where there are some. Default: Google's choice."},
			}},
			"accelerator": acceleratorSchema(),
			"fallback": schema.ListNestedBlock{Description: "What to try, in this order, when making the pool ends in a stock-out or a missing quota. A pool that is there never leaves its step.", NestedObject: schema.NestedBlockObject{Attributes: map[string]schema.Attribute{
				"zones":        optionalSet("Other zones."),
				"machine_type": schema.StringAttribute{Optional: true, Description: "Another machine type."},
				"reservation":  schema.StringAttribute{Optional: true, Description: `Another reservation; "" is none.`},
				"flex_start":   schema.BoolAttribute{Optional: true, Description: "Another flex_start."},
				"spot":         schema.BoolAttribute{Optional: true, Description: "Another spot."},
			}}},
		},
	}
}

func taintSchema() schema.Attribute {
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{Required: true, Description: description}
	}
	return schema.ListNestedAttribute{Optional: true, Description: "Taints of the nodes. Those that GKE sets by itself, such as nvidia.com/gpu, are left alone.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
		"key": text("Key."), "value": text("Value."), "effect": text("NO_SCHEDULE, PREFER_NO_SCHEDULE, or NO_EXECUTE."),
	}}}
}

func acceleratorSchema() schema.Block {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	const why = "A pool gets and loses its GPUs only with all its nodes."
	return schema.SingleNestedBlock{
		Description: "GPUs of each node. sharing, shared_clients and driver_version change in place.",
		PlanModifiers: []planmodifier.Object{objectplanmodifier.RequiresReplaceIf(func(_ context.Context, req planmodifier.ObjectRequest, resp *objectplanmodifier.RequiresReplaceIfFuncResponse) {
			resp.RequiresReplace = req.StateValue.IsNull() != req.PlanValue.IsNull()
		}, why, why)},
		Attributes: map[string]schema.Attribute{
			"type":           schema.StringAttribute{Optional: true, Description: `Required: the type, such as "nvidia-l4".`, PlanModifiers: replace},
			"count":          schema.Int64Attribute{Optional: true, Description: "Required: how many.", PlanModifiers: []planmodifier.Int64{int64planmodifier.RequiresReplace()}},
			"partition":      schema.StringAttribute{Optional: true, Description: `Size of the parts that each is cut into (MIG), such as "1g.5gb".`, PlanModifiers: replace},
			"sharing":        schema.StringAttribute{Optional: true, Description: "How pods share one: TIME_SHARING or MPS. Default: not at all."},
			"shared_clients": schema.Int64Attribute{Optional: true, Description: "How many pods share one."},
			"driver_version": servers("DEFAULT, LATEST, or INSTALLATION_DISABLED."),
		},
	}
}

// named is that of model: PROJECT/LOCATION/CLUSTER/NAME, LOCATION/CLUSTER/NAME,
// or the path.
func (m *poolModel) named(j job, id string) (map[string]string, error) {
	cluster, name := id, ""
	if at := strings.LastIndexByte(id, '/'); at > 0 {
		cluster, name = strings.TrimSuffix(id[:at], "/nodePools"), id[at+1:]
	}
	project, location, of, err := place(j, cluster, "clusters")
	if err != nil || name == "" {
		return nil, fmt.Errorf("%q names no node pool: give PROJECT/LOCATION/CLUSTER/NAME, or LOCATION/CLUSTER/NAME", id)
	}
	if name == bootstrap {
		return nil, fmt.Errorf("%s is the pool that a cluster is made with, which goes once another one runs: it is not managed by itself", bootstrap)
	}
	return map[string]string{"project": project, "name": name, "cluster": fmt.Sprintf("projects/%s/locations/%s/clusters/%s", project, location, of)}, nil
}

// step is the pool as a step of its fallback has it; 0 is itself.
func (m *poolModel) step(n int) *poolModel {
	out := *m
	if n < 1 || n > len(m.Fallback) {
		return &out
	}
	f := m.Fallback[n-1]
	if !f.Zones.IsNull() {
		out.Zones = f.Zones
	}
	if !f.MachineType.IsNull() {
		out.MachineType = f.MachineType
	}
	if !f.Reservation.IsNull() {
		out.Reservation = f.Reservation
	}
	if !f.FlexStart.IsNull() {
		out.FlexStart = f.FlexStart
	}
	if !f.Spot.IsNull() {
		out.Spot = f.Spot
	}
	return &out
}
