package kube

import (
	"context"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/kube/live"
)

// New returns an unconfigured provider "kube".
func New(version string) provider.Provider {
	return &kubeProvider{version: version, doubts: new(doubts)}
}

type kubeProvider struct {
	version  string
	doubts   *doubts
	settings settings
}

// settings is what the provider block says, and the clusters of this phase.
type settings struct {
	config  types.String // path of a kubeconfig, for resources that name no cluster
	context types.String
	pool    kubernetes.Pool
	doubts  *doubts

	mu       sync.Mutex
	clusters map[*kubernetes.Client]*live.Cluster
}

func (p *kubeProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "kube"
	resp.Version = p.version
}

func (p *kubeProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "Objects of Kubernetes clusters.",
		Attributes: map[string]schema.Attribute{
			"config_path": schema.StringAttribute{
				Optional:    true,
				Description: `Path of the kubeconfig for resources that name no cluster, such as "~/.kube/config". Nothing is taken from $KUBECONFIG.`,
			},
			"config_context": schema.StringAttribute{
				Optional:    true,
				Description: "Context within that file. Default: its current one.",
			},
		},
		Blocks: map[string]schema.Block{"ssh": connect.SSHBlock()},
	}
}

func (p *kubeProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var config struct {
		Path    types.String `tfsdk:"config_path"`
		Context types.String `tfsdk:"config_context"`
		SSH     types.Object `tfsdk:"ssh"`
	}
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ssh, diags := connect.ReadSSH(ctx, config.SSH)
	resp.Diagnostics.Append(diags...)
	if diags.HasError() {
		return
	}
	if config.Path.IsNull() && !config.Context.IsNull() {
		resp.Diagnostics.AddAttributeError(path.Root("config_context"), "Context without a kubeconfig", "Give config_path as well.")
	}
	s := &p.settings
	s.config, s.context, s.doubts = config.Path, config.Context, p.doubts
	s.pool.SSH, s.pool.Agent = ssh, "stoke/"+p.version
	s.clusters = make(map[*kubernetes.Client]*live.Cluster)
	s.pool.Waiting = func(ctx context.Context, err error) {
		providers.CallFrom(ctx).Report(providers.Progress{Step: kubernetes.Waits(err), Percent: -1})
	}
	s.pool.Warned = p.doubts.warned
	resp.ResourceData, resp.DataSourceData = s, s
}

func (p *kubeProvider) Resources(context.Context) []func() resource.Resource {
	var all []func() resource.Resource
	for _, k := range kinds {
		all = append(all, func() resource.Resource { return &set{kind: k} })
	}
	return all
}

func (p *kubeProvider) DataSources(context.Context) []func() datasource.DataSource {
	var all []func() datasource.DataSource
	for _, s := range sources {
		all = append(all, func() datasource.DataSource { return &dataSource{source: s} })
	}
	return all
}

// errors of connection, for callers that treat them differently.
var clusterAt = path.Root("cluster")

// connection returns the connection that a resource names, or the default
// connection of the provider. known is false while something of it is not known
// yet.
func (s *settings) connection(ctx context.Context, argument types.Object) (c connect.Connection, known bool, diags diag.Diagnostics) {
	given, known, diags := connect.FromObject(ctx, argument)
	switch {
	case diags.HasError() || !known:
		return c, false, diags
	case given != nil:
		return *given, true, diags
	case s.config.IsUnknown() || s.context.IsUnknown():
		return c, false, diags
	case s.config.IsNull():
		diags.AddAttributeError(clusterAt, "No cluster", `Give cluster = …, such as the access of a cluster in this configuration, or config_path in the block provider "kube".`)
		return c, false, diags
	}
	return *s.byDefault(), true, diags
}

// byDefault is the connection of resources that name none.
func (s *settings) byDefault() *connect.Connection {
	return &connect.Connection{Credential: connect.Credential{Kubeconfig: &connect.Kubeconfig{Path: s.config.ValueString(), Context: s.context.ValueString()}}}
}

// cluster dials. id is the cluster that the state's objects are in, "" for any.
func (s *settings) cluster(ctx context.Context, c connect.Connection, id string) (*live.Cluster, error) {
	if c.ID == "" {
		c.ID = id
	}
	client, err := s.pool.Get(ctx, c)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clusters[client] == nil {
		s.clusters[client] = live.New(client)
	}
	return s.clusters[client], nil
}
