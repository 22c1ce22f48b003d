package metal

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
)

// clusterRecord is the kind of metal_cluster's record on the control plane's
// machine, and the owner of its packages.
const clusterRecord = "cluster"

// Words for the network of pods and for the device plugin.
const (
	cniFlannel  = "flannel"
	cniExternal = "external"
	gpuNVIDIA   = "nvidia"
	gpuNone     = "none"
)

// clusterResource is metal_cluster: a Kubernetes control plane by kubeadm.
type clusterResource struct {
	life[clusterModel, *clusterModel]
}

// clusterModel is metal_cluster's value.
type clusterModel struct {
	ID                 types.String        `tfsdk:"id"`
	ControlPlane       types.List          `tfsdk:"control_plane"`
	Version            types.String        `tfsdk:"version"`
	Installed          types.String        `tfsdk:"kubernetes_version"`
	Endpoint           types.String        `tfsdk:"endpoint"`
	Advertise          types.String        `tfsdk:"advertise_address"`
	NodeName           types.String        `tfsdk:"node_name"`
	Pods               types.List          `tfsdk:"pod_network"`
	Services           types.List          `tfsdk:"service_network"`
	Domain             types.String        `tfsdk:"dns_domain"`
	CNI                types.String        `tfsdk:"cni"`
	Manifest           types.String        `tfsdk:"cni_manifest"`
	FlannelImage       types.String        `tfsdk:"flannel_image"`
	FlannelPluginImage types.String        `tfsdk:"flannel_cni_plugin_image"`
	Kubelet            types.String        `tfsdk:"kubelet_configuration"`
	Proxy              types.String        `tfsdk:"kube_proxy_configuration"`
	Patches            types.Map           `tfsdk:"kubeadm_patches"`
	APIServer          types.Map           `tfsdk:"api_server_args"`
	CertSANs           types.List          `tfsdk:"cert_sans"`
	CertificateLife    types.String        `tfsdk:"certificate_validity"`
	CALife             types.String        `tfsdk:"ca_certificate_validity"`
	IgnorePreflight    types.Set           `tfsdk:"ignore_preflight_errors"`
	MaxUnavailable     types.Int64         `tfsdk:"max_unavailable"`
	Schedulable        types.Bool          `tfsdk:"schedulable"`
	Protected          types.Bool          `tfsdk:"deletion_protection"`
	GPUPlugin          types.String        `tfsdk:"gpu_plugin"`
	GPUPluginImage     types.String        `tfsdk:"gpu_plugin_image"`
	Images             types.String        `tfsdk:"image_repository"`
	Repository         *gpuRepositoryModel `tfsdk:"repository"`
	Access             types.Object        `tfsdk:"access"`
	Join               types.Object        `tfsdk:"join"`
	Expires            types.String        `tfsdk:"certificates_expire"`
	Drift              types.Map           `tfsdk:"drift"`
}

func clusterSchema() schema.Schema {
	attributes := clusterArguments()
	for name, a := range clusterResults() {
		attributes[name] = a
	}
	return schema.Schema{
		Description: "A Kubernetes control plane by kubeadm. It installs kubeadm, kubelet, kubectl and cri-tools of its minor there, and applies the network of pods and NVIDIA's device plugin. " +
			"Arguments that can change in place do; the cluster's data are deleted only by destroy.",
		Attributes: attributes,
	}
}

func clusterArguments() map[string]schema.Attribute {
	keep := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	text := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, Description: description}
	}
	kept := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, Computed: true, PlanModifiers: keep, Description: description}
	}
	network := func(otherwise, description string) schema.ListAttribute {
		return schema.ListAttribute{
			Optional: true, Computed: true, ElementType: types.StringType, Description: description,
			Default: listdefault.StaticValue(types.ListValueMust(types.StringType, []attr.Value{types.StringValue(otherwise)})),
		}
	}
	flag := func(otherwise bool, description string) schema.BoolAttribute {
		return schema.BoolAttribute{Optional: true, Computed: true, Default: booldefault.StaticBool(otherwise), Description: description}
	}
	texts := func(description string) schema.MapAttribute {
		return schema.MapAttribute{Optional: true, ElementType: types.StringType, Description: description}
	}
	return map[string]schema.Attribute{
		"control_plane": connect.MachinesArgument("The control plane's machine: a list of one, the ssh of a metal_host."),
		"version": schema.StringAttribute{
			Optional: true, Computed: true, Default: stringdefault.StaticString(kubeadm.DefaultMinor.String()),
			Description: `Minor of Kubernetes, such as "1.36", whose newest patch is installed at create and kept, or a release such as "1.36.3". Another one afterwards is refused: upgrades are not supported yet.`,
		},
		"endpoint": kept("Where nodes and users reach the API server, as HOST:PORT; the machine's address and 6443 when left out. Another one is another cluster."),
		"advertise_address": kept("Address of the control plane's machine in the cluster's network: its API " +
			"server listens there, and its node has it. By default the SSH address if the machine has it, otherwise the " +
			"address of its default route."),
		"node_name":       kept("Name of the control plane's node; the machine's host name when left out."),
		"pod_network":     network("10.244.0.0/16", "Network of the pods, or one of IPv4 and one of IPv6. Another one is another cluster."),
		"service_network": network("10.96.0.0/12", "Network of the Services, or one of IPv4 and one of IPv6. Another one is another cluster."),
		"dns_domain":      schema.StringAttribute{Optional: true, Computed: true, Default: stringdefault.StaticString("cluster.local"), Description: "Domain of names in the cluster. Another one is another cluster."},
		"cni": schema.StringAttribute{Optional: true, Validators: []validator.String{oneOf{cniFlannel, cniExternal}}, Description: "" +
			"The network of pods: flannel, on the interface that has the node's address, which is the default without " +
			"cni_manifest, or external where something else brings it: then stoke does not wait for the node and for DNS."},
		"cni_manifest":             text("Manifest of another network of pods, as YAML, which is applied in place of flannel. The cluster is ready once its DaemonSets and Deployments are, except for pods that no node takes yet."),
		"flannel_image":            text("Image of flannel, in place of its own."),
		"flannel_cni_plugin_image": text("Image of flannel's CNI plugin, in place of its own."),
		"kubelet_configuration": text("Fields of KubeletConfiguration for all nodes, as YAML or JSON (yamlencode), " +
			"over the fields that stoke writes."),
		"kube_proxy_configuration": text("Fields of KubeProxyConfiguration, as YAML or JSON (yamlencode), over the " +
			"fields that stoke writes."),
		"kubeadm_patches":         texts(`Patches that kubeadm lays over what it writes, by file name such as "kube-apiserver+strategic.yaml".`),
		"api_server_args":         texts(`Further arguments of the API server, by name without dashes. ExtendedResourceToleration is added to enable-admission-plugins.`),
		"cert_sans":               schema.ListAttribute{Optional: true, ElementType: types.StringType, Description: "Further DNS names and addresses in the API server's certificate."},
		"certificate_validity":    text(`For how long certificates are valid, such as "8760h"; a year when left out. A change holds for later ones.`),
		"ca_certificate_validity": text(`For how long the authorities are valid, such as "87600h"; ten years when left out.`),
		"ignore_preflight_errors": schema.SetAttribute{Optional: true, ElementType: types.StringType, Description: `kubeadm preflight checks to ignore, by name such as "NumCPU". "all" is refused.`},
		"max_unavailable":         schema.Int64Attribute{Optional: true, Validators: []validator.Int64{atLeastOne{}}, Description: "How many nodes of the cluster may be unavailable at once, whatever its machines say."},
		"schedulable":             flag(false, "Whether the control plane takes workloads, too: the cluster of one machine."),
		"deletion_protection":     flag(true, "Whether destroying the cluster, or replacing it, is refused."),
		"gpu_plugin": schema.StringAttribute{Optional: true, Computed: true, Default: stringdefault.StaticString(gpuNVIDIA), Validators: []validator.String{oneOf{gpuNVIDIA, gpuNone}}, Description: "" +
			"Support for GPUs in pods: nvidia (NVIDIA's device plugin on nodes with the label nvidia.com/gpu.present, " +
			"and the RuntimeClass nvidia) or none."},
		"gpu_plugin_image": text("Image of the device plugin, in place of the one by NVIDIA."),
		"image_repository": text("Registry that the control plane's images come from, in place of registry.k8s.io."),
		"repository":       kubernetesRepositoryAttribute(),
	}
}

func clusterResults() map[string]schema.Attribute {
	keep := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	return map[string]schema.Attribute{
		"id":                 schema.StringAttribute{Computed: true, PlanModifiers: keep, Description: "Identifies this owner in the record on the machine."},
		"kubernetes_version": schema.StringAttribute{Computed: true, PlanModifiers: keep, Description: `The release that is installed, such as "1.36.3".`},
		"access":             connect.Result("How to reach the cluster, for kube and train: over SSH, with a certificate of one hour that the control plane signs. Nothing in it is secret."),
		"join": schema.SingleNestedAttribute{Computed: true, Description: "The values that metal_node needs to join the " +
			"cluster. It contains no token: each join makes its own.", Attributes: map[string]schema.Attribute{
			"endpoint":        schema.StringAttribute{Computed: true, Description: "The API server, as HOST:PORT."},
			"ca_hash":         schema.StringAttribute{Computed: true, Description: "Hash of the cluster's authority: no other API server is believed."},
			"version":         schema.StringAttribute{Computed: true, Description: "The release of Kubernetes."},
			"control_plane":   connect.MachineResult("The way to the control plane's machine."),
			"max_unavailable": schema.Int64Attribute{Computed: true, Description: "How many nodes may be unavailable at once; null where each machine says so."},
			"kubelet_hash": schema.StringAttribute{Computed: true, Description: "Hash of the configuration for all " +
				"kubelets."},
		}},
		"certificates_expire": schema.StringAttribute{Computed: true, PlanModifiers: keep, Description: "When the first of the control plane's certificates expires (RFC 3339)."},
		"drift": schema.MapAttribute{
			Computed: true, ElementType: types.StringType,
			Description: "Facts that are not as declared: what they are. Applying empties it.",
		},
	}
}

// head is the way to the control plane's machine as a value; null while it is
// not known.
func (m *clusterModel) head() types.Object {
	if elements := m.ControlPlane.Elements(); len(elements) == 1 {
		if o, ok := elements[0].(types.Object); ok {
			return o
		}
	}
	return types.ObjectNull(connect.MachineTypes())
}

func (m *clusterModel) id() *types.String { return &m.ID }

func (m *clusterModel) leads(ctx context.Context) (connect.SSH, error) { return wayOf(ctx, m.head()) }

func (*clusterModel) importValues(ctx context.Context, way connect.SSH) (map[string]any, diag.Diagnostics) {
	o, diags := way.Object(ctx)
	if diags.HasError() {
		return nil, diags
	}
	list, more := types.ListValue(o.Type(ctx), []attr.Value{o})
	return map[string]any{"control_plane": list}, append(diags, more...)
}
