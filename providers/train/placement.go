package train

import (
	"maps"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
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
