package metal

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/containerd"
	"github.com/stokehq/stoke/providers/metal/nvidia"
	"github.com/stokehq/stoke/providers/metal/packages"
)

// TestCredentialsInURLs: they would be readable by everybody on the machines, so
// that they are refused, and what refuses them does not tell them.
func TestCredentialsInURLs(t *testing.T) {
	const secret = "canary-4711"
	for _, url := range []string{
		"http://user:" + secret + "@10.0.0.1:3128", "https://" + secret + "@10.0.0.1", "http://u:" + secret + "%zz@10.0.0.1",
		"u:" + secret + "@10.0.0.1", "http://u:" + secret + "[@10.0.0.1", "http://u:" + secret + "@[10.0.0.1",
	} {
		for what, err := range map[string]error{
			"mirror":             validMirror(url),
			"proxy":              packages.Spec{Owner: "host", Proxy: &packages.Proxy{HTTP: url}}.Validate(),
			"repository":         packages.Spec{Owner: "host", Repositories: map[string]packages.Repository{"a": {URIs: []string{url}, Suites: []string{"/"}}}}.Validate(),
			"containerd's proxy": containerd.Spec{Proxy: &containerd.Proxy{HTTP: url}}.Validate(),
			"registry":           containerd.Spec{Mirrors: map[string]containerd.Mirror{"a": {Server: url, Endpoints: []containerd.Endpoint{{URL: url}}}}}.Validate(),
		} {
			if err == nil || strings.Contains(err.Error(), secret) {
				t.Errorf("%s %s: %v", what, url, err)
			}
		}
	}
	if err := validMirror("http://mirror.example.org/docker"); err != nil {
		t.Error(err)
	}
}

// TestMirrorsKeys: a mirror of what nobody fetches is a slip of the pen.
func TestMirrorsKeys(t *testing.T) {
	for from, want := range map[string]bool{
		"https://download.docker.com":                                               true,
		"https://download.docker.com/":                                              true,
		"https://download.docker.com/linux/ubuntu":                                  true,
		"https://nvidia.github.io":                                                  true,
		"https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/": true,
		"":                           false,
		"https://":                   true, // all of them
		"download.docker.com":        false,
		"http://download.docker.com": false,
		"https://download.docker.co": false,
		"https://download.docker.com.example.org": false,
		"docker.io": false,
	} {
		if mirrored(from) != want {
			t.Errorf("%q: %v", from, !want)
		}
	}
	s := newSettings(connect.SSHSettings{}, newShared())
	diags := s.downloads(t.Context(), providerModel{
		Mirrors: types.MapValueMust(types.StringType, map[string]attr.Value{"https://u:canary@downlod.docker.com": types.StringValue("http://mirror.example.org")}),
		Proxy:   types.ObjectNull(nil),
	})
	if len(diags) != 1 || diags[0].Summary() != "Nothing is fetched from there" || !strings.Contains(diags[0].Detail(), "\n  https://nvidia.github.io/libnvidia-container\n") || strings.Contains(diags[0].Detail(), "canary") {
		t.Errorf("it says %v", diags)
	}
}

// TestMirrored: all that is fetched without a declared repository begins with
// what is said to be known.
func TestMirrored(t *testing.T) {
	for _, os := range []nvidia.State{{OS: "debian", Release: "12", Arch: "amd64"}, {OS: "ubuntu", Release: "24.04", Arch: "arm64"}} {
		from, _, err := nvidia.CUDAToolkit("12.9", os)
		if err != nil || !mirrored(from.URL) || !mirrored(from.KeyURL) {
			t.Errorf("%s, %s: %v", from.URL, from.KeyURL, err)
		}
	}
}
