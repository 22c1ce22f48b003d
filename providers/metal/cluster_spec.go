package metal

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"sigs.k8s.io/yaml"

	"github.com/stokehq/stoke/providers/metal/addons"
	"github.com/stokehq/stoke/providers/metal/facts"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/kubeadm"
	"github.com/stokehq/stoke/providers/metal/packages"
)

// clusterSpec is what a metal_cluster declares, in the packages' terms.
type clusterSpec struct {
	cluster  kubeadm.Cluster
	node     kubeadm.Node
	addons   addons.Spec
	patches  map[string]string
	release  kubeadm.Release
	anyPatch bool // of the release's minor: none was installed yet
}

// errUnknown: a declared value is not known yet.
var errUnknown = errors.New("not known yet")

// spec reads the model. Values that come from the machine (its name and
// address) are "" before it was observed.
func (m *clusterModel) spec(ctx context.Context) (clusterSpec, error) {
	if !isWhollyKnown(ctx, m.Version, m.Pods, m.Services, m.Domain, m.CNI, m.Manifest, m.Kubelet, m.Proxy, m.Patches,
		m.APIServer, m.CertSANs,
		m.CertificateLife, m.CALife, m.IgnorePreflight, m.Images, m.GPUPlugin, m.GPUPluginImage, m.FlannelImage, m.FlannelPluginImage) {
		return clusterSpec{}, errUnknown
	}
	s := clusterSpec{cluster: kubeadm.Cluster{
		Endpoint: m.Endpoint.ValueString(), Advertise: m.Advertise.ValueString(), Domain: m.Domain.ValueString(), Images: m.Images.ValueString(),
		APIServer: admitting(textMap(m.APIServer)), Pods: textList(m.Pods.Elements()), Services: textList(m.Services.Elements()), CertNames: textList(m.CertSANs.Elements()),
	}}
	s.node = kubeadm.Node{Name: m.NodeName.ValueString(), IP: m.Advertise.ValueString(), Schedulable: m.Schedulable.ValueBool(), IgnorePreflight: textList(m.IgnorePreflight.Elements())}
	s.patches = textMap(m.Patches)
	s.addons = addons.Spec{
		Owner: m.ID.ValueString(), Pods: s.cluster.Pods, Flannel: m.flannel(), Manifest: m.Manifest.ValueString(), From: "cni_manifest",
		FlannelImage: m.FlannelImage.ValueString(), FlannelPluginImage: m.FlannelPluginImage.ValueString(),
		GPUPlugin: m.GPUPlugin.ValueString() == gpuNVIDIA, GPUPluginImage: m.GPUPluginImage.ValueString(),
	}
	// If the endpoint is the machine itself, its port is the port of the API
	// server; otherwise it is the port of a load balancer.
	if name, port, err := net.SplitHostPort(s.cluster.Endpoint); err == nil && name == s.cluster.Advertise {
		s.cluster.Port, _ = strconv.Atoi(port)
	}
	var err error
	if s.release, s.anyPatch, err = m.release(); err != nil {
		return s, err
	}
	s.cluster.Version = s.release.String()
	for _, p := range m.documents() {
		v, err := p.read()
		if err != nil {
			return s, fmt.Errorf("%s: %w", p.argument, err)
		}
		if p.argument == "kubelet_configuration" {
			s.cluster.Kubelet = v
		} else {
			s.cluster.Proxy = v
		}
	}
	for argument, of := range map[string]struct {
		from types.String
		to   *time.Duration
	}{"certificate_validity": {m.CertificateLife, &s.cluster.CertificateLife}, "ca_certificate_validity": {m.CALife, &s.cluster.CALife}} {
		if of.from.ValueString() == "" {
			continue
		}
		if *of.to, err = time.ParseDuration(of.from.ValueString()); err != nil {
			return s, fmt.Errorf("%s: %w", argument, err)
		}
	}
	return s, nil
}

// flannel reports whether the pod network is flannel.
func (m *clusterModel) flannel() bool {
	return m.CNI.ValueString() == cniFlannel || m.CNI.IsNull() && m.Manifest.ValueString() == ""
}

// release returns the installed release, the declared one, or a minor whose
// patch does not matter.
func (m *clusterModel) release() (r kubeadm.Release, anyPatch bool, err error) {
	if installed := m.Installed.ValueString(); installed != "" {
		r, err = kubeadm.ParseRelease(installed)
		return r, false, err
	}
	if strings.Count(m.Version.ValueString(), ".") < 2 {
		minor, err := kubeadm.ParseMinor(m.Version.ValueString())
		return kubeadm.Release{Minor: minor}, true, err
	}
	r, err = kubeadm.ParseRelease(m.Version.ValueString())
	return r, false, err
}

// document is an argument that is YAML.
type document struct {
	argument string
	text     types.String
}

func (m *clusterModel) documents() []document {
	return []document{{"kubelet_configuration", m.Kubelet}, {"kube_proxy_configuration", m.Proxy}}
}

func (d document) read() (map[string]any, error) {
	if d.text.IsNull() || d.text.IsUnknown() {
		return nil, nil
	}
	var v map[string]any
	if err := yaml.UnmarshalStrict([]byte(d.text.ValueString()), &v); err != nil {
		return nil, fmt.Errorf("it is not a YAML object: %w", err)
	}
	return v, nil
}

const admissionPlugins = "enable-admission-plugins"

// admitting adds the admission plugin that makes a pod with GPUs tolerate the
// taint of nodes with GPUs. kubeadm's own is NodeRestriction.
func admitting(args map[string]string) map[string]string {
	all := map[string]string{admissionPlugins: "NodeRestriction"}
	for name, v := range args {
		all[name] = v
	}
	const toleration = "ExtendedResourceToleration"
	on := strings.Split(all[admissionPlugins], ",")
	if !slices.Contains(on, toleration) && !slices.Contains(strings.Split(all["disable-admission-plugins"], ","), toleration) {
		all[admissionPlugins] += "," + toleration
	}
	return all
}

// packages are the packages of the cluster's release; before the first, of the
// newest patch of its minor in the repository.
func (s clusterSpec) packages(on *settings, override *gpuRepositoryModel) packages.Spec {
	p := on.kubernetes(clusterRecord, "metal_cluster", s.release, override)
	if s.anyPatch {
		for _, name := range kubernetesPackages {
			pkg := p.Packages[name]
			pkg.Version = s.release.Minor.String() + ".*"
			p.Packages[name] = pkg
		}
	}
	return p
}

// resolve takes what follows from the machine: the node's name, and the address
// that others reach it by. It observes the machine again: metal_host may have
// given it its name a moment ago.
func (m *clusterModel) resolve(ctx context.Context, on host.Machine) error {
	if m.NodeName.ValueString() != "" && m.Advertise.ValueString() != "" {
		return nil
	}
	f, err := facts.Gather(ctx, on)
	if err != nil {
		return err
	}
	if m.NodeName.ValueString() == "" {
		m.NodeName = types.StringValue(strings.ToLower(f.Hostname))
	}
	if m.Advertise.ValueString() != "" {
		return nil
	}
	way, err := m.leads(ctx)
	if err != nil {
		return err
	}
	endpoint, _, _ := net.SplitHostPort(m.Endpoint.ValueString())
	byDefault, dev := "", ""
	for _, r := range f.Routes {
		if dev == "" && (r.To == "0.0.0.0/0" || r.To == "::/0") {
			dev = r.Dev
		}
	}
	for _, nic := range f.NICs {
		for _, a := range nic.Addresses {
			address, _, _ := strings.Cut(a, "/")
			switch {
			case address == way.Address, address == endpoint:
				m.Advertise = types.StringValue(address)
				return nil
			case byDefault == "" && nic.Name == dev:
				byDefault = address
			}
		}
	}
	if byDefault == "" {
		return fmt.Errorf("which address of %s other machines reach is not known: it has neither %s nor one at a default route. Set advertise_address", on.Name(), way.Address)
	}
	m.Advertise = types.StringValue(byDefault)
	return nil
}

// textList and textMap read values that are known.
func textList(elements []attr.Value) []string {
	var all []string
	for _, e := range elements {
		if v, ok := e.(types.String); ok {
			all = append(all, v.ValueString())
		}
	}
	return all
}

func textMap(m types.Map) map[string]string {
	return mapped(m.Elements(), func(_ string, v attr.Value) string {
		text, _ := v.(types.String)
		return text.ValueString()
	})
}
