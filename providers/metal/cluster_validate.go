package metal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/metal/kubeadm"
	"github.com/stokehq/stoke/runtime/pattern"
)

// clusterArgument is where in the resource a field of kubeadm's types is declared.
var clusterArgument = map[string]string{
	"Version": "version", "Endpoint": "endpoint", "Advertise": "advertise_address", "IP": "advertise_address", "Port": "endpoint", "Name": "node_name",
	"Pods": "pod_network", "Services": "service_network", "Domain": "dns_domain", "APIServer": "api_server_args", "CertNames": "cert_sans",
	"CertificateLife": "certificate_validity", "CALife": "ca_certificate_validity", "Kubelet": "kubelet_configuration", "Proxy": "kube_proxy_configuration",
	"IgnorePreflight": "ignore_preflight_errors",
}

// ValidateConfig checks the configuration without the machine.
func (r *clusterResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config clusterModel
	diags := &resp.Diagnostics
	if diags.Append(req.Config.Get(ctx, &config)...); diags.HasError() {
		return
	}
	if n := len(config.ControlPlane.Elements()); !config.ControlPlane.IsUnknown() && n != 1 {
		diags.AddAttributeError(clusterAt, "One control plane is supported", fmt.Sprintf("There are %d machines in the list. "+
			"Write the ssh of one metal_host: several control planes are not possible yet.", n))
	}
	if !config.CNI.IsNull() && !config.Manifest.IsNull() {
		diags.AddAttributeError(path.Root("cni_manifest"), "Two networks of pods", "cni and cni_manifest say both what the network of pods is. Leave one out.")
	}
	if config.Version.IsUnknown() {
		return
	}
	if config.Version.IsNull() { // its default is not there yet
		config.Version = types.StringValue(kubeadm.DefaultMinor.String())
	} else if _, _, err := config.release(); err != nil {
		diags.AddAttributeError(path.Root("version"), "Invalid version", sentence(err))
		return
	}
	for _, d := range config.documents() {
		if _, err := d.read(); err != nil {
			diags.AddAttributeError(path.Root(d.argument), "Invalid configuration", sentence(err))
		}
	}
	for argument, life := range map[string]types.String{"certificate_validity": config.CertificateLife, "ca_certificate_validity": config.CALife} {
		if _, err := time.ParseDuration(life.ValueString()); err != nil && life.ValueString() != "" {
			diags.AddAttributeError(path.Root(argument), "Invalid duration", fmt.Sprintf("%s. Write hours, such as 8760h for a year.", err))
		}
	}
	if diags.HasError() {
		return
	}
	config.assume()
	spec, err := config.spec(ctx)
	switch {
	case errors.Is(err, errUnknown):
		return
	case err != nil:
		diags.AddError("Invalid cluster", sentence(err))
		return
	}
	spec.problems(diags)
	if _, err := spec.addons.Objects(); err != nil {
		diags.AddAttributeError(path.Root("cni_manifest"), "Invalid manifest", sentence(err))
	}
}

// problems reports faults at the arguments that cause them, and whether there
// were any.
func (s clusterSpec) problems(diags *diag.Diagnostics) bool {
	before := diags.ErrorsCount()
	for _, p := range append(s.cluster.Check(), s.node.Check()...) {
		field, key, _ := strings.Cut(p.Field, "[")
		argument := clusterArgument[field]
		if argument == "" {
			diags.AddError("Invalid cluster", sentence(p))
			continue
		}
		at := path.Root(argument)
		if key = strings.Trim(key, `"]`); key != "" && field == "APIServer" {
			at = at.AtMapKey(key)
		}
		name := ""
		if key != "" {
			name = key + ": "
		}
		diags.AddAttributeError(at, "Invalid cluster", fmt.Sprintf("%s%q %s.", name, p.Value, strings.TrimSuffix(p.Why, ".")))
	}
	for name := range s.patches {
		if !patchName.MatchString(name) {
			diags.AddAttributeError(path.Root("kubeadm_patches").AtMapKey(name), "Invalid name of a patch", fmt.Sprintf(""+
				"%q is not valid: kubeadm reads files called TARGET[SUFFIX][+TYPE].EXTENSION, such as "+
				"kube-apiserver0+strategic.yaml, where the target is %s.", name, strings.Join(patchTargets, ", ")))
		}
	}
	return diags.ErrorsCount() > before
}

// Patches as kubeadm reads them
// (https://kubernetes.io/docs/setup/production-environment/tools/kubeadm/control-plane-flags/#patches).
var (
	patchTargets = []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "kubeletconfiguration", "corednsdeployment"}
	patchName    = pattern.New(`^(` + strings.Join(patchTargets, "|") + `)[A-Za-z0-9_-]*(\+(strategic|merge|json))?\.(json|yaml)$`)
)

// assume gives omitted arguments their later values, or valid ones.
func (m *clusterModel) assume() {
	one := func(text string) types.List {
		return types.ListValueMust(types.StringType, []attr.Value{types.StringValue(text)})
	}
	for _, of := range []struct {
		value *types.List
		text  string
	}{{&m.Pods, "10.244.0.0/16"}, {&m.Services, serviceNetwork}} {
		if of.value.IsNull() {
			*of.value = one(of.text)
		}
	}
	for _, of := range []struct {
		value *types.String
		text  string
	}{{&m.Endpoint, "192.0.2.1:6443"}, {&m.Advertise, "192.0.2.1"}, {&m.NodeName, "node"}, {&m.GPUPlugin, gpuNVIDIA}} {
		if of.value.IsNull() || of.value.IsUnknown() {
			*of.value = types.StringValue(of.text)
		}
	}
}
