package metal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/metal/nvidia"
	"github.com/stokehq/stoke/providers/metal/packages"
)

// New returns an unconfigured provider "metal".
func New(version string) provider.Provider {
	return &metalProvider{version: version, shared: newShared()}
}

type metalProvider struct {
	version  string
	seen     *factsCache // what Review will need; nil where there is none
	shared   *processState
	settings *settings
}

func (p *metalProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "metal"
	resp.Version = p.version
}

type providerModel struct {
	SSH         types.Object `tfsdk:"ssh"`
	Parallelism types.Int64  `tfsdk:"parallelism"`
	Mirrors     types.Map    `tfsdk:"mirrors"`
	Proxy       types.Object `tfsdk:"proxy"`
	Kubeconfig  types.String `tfsdk:"cluster_kubeconfig"`
}

func (p *metalProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "Machines that are reached over SSH: operating system, firewall, NVIDIA driver.",
		Attributes: map[string]schema.Attribute{
			"cluster_kubeconfig": schema.StringAttribute{
				Optional:    true,
				Description: `Path of a kubeconfig on this computer whose user may list the nodes of the cluster, such as "~/.kube/config": max_unavailable then counts all of them, and otherwise the machines of this configuration. It is used for nothing else.`,
			},
			"parallelism": schema.Int64Attribute{
				Optional: true, Description: "How many machines are worked on at the same time, at most. Left out: as many as -parallelism lets through, 64 without it.",
			},
			"mirrors": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				Description: `Where machines fetch well-known packages and keys from instead: from the beginning of a URL to what replaces it, such as "https://download.docker.com" = "http://mirror.example.org/docker". The URLs begin with ` + strings.Join(wellKnown(), ", ") + `. Repositories that you declare have their own, and images registry_mirrors of containerd.`,
			},
		},
		Blocks: map[string]schema.Block{
			"ssh": connect.SSHBlock(),
			"proxy": schema.SingleNestedBlock{
				Description: "The proxy that machines download packages through.",
				Attributes: map[string]schema.Attribute{
					"http":     schema.StringAttribute{Optional: true, Description: "For http, such as http://proxy.example.org:3128."},
					"https":    schema.StringAttribute{Optional: true, Description: "For https."},
					"no_proxy": schema.ListAttribute{Optional: true, ElementType: types.StringType, Description: "Host names, .suffixes, addresses and networks that are reached directly, such as the network of the nodes. The machine itself, the names of services, and the networks 10.96.0.0/12 and 10.244.0.0/16 always are."},
				},
			},
		},
	}
}

// maxPlaces bounds parallelism: more is a slip of the keyboard.
const maxPlaces = 10_000

func (p *metalProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var config providerModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ssh, diags := connect.ReadSSH(ctx, config.SSH)
	resp.Diagnostics.Append(diags...)
	if diags.HasError() {
		return
	}
	p.settings = newSettings(ssh, p.shared)
	p.settings.clusters.Agent = "stoke/" + p.version
	resp.Diagnostics.Append(p.settings.downloads(ctx, config)...)
	resp.Diagnostics.Append(p.shared.countBy(config.Kubeconfig)...)
	p.settings.seen = p.seen
	switch n := config.Parallelism.ValueInt64(); {
	case n > 0 && n <= maxPlaces:
		p.settings.places = make(chan struct{}, n)
	case !config.Parallelism.IsNull() && !config.Parallelism.IsUnknown():
		resp.Diagnostics.AddAttributeError(path.Root("parallelism"), "Invalid number", fmt.Sprintf("Give a number of machines from 1 to %d, or leave it out.", maxPlaces))
	}
	resp.ResourceData = p.settings
	resp.DataSourceData = p.settings
}

func (p *metalProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		func() resource.Resource { return new(hostResource) },
		func() resource.Resource { return new(firewallResource) },
		func() resource.Resource { return new(gpuDriverResource) },
		func() resource.Resource { return new(nodeResource) },
		func() resource.Resource { return new(clusterResource) },
	}
}

func (p *metalProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		func() datasource.DataSource { return new(hostFacts) },
		func() datasource.DataSource { return new(knownHost) },
	}
}

// downloads reads what the block says of how machines download. While a part of
// it is unknown, nothing is taken from it.
func (s *settings) downloads(ctx context.Context, config providerModel) diag.Diagnostics {
	var diags diag.Diagnostics
	if isWhollyKnown(ctx, config.Mirrors) {
		diags.Append(config.Mirrors.ElementsAs(ctx, &s.mirrors, false)...)
	}
	for _, from := range slices.Sorted(maps.Keys(s.mirrors)) {
		at := path.Root("mirrors").AtMapKey(from)
		if !mirrored(from) {
			diags.AddAttributeError(at, "Nothing is fetched from there", fmt.Sprintf("%q: a mirror is for the beginning of a URL that machines fetch from, and they fetch from these:\n  %s\nRepositories that you declare have their own URLs.", packages.WithoutUser(from), strings.Join(wellKnown(), "\n  ")))
		}
		if err := validMirror(s.mirrors[from]); err != nil {
			diags.AddAttributeError(at, "Invalid mirror", fmt.Sprintf("%s: %s.", packages.WithoutUser(from), err))
		}
	}
	var proxy struct {
		HTTP    string   `tfsdk:"http"`
		HTTPS   string   `tfsdk:"https"`
		NoProxy []string `tfsdk:"no_proxy"`
	}
	if config.Proxy.IsNull() || !isWhollyKnown(ctx, config.Proxy) {
		return diags
	}
	diags.Append(config.Proxy.As(ctx, &proxy, basetypes.ObjectAsOptions{UnhandledNullAsEmpty: true})...)
	s.proxy = &packages.Proxy{HTTP: proxy.HTTP, HTTPS: proxy.HTTPS, Direct: proxy.NoProxy}
	if err := (packages.Spec{Owner: hostRecord, Proxy: s.proxy}).Validate(); err != nil {
		diags.AddAttributeError(path.Root("proxy"), "Invalid proxy", list(err))
	}
	return diags
}

// wellKnown returns the hosts of the default repositories.
func wellKnown() []string {
	return []string{dockerURL, nvidia.DriverURL, nvidia.ToolkitURL, kubernetesURL}
}

// mirrored tells whether a mirror's key is the beginning of a URL that machines
// fetch from, or a part of such a repository.
func mirrored(from string) bool {
	within := func(url, base string) bool {
		return url == base || strings.HasPrefix(url, strings.TrimSuffix(base, "/")+"/")
	}
	return slices.ContainsFunc(wellKnown(), func(known string) bool { return within(known, from) || within(from, known) }) && from != ""
}

// validMirror takes a URL without credentials: what machines fetch from there is
// written where all can read it.
func validMirror(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" && u.Scheme != "file":
		return errors.New("give what replaces the beginning of the URL, such as http://mirror.example.org/docker")
	case u.User != nil:
		return fmt.Errorf("a user or password would be readable by all users of the machines. Put them there into a file /etc/apt/auth.conf.d/NAME.conf of mode 0600 (apt_auth.conf(5)), and leave %s://%s here", u.Scheme, u.Host)
	}
	return nil
}
