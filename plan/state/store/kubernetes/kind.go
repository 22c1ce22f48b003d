package kubernetes

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stokehq/stoke/plan/state/backend"
	"github.com/stokehq/stoke/plan/state/store/object"
	"github.com/stokehq/stoke/runtime/pattern"
)

// Kind is the backend "kubernetes".
func Kind() *backend.Kind {
	text := func(name, variable string) backend.Argument {
		return backend.Argument{Name: name, Type: cty.String, Environment: []string{variable}}
	}
	secret := func(name, variable string) backend.Argument {
		return backend.Argument{Name: name, Type: cty.String, Environment: []string{variable}, Secret: true}
	}
	truth := func(name, variable string) backend.Argument {
		return backend.Argument{Name: name, Type: cty.Bool, Environment: []string{variable}}
	}
	list := cty.List(cty.String)
	return &backend.Kind{Name: "kubernetes", Arguments: []backend.Argument{
		{Name: "secret_suffix", Type: cty.String, Required: true},
		{Name: "labels", Type: cty.Map(cty.String)},
		text("namespace", "KUBE_NAMESPACE"),
		truth("in_cluster_config", "KUBE_IN_CLUSTER_CONFIG"),
		truth("load_config_file", "KUBE_LOAD_CONFIG_FILE"),
		text("host", "KUBE_HOST"),
		text("username", "KUBE_USER"),
		secret("password", "KUBE_PASSWORD"),
		truth("insecure", "KUBE_INSECURE"),
		text("client_certificate", "KUBE_CLIENT_CERT_DATA"),
		secret("client_key", "KUBE_CLIENT_KEY_DATA"),
		text("cluster_ca_certificate", "KUBE_CLUSTER_CA_CERT_DATA"),
		{Name: "config_paths", Type: list}, // KUBE_CONFIG_PATHS is a list with separators
		text("config_path", "KUBE_CONFIG_PATH"),
		text("config_context", "KUBE_CTX"),
		text("config_context_auth_info", "KUBE_CTX_AUTH_INFO"),
		text("config_context_cluster", "KUBE_CTX_CLUSTER"),
		secret("token", "KUBE_TOKEN"),
		text("proxy_url", "KUBE_PROXY_URL"),
		{Name: "exec", Nested: []backend.Argument{
			{Name: "api_version", Type: cty.String, Required: true},
			{Name: "command", Type: cty.String, Required: true},
			{Name: "env", Type: cty.Map(cty.String)},
			{Name: "args", Type: list},
		}},
	}, Open: func(_ context.Context, c backend.Config) (backend.Backend, error) {
		return open(c, usually, object.DefaultTiming)
	}}
}

// usually rides out what a control plane does for some seconds now and then.
var usually = patience{attempts: 6, first: 300 * time.Millisecond, most: 10 * time.Second}

// numbered matches names like those of a state's parts.
var numbered = pattern.New(`-[0-9]+$`)

func open(c backend.Config, tries patience, timing object.Timing) (*Backend, error) {
	b := &Backend{suffix: c.String("secret_suffix"), labels: c.Map("labels"), timing: timing, largest: core.MaxSecretSize}
	if err := checkName("secret_suffix", b.suffix); err != nil {
		return nil, err
	}
	if numbered.MatchString(b.suffix) {
		return nil, fmt.Errorf("secret_suffix must not end with a number after a hyphen, as %q does: such names are "+
			"for the parts of a large state", b.suffix)
	}
	for name, value := range b.labels {
		if bad := append(validation.IsQualifiedName(name), validation.IsValidLabelValue(value)...); len(bad) > 0 {
			return nil, fmt.Errorf("the label %s = %q is not valid in Kubernetes: %s", name, value, bad[0])
		}
	}
	var err error
	b.client, err = connect(c, tries)
	return b, err
}

// checkName reports whether a text can be a part of a Secret's name and a
// label's value.
func checkName(what, name string) error {
	bad := append(validation.IsDNS1123Subdomain(name), validation.IsValidLabelValue(name)...)
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("%s %q cannot be a part of a Secret's name: use up to 63 lower case letters, digits, hyphens and dots, with a letter or digit at either end", strings.TrimSpace(what), name)
}
