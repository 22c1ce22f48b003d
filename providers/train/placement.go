package train

import (
	"fmt"
	"maps"
	"path"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	at "github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/train/launch"
)

// The arguments of a run on a cluster besides its training: the place of its
// pods and their resources. On this machine none of them may be given.

// placementModel is the part of train_experiment that only clusters know.
type placementModel struct {
	Namespace   types.String `tfsdk:"namespace"`
	Image       types.String `tfsdk:"image"`
	PullPolicy  types.String `tfsdk:"image_pull_policy"`
	PullSecrets types.List   `tfsdk:"image_pull_secrets"`
	Port        types.Number `tfsdk:"port"`
	Environment types.Map    `tfsdk:"environment"`
	DatasetPath types.String `tfsdk:"dataset_path"`
	Tolerations types.List   `tfsdk:"tolerations"`
	Volumes     types.List   `tfsdk:"volumes"`
	Coordinator types.Object `tfsdk:"coordinator"`
	ClusterID   types.String `tfsdk:"cluster_id"`
}

func placementAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"namespace":          option("On a cluster: namespace of the run's objects. Default: \"default\"."),
		"image":              option("On a cluster: image of the pods, whose entry point is stoke-trainer, such as a train_image's reference. Default: trainer_image of the provider block."),
		"image_pull_policy":  option("On a cluster: Always, IfNotPresent or Never. Default: as Kubernetes chooses."),
		"image_pull_secrets": schema.ListAttribute{Optional: true, ElementType: types.StringType, Description: "On a cluster: Secrets of the namespace, for pulling the image."},
		"port":               schema.NumberAttribute{Optional: true, Description: "On a cluster: port where roles listen; the coordinator's API has the next one, and probes the one after. Default: 7070."},
		"environment":        schema.MapAttribute{Optional: true, ElementType: types.StringType, Description: "On a cluster: variables of all pods. They are stored: secrets belong into a Secret that is mounted as a volume."},
		"dataset_path":       option("On a cluster: folder of the dataset in the pods, where the image or a volume has it."),
		"tolerations": schema.ListNestedAttribute{
			Optional: true, Description: "On a cluster: taints that the pods tolerate. The taints of requested GPUs are tolerated anyway.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"key":    schema.StringAttribute{Required: true, Description: "The taint's key."},
				"value":  option("Its value. Default: whichever."),
				"effect": option("NoSchedule, PreferNoSchedule or NoExecute. Default: all of them."),
			}},
		},
		"volumes": schema.ListNestedAttribute{
			Optional: true, Description: "On a cluster: volumes that all pods mount, each from one of claim, host_path, nfs, config_map, secret and empty_dir.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"mount_path": schema.StringAttribute{Required: true, Description: "Where it is in the pods; an absolute path."},
				"sub_path":   option("Folder of the volume that is mounted. Default: the whole volume."),
				"read_only":  schema.BoolAttribute{Optional: true, Description: "Whether pods can only read it. Default: false."},
				"claim":      option("Name of a PersistentVolumeClaim of the namespace."),
				"host_path":  option("Folder of the node that the pod is on. It needs a namespace of the privileged Pod Security level."),
				"nfs": schema.SingleNestedAttribute{Optional: true, Description: "Folder of an NFS server. It needs a namespace of the baseline or privileged Pod Security level.", Attributes: map[string]schema.Attribute{
					"server": schema.StringAttribute{Required: true, Description: "Its name or address."},
					"path":   schema.StringAttribute{Required: true, Description: "The folder that it exports."},
				}},
				"config_map": option("Name of a ConfigMap of the namespace."),
				"secret":     option("Name of a Secret of the namespace."),
				"empty_dir":  option("Size, such as \"10Gi\", of an empty folder that each pod has of its own."),
			}},
		},
		"cluster_id": result("UID of the cluster's namespace kube-system, which identifies the cluster. Null on this machine."),
	}
}

// podAttributes are those of a role's block that only clusters know.
func podAttributes(more map[string]schema.Attribute) map[string]schema.Attribute {
	all := map[string]schema.Attribute{
		"cpu":               option("On a cluster: cores of each pod, requested and limited, such as \"2\" or \"500m\"."),
		"memory":            option("On a cluster: memory of each pod, requested and limited, such as \"4Gi\"."),
		"ephemeral_storage": option("On a cluster: local disk of each pod, requested and limited."),
		"bandwidth_mbps":    schema.NumberAttribute{Optional: true, Description: "On a cluster: Mbit/s of each pod in each direction, where the network plugin limits them."},
		"node_selector":     schema.MapAttribute{Optional: true, ElementType: types.StringType, Description: "On a cluster: labels of the nodes that pods may be on."},
		"spread_over":       option("On a cluster: node label, such as topology.kubernetes.io/zone, over whose values pods are spread where possible."),
	}
	maps.Copy(all, more)
	return all
}

func workerPodAttributes() map[string]schema.Attribute {
	return podAttributes(map[string]schema.Attribute{
		"shared_memory":          option("On a cluster: size of /dev/shm, a part of memory."),
		"gpu_resource":           option("On a cluster: what GPUs are called, such as nvidia.com/mig-1g.10gb. Default: nvidia.com/gpu."),
		"high_priority_replicas": schema.NumberAttribute{Optional: true, Description: "On a cluster: how many of the workers have the priority \"high\". Default: 0."},
	})
}

func coordinatorAttributes() map[string]schema.Attribute {
	return podAttributes(map[string]schema.Attribute{
		"storage":       option("Size, such as \"1Gi\", of a claim that keeps the run's log and checkpoints; destroy removes it. Default: none, they go with the pod."),
		"storage_class": option("Storage class of that claim. Default: the cluster's default class."),
	})
}

func option(text string) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, Description: text}
}

// checkCheckpoints rejects a place of checkpoints that would not outlive the
// pods: a folder that is not on a volume, or is on a volume that cannot keep
// them. Unknown volumes are not checked.
func (m *experimentModel) checkCheckpoints(p launch.Placement) (diags diag.Diagnostics) {
	if !path.IsAbs(p.Checkpoints) || m.Volumes.IsUnknown() {
		return nil
	}
	where := fmt.Sprintf("checkpoint.place is %q, ", p.Checkpoints)
	on, mounted := (*launch.Volume)(nil), []string(nil)
	for i, v := range p.Volumes {
		if open(m.Volumes.Elements()[i].(types.Object)) {
			return nil
		}
		mounted = append(mounted, v.Path)
		if isBelow(p.Checkpoints, v.Path) && (on == nil || len(path.Clean(v.Path)) >= len(path.Clean(on.Path))) {
			on = &p.Volumes[i]
		}
	}
	switch {
	case on == nil && mounted == nil:
		where += "and pods mount no volume: the folder would be in each pod's own image."
	case on == nil:
		where += "which is on no volume: pods mount " + strings.Join(mounted, ", ") + "."
	case on.EmptyDir != "":
		where += fmt.Sprintf("which is on the empty_dir at %s: each pod has its own, deleted with the pod.", on.Path)
	case on.ReadOnly, on.ConfigMap != "", on.Secret != "":
		where += fmt.Sprintf("which is on the volume at %s: pods can only read that.", on.Path)
	default:
		return nil
	}
	advice := " Give a folder below the mount_path of a claim that the coordinator and the servers share, gs://BUCKET/PREFIX or s3://BUCKET/PREFIX; " +
		"or leave place out and give coordinator.storage: then they are stored next to the coordinator's log."
	if p.Program {
		advice = " Give a folder below the mount_path of a claim that all workers share."
	}
	diags.AddAttributeError(at.Root("checkpoint").AtName("place"), "Checkpoints would be lost", where+advice)
	return diags
}

// isBelow tells whether a path in a pod is a folder or in it.
func isBelow(name, folder string) bool {
	name, folder = path.Clean(name), path.Clean(folder)
	return name == folder || strings.HasPrefix(name, folder+"/")
}

// open reports whether the type or the place of a volume is unknown. The name
// of its claim may be unknown.
func open(volume types.Object) bool {
	unknown := func(v attr.Value) bool { return v != nil && v.IsUnknown() }
	all := volume.Attributes()
	return volume.IsUnknown() || unknown(all["mount_path"]) || unknown(all["read_only"]) || unknown(all["empty_dir"]) ||
		unknown(all["config_map"]) || unknown(all["secret"])
}
