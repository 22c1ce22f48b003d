package gke

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
)

// poolModel is the value of a gke_node_pool.
type poolModel struct {
	ID        types.String   `tfsdk:"id"`
	Project   types.String   `tfsdk:"project"`
	Status    types.String   `tfsdk:"status"`
	AllLabels types.Map      `tfsdk:"effective_labels"`
	Timeouts  timeouts.Value `tfsdk:"timeouts"`

	Cluster          types.String `tfsdk:"cluster"`
	Name             types.String `tfsdk:"name"`
	NodeCount        types.Int64  `tfsdk:"node_count"`
	Initial          types.Int64  `tfsdk:"initial_node_count"`
	Autoscaling      types.Object `tfsdk:"autoscaling"`
	Zones            types.Set    `tfsdk:"zones"`
	MachineType      types.String `tfsdk:"machine_type"`
	DiskType         types.String `tfsdk:"disk_type"`
	DiskSize         types.Int64  `tfsdk:"disk_size_gb"`
	ImageType        types.String `tfsdk:"image_type"`
	Labels           types.Map    `tfsdk:"labels"`
	Taints           types.List   `tfsdk:"taints"`
	Tags             types.Set    `tfsdk:"tags"`
	ResourceLabels   types.Map    `tfsdk:"resource_labels"`
	ServiceAccount   types.String `tfsdk:"service_account"`
	Scopes           types.Set    `tfsdk:"oauth_scopes"`
	AutoRepair       types.Bool   `tfsdk:"auto_repair"`
	AutoUpgrade      types.Bool   `tfsdk:"auto_upgrade"`
	MaxSurge         types.Int64  `tfsdk:"max_surge"`
	MaxUnavailable   types.Int64  `tfsdk:"max_unavailable"`
	PodsPerNode      types.Int64  `tfsdk:"max_pods_per_node"`
	PodRange         types.String `tfsdk:"pod_range"`
	WorkloadMetadata types.String `tfsdk:"workload_metadata"`
	Spot             types.Bool   `tfsdk:"spot"`
	FlexStart        types.Bool   `tfsdk:"flex_start"`
	Queued           types.Bool   `tfsdk:"queued_provisioning"`
	Reservation      types.String `tfsdk:"reservation"`
	Compact          types.Bool   `tfsdk:"compact_placement"`
	LocalSSDs        types.Int64  `tfsdk:"local_ssd_count"`
	RawSSDs          types.Int64  `tfsdk:"raw_local_ssd_count"`
	BootDisks        types.List   `tfsdk:"secondary_boot_disks"`
	MaxRun           types.String `tfsdk:"max_run_duration"`
	Kubelet          types.Object `tfsdk:"kubelet"`
	Linux            types.Object `tfsdk:"linux"`
	Drain            types.Object `tfsdk:"drain"`
	BlueGreen        types.Object `tfsdk:"blue_green"`
	Excluded         types.Bool   `tfsdk:"exclude_upgrades_until_end_of_support"`
	AllowDataLoss    types.Bool   `tfsdk:"allow_data_loss"`
	ImageStreaming   types.Bool   `tfsdk:"image_streaming"`
	GVNIC            types.Bool   `tfsdk:"gvnic"`
	FastSocket       types.Bool   `tfsdk:"fast_socket"`
	Accelerator      types.Object `tfsdk:"accelerator"`
	Fallback         types.List   `tfsdk:"fallback"`

	Version     types.String `tfsdk:"version"`
	NodeVersion types.String `tfsdk:"node_version"`
	Step        types.Int64  `tfsdk:"step"`
	Taken       types.Object `tfsdk:"step_arguments"`
	Capacity    types.Object `tfsdk:"capacity"`
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

// scaling and gpus are those blocks; nil where they are not declared, and while they are
// not known.
func (m *poolModel) scaling() *scalingModel { return objectOf[scalingModel](m.Autoscaling) }

func (m *poolModel) gpus() *acceleratorModel { return objectOf[acceleratorModel](m.Accelerator) }

func (m *poolModel) kind() kind {
	return kind{name: "node_pool", what: "Node pool", limit: 60 * time.Minute, schema: poolSchema, unfinished: []string{"PROVISIONING", "RECONCILING", "ERROR"}, finishes: true}
}

func (m *poolModel) head() head {
	return head{&m.ID, &m.Project, &m.Status, m.Timeouts, &m.ResourceLabels, &m.AllLabels}
}

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
	return schema.Schema{
		Description: "A node pool of a gke_cluster. Arguments that are left out are Google's choice and never a difference; " +
			"an argument that is removed from the configuration leaves the pool as it is, except labels, taints, tags, " +
			"autoscaling and the groups of settings, which are removed. " +
			"Changes that recreate nodes are sent in one call, so that nodes are recreated once.",
		Attributes: map[string]schema.Attribute{
			"cluster":            referenceAttribute(schema.StringAttribute{Required: true, Description: "The id of a gke_cluster, or LOCATION/NAME."}, samePlace),
			"name":               requiredName("Its name.", 40),
			"node_count":         serversNumber("Nodes in each zone: a pool in three zones has three times as many. Leave it out with autoscaling."),
			"initial_node_count": optionalNumber("Nodes in each zone that a pool with autoscaling is made with. Default: min, or as many as total_min needs. A change has no effect on an existing pool."),
			"zones":              serversSet("Zones of the nodes. A pool with GPUs in a regional cluster has to name them. Default: those of the cluster."),
			"machine_type":       servers(`Machine type, such as "n2-standard-8" or "a2-highgpu-1g". Default: e2-medium.`),
			"disk_type":          servers("Type of the boot disk."),
			"disk_size_gb":       serversNumber("Size of the boot disk, in GiB."),
			"image_type":         servers("Image of the nodes, such as COS_CONTAINERD or UBUNTU_CONTAINERD."),
			"labels":             nodeLabels(),
			"taints":             taintSchema(),
			"tags":               tagSet("Network tags, which firewall rules name."),
			"resource_labels":    optionalLabels("Labels of the machines in Google Cloud. Google's own are left alone."),
			"service_account":    serversFixed("Service account of the nodes. Default: the project's default one, which many projects have deleted."),
			"oauth_scopes":       scopesSchema(),
			"auto_repair":        serversFlag("Whether broken nodes are recreated. Flex-start goes without."),
			"auto_upgrade":       serversFlag("Whether nodes are upgraded. A cluster with a release channel wants it."),
			"max_surge":          serversNumber("Nodes that an upgrade may have too many."),
			"max_unavailable":    serversNumber("Nodes that an upgrade may lack."),
			"max_pods_per_node":  serversNumberFixed("Largest number of pods on one node."),
			"pod_range":          serversFixed("Name of the subnetwork's secondary range for its pods. Default: the cluster's pod range."),
			"workload_metadata": servers("GKE_METADATA, so that pods act as their own service " +
				"accounts, or GCE_METADATA."),
			"spot": steppedFlag("Whether the machines are cheap, and Google may take " +
				"them back."),
			"flex_start": steppedFlag("Whether to wait for the machines, which then live " +
				"seven days at most. It needs autoscaling."),
			"queued_provisioning": serversFlagFixed("Whether nodes are only made for a " +
				"ProvisioningRequest. It needs autoscaling with total_min = 0."),
			"reservation":                           steppedText("Name of a reservation to take the machines from; of another project, as projects/PROJECT/reservations/NAME."),
			"compact_placement":                     serversFlagFixed("Whether the machines stand close to each other, in one zone."),
			"local_ssd_count":                       serversNumberFixed("Local SSDs that are the pods' ephemeral storage."),
			"raw_local_ssd_count":                   serversNumberFixed("Local SSDs that pods take as block devices."),
			"secondary_boot_disks":                  bootDisksSchema(),
			"max_run_duration":                      servers(`How long a node lives, such as "24h". Flex-start nodes live seven days at most.`),
			"kubelet":                               kubeletSchema(),
			"linux":                                 linuxSchema(),
			"drain":                                 drainSchema(),
			"blue_green":                            blueGreenSchema(),
			"exclude_upgrades_until_end_of_support": serversFlag("Whether Google upgrades the nodes only when their version is supported no more: protection for long runs."),
			"allow_data_loss": schema.BoolAttribute{Optional: true, Description: "Whether a plan " +
				"that recreates nodes or deletes the pool may lose data on local SSDs and interrupt experiments in the " +
				"cluster. Without it such a plan is refused."},
			"image_streaming": serversFlag("Whether containers start before their images are there in full."),
			"gvnic":           serversFlag("Whether nodes have Google's virtual network card."),
			"fast_socket":     serversFlag("Whether NCCL has Google's plugin, which needs gvnic."),
			"version":         schema.StringAttribute{Optional: true, Description: `Least version of the nodes, such as "1.35". Anything newer will do: nothing is ever downgraded. The cluster's control plane has to have it first; the nodes get the control plane's version, or this one if it is given in full, such as "1.35.2-gke.1000".`},
			"node_version":    schema.StringAttribute{Computed: true, Description: "Version that the nodes have."},
			"step_arguments": schema.SingleNestedAttribute{Computed: true, Description: "The values of the taken step " +
				"in place of the pool's own arguments; null for step 0.", PlanModifiers: []planmodifier.Object{objectplanmodifier.UseStateForUnknown()}, Attributes: stepSchema()},
			"step": schema.Int64Attribute{Computed: true, Description: "Which step was taken: 0 is the pool's own arguments, 1 the first fallback.", PlanModifiers: []planmodifier.Int64{int64planmodifier.UseStateForUnknown()}},
			"capacity": connect.CapacityAttribute("The resources of its nodes for pods, by a table of machine " +
				"types less the reservations of the kubelet and GKE."),
		},
		Blocks: map[string]schema.Block{
			"autoscaling": scalingSchema(),
			"accelerator": acceleratorSchema(),
			"fallback":    fallbackSchema(),
		},
	}
}

// scopesSchema is an argument that GKE adds parts to.
func scopesSchema() schema.SetAttribute {
	a := serversSet("Scopes of the nodes' tokens. GKE adds those for logs and monitoring, which are not a difference.")
	a.PlanModifiers = append(a.PlanModifiers, sameScopes{}, setplanmodifier.RequiresReplace())
	return a
}

func taintSchema() schema.Attribute {
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{Required: true, Description: description}
	}
	return schema.ListNestedAttribute{Optional: true, Description: "Taints of the nodes. Taints that GKE sets by " +
		"itself, such as nvidia.com/gpu, are ignored.", NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
		"key": text("Key."), "value": text("Value."), "effect": text("NO_SCHEDULE, PREFER_NO_SCHEDULE, or NO_EXECUTE."),
	}}}
}

func bootDisksSchema() schema.Attribute {
	return schema.ListNestedAttribute{Optional: true, Description: "Disks with container images or data, which each node has from its beginning. They need image_streaming.",
		PlanModifiers: []planmodifier.List{listplanmodifier.RequiresReplace()},
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"disk_image": schema.StringAttribute{Required: true, Description: "The disk image, as projects/PROJECT/global/images/NAME."},
			"mode":       optionalText("CONTAINER_IMAGE_CACHE for images of containers; left out, the disk holds data."),
		}}}
}

func scalingSchema() schema.Block {
	number := func(description string) schema.Attribute {
		return schema.Int64Attribute{Optional: true, Description: description}
	}
	return schema.SingleNestedBlock{Description: "How many nodes there may be. min and max are in each zone, total_min and total_max in all.", Attributes: map[string]schema.Attribute{
		"min": number("Least in each zone."), "max": number("Most in each zone."), "total_min": number("Least in all."), "total_max": number("Most in all."),
		"location_policy": schema.StringAttribute{Optional: true, Description: "BALANCED, or ANY, which takes machines where there are some. Default: Google's choice."},
	}}
}

func acceleratorSchema() schema.Block {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	const why = "A pool gets and loses its GPUs only with all its nodes."
	return schema.SingleNestedBlock{
		Description: "GPUs of each node. sharing, shared_clients and driver_version change in place.",
		PlanModifiers: []planmodifier.Object{objectplanmodifier.RequiresReplaceIf(func(_ context.Context, req planmodifier.ObjectRequest, resp *objectplanmodifier.RequiresReplaceIfFuncResponse) {
			resp.RequiresReplace = req.StateValue.IsNull() != req.PlanValue.IsNull() || req.PlanValue.IsUnknown()
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

// parseImportID implements model: PROJECT/LOCATION/CLUSTER/NAME, LOCATION/CLUSTER/NAME,
// or the path.
func (m *poolModel) parseImportID(j job, id string) (map[string]string, error) {
	cluster, name := id, ""
	if at := strings.LastIndexByte(id, '/'); at > 0 {
		cluster, name = strings.TrimSuffix(id[:at], "/nodePools"), id[at+1:]
	}
	project, location, of, err := place(j, cluster, "clusters")
	if err != nil || name == "" {
		return nil, fmt.Errorf("%q names no node pool: give PROJECT/LOCATION/CLUSTER/NAME, or LOCATION/CLUSTER/NAME", id)
	}
	if name == bootstrap {
		return nil, fmt.Errorf("%s is the first pool of its cluster, which is removed once another one runs: it is "+
			"not managed by itself", bootstrap)
	}
	cluster = fmt.Sprintf("projects/%s/locations/%s/clusters/%s", project, location, of)
	if declared := m.Cluster.ValueString(); declared != "" && samePlace(naming{declared, j.cloud.Project}, naming{cluster, project}) {
		cluster = declared // in its words
	}
	return map[string]string{"project": project, "name": name, "cluster": cluster}, nil
}
