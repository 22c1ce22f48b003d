package metal

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/stokehq/stoke/providers/metal/host/hosttest"
)

// TestHostMistakes: what is wrong with a configuration is said of the argument
// that is wrong, and all of it at once.
func TestHostMistakes(t *testing.T) {
	list := hosttest.NewChecks(t, "mistakes")
	p, err := Entry("test").New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	schema, diags := p.Schema(context.Background())
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	const key = `host_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPisg2IAhP3lO7Rf0T18onhExtD3jIsF6H0g7xVPo3gz"`
	const host = `address = "192.0.2.1", ` + key + `, `
	const node = `host = { address = "x", ` + key + ` }, cluster = { endpoint = "10.0.0.1:6443", ca_hash = "sha256:ab", version = "1.36.3", control_plane = { address = "10.0.0.1", ` + key + ` } }, `
	const head = `control_plane = [{ address = "192.0.2.1", ` + key + ` }]`
	for _, tt := range []struct {
		resource, config string
		want             []string // argument: part of what is said
	}{
		{"metal_host", host, nil},
		{"metal_host", `address = "192.0.2.1"`, []string{"host_key: never trusted"}},
		{"metal_host", `address = "ssh://x", port = 0, ` + key, []string{"address: own arguments", "port: at least 1"}},
		{"metal_host", `address = "x", host_key = "SHA256:abc"`, []string{"host_key: is a fingerprint"}},
		{"metal_host", `address = "x", host_key = "x ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPisg2IAhP3lO7Rf0T18onhExtD3jIsF6H0g7xVPo3gz"`, []string{"host_key: leave the address out"}},
		{"metal_host", `address = "x", host_key = "ssh-ed25519 AAAAC3Nza"`, []string{"host_key: cut off"}},
		{"metal_host", host + `bastion = [{ address = "a:22", host_key = "b" }]`, []string{"bastion[0].address: own arguments", "bastion[0].host_key: no public key"}},
		{"metal_host", host + `private_address = "10.0.0.1/24"`, []string{"private_address: without a prefix length"}},
		{"metal_host", host + `private_address = "fd00::1"`, []string{"private_address: refused for now"}},
		{"metal_host", host + `swap = "on", role = "master"`, []string{`role: "master" is not one of control-plane, worker`, `swap: It is "off"; omit it`}},
		{"metal_host", host + `hostname = "GPU_1", kernel_modules = ["../x"], sysctl = { "a b" = "1" }, timezone = "/x", time_sync = { service = "x" },
			files = { "/a" = { content = "", mode = "u=rw" }, "b" = { content = "" }, "/c" = {} }`,
			[]string{"files: mode \"u=rw\"", "files: path is absolute", "files[\"/c\"]: either content", "hostname: lower-case", "kernel_modules: a name is", "sysctl: a key is",
				"time_sync.service: not one of", "timezone: zoneinfo"}},
		{"metal_host", host + `packages = { JQ = {} }, absent_packages = ["a b"], apt_repositories = { x = { uris = ["htp://x"], suites = ["/"], key_url = "https://x", key_fingerprints = ["AA"] } }`,
			[]string{"absent_packages: not a name", "apt_repositories: whole fingerprint", "packages: not a name"}},
		{"metal_host", host + `packages = { jq = {} }, absent_packages = ["jq"]`, []string{": to be there and to be absent"}},
		{"metal_host", host + `containerd = { registry_mirrors = { "docker.io" = { endpoints = ["x"] } } }, images = { pause = { archive = "/x" } }`,
			[]string{"containerd: a URL such as", "images: in full"}},
		{"metal_gpu_driver", `host = { address = "x", ` + key + ` }, branch = "580", version = "570.1.2", reboot = "true", toolkit = "new"`,
			[]string{"reboot: not one of", "toolkit: a version such as", "version: branch 580"}},
		{"metal_gpu_driver", `host = { address = "x", ` + key + ` }, branch = "580.1", version = "580.1.2"`, []string{"branch: three digits"}},
		{"metal_node", node + `labels = { "node-role.kubernetes.io/gpu" = "", "stoke.dev/pool" = "a" }, gpus = 2, max_pods = 40, taints = [{ key = "a", effect = "NoSchedule" }]`, nil},
		{"metal_node", node + `gpus = 2, gpu_resources = { "nvidia.com/mig-1g.10gb" = 7 }`, []string{"gpu_resources: Give gpus"}},
		{"metal_node", node + `gpu_resources = { mig = -1 }, gpu_taint = false`, []string{`gpu_resources["mig"]: names such as`}},
		{"metal_node", node + `gpus = -1, gpu_taint = false`, []string{"gpus: no fewer than 0"}},
		{"metal_node", node + `node_name = "GPU_1", private_address = "gpu1", max_pods = 0, resolv_conf = "resolv.conf"`,
			[]string{"node_name: lower", "private_address: is not an address", "max_pods: at least 1", "resolv_conf: absolute path"}},
		{"metal_node", node + `labels = { "a b" = "c", "node-role.kubernetes.io/x" = "a b" }, taints = [{ key = "a b", effect = "Never" }], ignore_preflight_errors = ["all"]`,
			[]string{`labels["a b"]: alphanumeric`, `labels["node-role.kubernetes.io/x"]: alphanumeric`, "taints: alphanumeric", "taints[0].effect: not one of", "ignore_preflight_errors: would hide"}},
		{"metal_cluster", head, nil},
		{"metal_cluster", `control_plane = [{ address = "192.0.2.1" }]`, []string{"control_plane[0].host_key: "}},
		{"metal_cluster", head + `, version = "1.36.3", cni = "external", kubelet_configuration = "maxPods: 40", kubeadm_patches = { "kube-apiserver0+merge.yaml" = "{}" }`, nil},
		{"metal_cluster", head + `, version = "1.30"`, []string{"version: is not supported"}},
		{"metal_cluster", `control_plane = [{ address = "192.0.2.1", ` + key + ` }, { address = "192.0.2.2", ` + key + ` }]`, []string{"control_plane: 2 machines"}},
		{"metal_cluster", head + `, cni = "calico", gpu_plugin = "amd", max_unavailable = 0`, []string{"cni: not one of flannel, external", "gpu_plugin: not one of", "max_unavailable: at least 1"}},
		{"metal_cluster", head + `, cni = "flannel", cni_manifest = "kind: X"`, []string{"cni_manifest: Leave one out"}},
		{"metal_cluster", head + `, pod_network = ["10.96.0.0/16"], endpoint = "https://x", dns_domain = "a_b", ignore_preflight_errors = ["all"]`,
			[]string{"pod_network: overlaps", "endpoint: is not HOST:PORT", "dns_domain: cannot be", "ignore_preflight_errors: would hide"}},
		{"metal_cluster", head + `, api_server_args = { "secure-port" = "1", "--x" = "y" }, cert_sans = ["a b"], certificate_validity = "1y"`, []string{"certificate_validity: such as 8760h"}},
		{"metal_cluster", head + `, api_server_args = { "secure-port" = "1", "--x" = "y" }, cert_sans = ["a b"], certificate_validity = "1s"`,
			[]string{`api_server_args["secure-port"]: cannot be declared here`, `api_server_args["--x"]: without dashes`, "cert_sans: cannot be", "certificate_validity: an hour or more"}},
		{"metal_cluster", head + `, kubelet_configuration = "- a", kube_proxy_configuration = "a: 1\na: 2"`, []string{"kubelet_configuration: not a YAML object", "kube_proxy_configuration: not a YAML object"}},
		{"metal_cluster", head + `, kubelet_configuration = "clusterDomain: x", kubeadm_patches = { "api.yaml" = "" }`, []string{"kubelet_configuration: the cluster's domain", `kubeadm_patches["api.yaml"]: kube-apiserver`}},
	} {
		var got, said []string
		list.Case("%s: %s", tt.resource, tt.config)
		at := schema.Resources[tt.resource].Block.ImpliedType()
		for _, d := range p.ValidateResource(context.Background(), tt.resource, objectOf(t, at, tt.config)) {
			got = append(got, argumentOf(d.Path)+": "+d.Detail)
			said = append(said, fmt.Sprintf("%s: %s: %s", argumentOf(d.Path), d.Summary, d.Detail))
		}
		for _, text := range slices.Sorted(slices.Values(said)) {
			list.Say("%s", text)
		}
		if len(got) != len(tt.want) {
			t.Errorf("%s:\n%s", tt.config, strings.Join(got, "\n"))
			continue
		}
		for _, w := range tt.want {
			argument, text, _ := strings.Cut(w, ": ")
			found := false
			for _, g := range got {
				found = found || strings.HasPrefix(g, argument+": ") && strings.Contains(g, text)
			}
			if !found {
				t.Errorf("%s: %q is not in\n%s", tt.config, w, strings.Join(got, "\n"))
			}
		}
	}
}

// objectOf is what HCL says, null where it says nothing.
func objectOf(t *testing.T, at cty.Type, text string) cty.Value {
	t.Helper()
	e, diags := hclsyntax.ParseExpression([]byte("{ "+text+" }"), "test", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	v, diags := e.Value(nil)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return filled(t, at, v)
}

func filled(t *testing.T, at cty.Type, v cty.Value) cty.Value {
	t.Helper()
	switch {
	case v.IsNull():
		return cty.NullVal(at)
	case at.IsObjectType():
		given := map[string]cty.Value{}
		for name, v := range v.AsValueMap() {
			given[name] = filled(t, at.AttributeType(name), v)
		}
		return fillObject(at, given)
	case at.IsMapType():
		given := map[string]cty.Value{}
		for name, v := range v.AsValueMap() {
			given[name] = filled(t, at.ElementType(), v)
		}
		return cty.MapVal(given)
	case at.IsListType():
		var given []cty.Value
		for _, v := range v.AsValueSlice() {
			given = append(given, filled(t, at.ElementType(), v))
		}
		return cty.ListVal(given)
	}
	v, err := convert.Convert(v, at)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// argumentOf is a path as people write it.
func argumentOf(p cty.Path) string {
	text := ""
	for _, step := range p {
		switch s := step.(type) {
		case cty.GetAttrStep:
			text += "." + s.Name
		case cty.IndexStep:
			if s.Key.Type() == cty.String {
				text += `["` + s.Key.AsString() + `"]`
			} else {
				text += "[" + s.Key.AsBigFloat().String() + "]"
			}
		}
	}
	return strings.TrimPrefix(text, ".")
}
