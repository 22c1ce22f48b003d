package gke

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"cloud.google.com/go/container/apiv1/containerpb"
	"github.com/googleapis/gax-go/v2"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
	"github.com/stokehq/stoke/providers/gke/cloud"
)

// New returns an unconfigured provider "gke".
func New(version string) provider.Provider { return &gkeProvider{version: version} }

type gkeProvider struct {
	version  string
	pace     cloud.Pace // of tests
	clusters kubernetes.Pool
	settings *settings
}

// settings is what resources get of the provider.
type settings struct {
	cloud       *cloud.Cloud
	clusters    *kubernetes.Pool
	credentials string // a file, "" for the application default ones
	sizes       *sizes
	services    *cloud.Services
	enable      bool      // services that are missing
	noted       *sync.Map // what plans have been told, which say it once
	advice      *advice
}

// opening is how long credentials, network and project may take to be checked.
const opening = 9 * time.Second

func (p *gkeProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "gke"
	resp.Version = p.version
}

// providerModel is the provider block.
type providerModel struct {
	Project      types.String `tfsdk:"project"`
	Region       types.String `tfsdk:"region"`
	Zone         types.String `tfsdk:"zone"`
	Credentials  types.String `tfsdk:"credentials"`
	Impersonate  types.String `tfsdk:"impersonate_service_account"`
	QuotaProject types.String `tfsdk:"quota_project"`
	Labels       types.Map    `tfsdk:"default_labels"`
	Transport    types.String `tfsdk:"transport"`
	Container    types.String `tfsdk:"container_endpoint"`
	Compute      types.String `tfsdk:"compute_endpoint"`
	File         types.String `tfsdk:"file_endpoint"`
	Usage        types.String `tfsdk:"service_usage_endpoint"`
	Enable       types.Bool   `tfsdk:"enable_services"`
}

func (p *gkeProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	text := func(description string) schema.StringAttribute {
		return schema.StringAttribute{Optional: true, Description: description}
	}
	endpoint := func(service, like string) schema.StringAttribute {
		return text(fmt.Sprintf("Where the %s API is, such as %q, which is the default. A URL with http:// has to lead to this computer; no token is sent there.", service, like))
	}
	project := text("Id of the project that things are in.")
	project.Optional, project.Required = false, true
	resp.Schema = schema.Schema{
		Description: "GKE clusters and node pools, disks and their snapshots, Filestore and firewall rules on Google Cloud. Credentials and project are checked once, before anything is touched.",
		Attributes: map[string]schema.Attribute{
			"project":                     project,
			"region":                      text(`Region of what names no place, such as "us-central1".`),
			"zone":                        text(`Zone of what names no place, such as "us-central1-a". It goes before region.`),
			"credentials":                 text("Path of a file of credentials: the key of a service account, of a federated identity, or what `gcloud auth application-default login` wrote. Default: the application default credentials."),
			"impersonate_service_account": text("E-mail address of a service account to act as."),
			"quota_project":               text("Project that the calls are counted in. Default: that of the credentials."),
			"default_labels": schema.MapAttribute{Optional: true, ElementType: types.StringType, Description: "Labels that everything gets which has labels; " +
				"labels of a resource take precedence."},
			"transport":              text("How the container API is spoken to: grpc, which is the default, or rest, where a proxy lets no gRPC pass."),
			"container_endpoint":     endpoint("container", "https://container.googleapis.com"),
			"compute_endpoint":       endpoint("compute", "https://compute.googleapis.com/compute/v1/"),
			"file_endpoint":          endpoint("Filestore", "https://file.googleapis.com/"),
			"service_usage_endpoint": endpoint("Service Usage", "https://serviceusage.googleapis.com/"),
			"enable_services": schema.BoolAttribute{Optional: true, Description: "Whether an apply enables the APIs that resources need and the project has not enabled. They stay enabled. " +
				"Default: false; a plan then lists the missing ones."},
		},
	}
}

func (p *gkeProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	s, known := readSettings(ctx, req.Config, &resp.Diagnostics)
	if !known || resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, opening)
	defer cancel()
	s.Agent = "stoke/" + p.version
	p.clusters.Agent = s.Agent
	c, err := cloud.Open(ctx, s)
	if err == nil {
		if p.pace != (cloud.Pace{}) {
			c = c.Paced(p.pace)
		}
		err = reach(ctx, c)
	}
	if err != nil {
		addError(&resp.Diagnostics, path.Empty(), "Google Cloud cannot be used", err)
		return
	}
	p.settings = &settings{cloud: c, clusters: &p.clusters, credentials: s.CredentialsFile, sizes: &sizes{},
		services: cloud.NewServices(c), enable: s.EnableServices, noted: &sync.Map{}, advice: &advice{}}
	resp.ResourceData, resp.DataSourceData = p.settings, p.settings
}

// readSettings reads the provider block. known is false while something of it
// is not known yet: resources then wait for it.
func readSettings(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics) (s cloud.Settings, known bool) {
	if !config.Raw.IsFullyKnown() {
		return s, false
	}
	var m providerModel
	if diags.Append(config.Get(ctx, &m)...); diags.HasError() {
		return s, false
	}
	s = cloud.Settings{
		Project: m.Project.ValueString(), Region: m.Region.ValueString(), Zone: m.Zone.ValueString(),
		Impersonate: m.Impersonate.ValueString(), QuotaProject: m.QuotaProject.ValueString(), Labels: texts(m.Labels),
		Transport: m.Transport.ValueString(), Container: m.Container.ValueString(), Compute: m.Compute.ValueString(), File: m.File.ValueString(), Usage: m.Usage.ValueString(),
		EnableServices: m.Enable.ValueBool(),
	}
	var err error
	if s.CredentialsFile, err = connect.ExpandHome(m.Credentials.ValueString()); err != nil {
		diags.AddAttributeError(path.Root("credentials"), "Credentials cannot be found", err.Error()+".")
	}
	if s.Transport == "" {
		s.Transport = cloud.GRPC
	}
	if s.Transport != cloud.GRPC && s.Transport != cloud.REST {
		diags.AddAttributeError(path.Root("transport"), "Unknown transport", "Give grpc or rest.")
	}
	for name, value := range s.Labels {
		checkLabel(path.Root("default_labels"), name, value, diags)
	}
	if s.Project == "" {
		diags.AddAttributeError(path.Root("project"), "No project", "Give the id of a project.")
	}
	return s, true
}

// reach makes one call, which shows that the network, the account and the project
// are good. An account that may not list clusters can still do other things, and so
// can a project without the API; plans say where it is needed.
func reach(ctx context.Context, c *cloud.Cloud) error {
	_, err := cloud.Read(ctx, c, func(ctx context.Context) (*containerpb.ListClustersResponse, error) {
		// The client would retry until the time limit and then report only the limit.
		return c.Clusters.ListClusters(ctx, &containerpb.ListClustersRequest{Parent: "projects/" + c.Project + "/locations/-"}, gax.WithRetry(func() gax.Retryer { return nil }))
	})
	var e *cloud.Error
	errors.As(err, &e)
	switch cloud.KindOf(err) {
	case cloud.Forbidden, cloud.Busy, cloud.Disabled:
		return nil
	case cloud.NotFound:
		return &cloud.Error{Summary: "No such project", Kind: cloud.NoProject, Err: err, Detail: e.Detail + " Correct project in the block provider \"gke\": it is the id, not the name."}
	case cloud.Ambiguous:
		why := fmt.Sprintf("It said nothing within %v.", opening)
		if !errors.Is(err, context.DeadlineExceeded) {
			why = sentence(e.Err)
		}
		return &cloud.Error{Summary: "Google cannot be reached", Kind: e.Kind, Err: err, Detail: fmt.Sprintf("No answer came from %s. %s Look at the network and its proxy.", firstNonEmpty(c.Container, "https://container.googleapis.com"), why)}
	}
	return err
}

func (p *gkeProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		func() resource.Resource { return &life[clusterModel, *clusterModel]{} },
		func() resource.Resource { return &life[poolModel, *poolModel]{} },
		func() resource.Resource { return &life[diskModel, *diskModel]{} },
		func() resource.Resource { return &life[snapshotModel, *snapshotModel]{} },
		func() resource.Resource { return &life[filestoreModel, *filestoreModel]{} },
		func() resource.Resource { return &life[firewallModel, *firewallModel]{} },
	}
}

func (p *gkeProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		func() datasource.DataSource { return &source[clusterFound, *clusterFound]{} },
		func() datasource.DataSource { return &source[diskFound, *diskFound]{} },
		func() datasource.DataSource { return &source[versionsFound, *versionsFound]{} },
		func() datasource.DataSource { return &source[acceleratorsFound, *acceleratorsFound]{} },
	}
}
