package metal

import (
	"strings"
	"testing"

	"github.com/stokehq/stoke/providers/metal/containerd"
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
