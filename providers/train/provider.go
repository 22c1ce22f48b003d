package train

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
)

// New returns an unconfigured provider "train".
func New(version string) provider.Provider {
	return &trainProvider{version: version, asking: new(asking)}
}

type trainProvider struct {
	version  string
	asking   *asking   // what a review of the plan looks at
	settings *settings // once it is configured
}

// settings is what the provider block says, for the resources.
type settings struct {
	runs      string // folder in which runs of this machine are
	datasets  store
	unknown   bool // something in the provider block is not known yet
	given     string
	givenGPU  string // path of the trainer with GPUs
	image     string // of pods whose experiment names none
	limits    limits // of every experiment
	asking    *asking
	clusters  kubernetes.Pool
	mu        sync.Mutex
	inspected map[string]manifest // by origin and fingerprint, for this phase
	built     map[string]outcome  // by fingerprint, for this phase
	version   string              // stoke's
}

func (p *trainProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "train"
	resp.Version = p.version
}

func (p *trainProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "Trains models: datasets, experiments, and images for clusters.",
		Attributes: map[string]schema.Attribute{
			"runs_dir": schema.StringAttribute{
				Optional:    true,
				Description: "Folder of the runs' logs, metrics and checkpoints. Default: $XDG_STATE_HOME/stoke/runs, else ~/.local/state/stoke/runs.",
			},
			"datasets_dir": schema.StringAttribute{
				Optional:    true,
				Description: "Folder of the prepared datasets. Default: $XDG_STATE_HOME/stoke/datasets, else ~/.local/state/stoke/datasets.",
			},
			"trainer": schema.StringAttribute{
				Optional:    true,
				Description: "Path of stoke-trainer. Default: next to the stoke binary, else in $PATH.",
			},
			"gpu_trainer": schema.StringAttribute{
				Optional: true,
				Description: "Path of stoke-trainer-gpu, for workers with GPUs on this machine. " +
					"Default: next to stoke-trainer or stoke, else in $PATH.",
			},
			"trainer_image": schema.StringAttribute{
				Optional:    true,
				Description: "Image with stoke-trainer as its entry point, for experiments on clusters that name none.",
			},
			"limits": limitsAttribute(),
		},
		Blocks: map[string]schema.Block{"ssh": connect.SSHBlock()},
	}
}

func (p *trainProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var config struct {
		RunsDir     types.String `tfsdk:"runs_dir"`
		DatasetsDir types.String `tfsdk:"datasets_dir"`
		Trainer     types.String `tfsdk:"trainer"`
		GPUTrainer  types.String `tfsdk:"gpu_trainer"`
		Image       types.String `tfsdk:"trainer_image"`
		Limits      types.Object `tfsdk:"limits"`
		SSH         types.Object `tfsdk:"ssh"`
	}
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	s := &settings{
		unknown: slices.ContainsFunc([]types.String{config.RunsDir, config.DatasetsDir, config.Trainer, config.GPUTrainer, config.Image},
			types.String.IsUnknown),
		image:     config.Image.ValueString(),
		given:     config.Trainer.ValueString(),
		givenGPU:  config.GPUTrainer.ValueString(),
		inspected: make(map[string]manifest),
		built:     make(map[string]outcome),
		version:   p.version,
		asking:    p.asking,
	}
	ssh, diags := connect.ReadSSH(ctx, config.SSH)
	resp.Diagnostics.Append(diags...)
	limits, known, diags := readLimits(config.Limits)
	resp.Diagnostics.Append(diags...)
	s.limits, s.unknown = limits, s.unknown || !known
	s.clusters.SSH, s.clusters.Agent = ssh, "stoke/"+s.version
	s.clusters.Waiting = func(ctx context.Context, err error) {
		providers.CallFrom(ctx).Report(providers.Progress{Step: kubernetes.Waits(err), Percent: -1})
	}
	runs, err := stateFolder(config.RunsDir.ValueString(), "runs")
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("runs_dir"), "No folder for runs", fmt.Sprintf("Set runs_dir in the provider block: %s.", err))
	}
	datasets, err := stateFolder(config.DatasetsDir.ValueString(), "datasets")
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("datasets_dir"), "No folder for datasets", fmt.Sprintf("Set datasets_dir in the provider block: %s.", err))
	}
	s.runs, s.datasets = runs, store(datasets)
	for _, program := range []struct {
		argument, name string
		given          *string
	}{{"trainer", trainerName, &s.given}, {"gpu_trainer", gpuTrainerName, &s.givenGPU}} {
		if *program.given == "" {
			continue
		}
		if *program.given, err = expandHome(*program.given); err == nil {
			_, err = findProgram(program.name, *program.given)
		}
		if err != nil {
			resp.Diagnostics.AddAttributeError(path.Root(program.argument), "The trainer cannot be used",
				fmt.Sprintf("Give the path of %s, or leave it out: %s.", program.name, err))
		}
	}
	p.settings, resp.ResourceData = s, s
}

// trainer finds stoke-trainer; not having one is said where it is needed.
func (s *settings) trainer() (trainer, diag.Diagnostic) {
	t, err := findTrainer(s.given)
	if err != nil {
		return "", diag.NewErrorDiagnostic("stoke-trainer was not found",
			fmt.Sprintf("Training and preparing data is done by %s, which is expected next to the stoke binary or in $PATH. "+
				"Build it with `make`, or name it with trainer = \"…\" in the provider block. (%s)", trainerName, err))
	}
	return t, nil
}

func (p *trainProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		func() resource.Resource { return new(datasetResource) },
		func() resource.Resource { return new(experimentResource) },
		func() resource.Resource { return new(imageResource) },
	}
}

func (p *trainProvider) DataSources(context.Context) []func() datasource.DataSource { return nil }

// configured takes the settings that Configure left; none while validating.
func configured(req resource.ConfigureRequest, to **settings) {
	if s, ok := req.ProviderData.(*settings); ok {
		*to = s
	}
}

// Source is the provider's address in full.
const Source = "registry.terraform.io/stokehq/train"

// Entry is the provider for stoke's catalogue.
func Entry(version string) providers.Entry {
	pods := new(asking)
	entry := providers.Linked(func() (tfprotov6.ProviderServer, error) {
		p := &trainProvider{version: version, asking: pods}
		return pluginServer{providerserver.NewProtocol6(p)(), p}, nil
	}, version, providers.ServerOptions{Name: "stokehq/train", Marks: true})
	entry.Review, entry.Runs = pods.review, runs{}
	return entry
}

// pluginServer ends the provider's connections with it, and tells how it logs in.
type pluginServer struct {
	tfprotov6.ProviderServer
	provider *trainProvider
}

// SSH is that of connect.Configured.
func (s pluginServer) SSH() connect.SSHSettings {
	if s.provider.settings == nil {
		return connect.SSHSettings{}
	}
	return s.provider.settings.clusters.SSH
}

// Cluster is that of connect.Configured: experiments name theirs.
func (s pluginServer) Cluster() *connect.Connection { return nil }

func (s pluginServer) Close() error {
	if s.provider.settings != nil {
		s.provider.settings.clusters.Close()
	}
	return nil
}
