package train

import (
	"context"
	"fmt"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// New returns an unconfigured provider "train".
func New(version string) provider.Provider { return &trainProvider{version: version} }

type trainProvider struct{ version string }

// settings is what the provider block says, for the resources.
type settings struct {
	runs      string // folder in which runs of this machine are
	datasets  store
	unknown   bool // something in the provider block is not known yet
	given     string
	mu        sync.Mutex
	inspected map[string]manifest // by origin and fingerprint, for this phase
}

func (p *trainProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "train"
	resp.Version = p.version
}

func (p *trainProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "Trains models: datasets and experiments.",
		Attributes: map[string]schema.Attribute{
			"runs_dir": schema.StringAttribute{
				Optional:    true,
				Description: "Folder in which runs keep their logs, metrics and checkpoints. Default: $XDG_STATE_HOME/stoke/runs, else ~/.local/state/stoke/runs.",
			},
			"datasets_dir": schema.StringAttribute{
				Optional:    true,
				Description: "Folder in which prepared datasets are kept. Default: $XDG_STATE_HOME/stoke/datasets, else ~/.local/state/stoke/datasets.",
			},
			"trainer": schema.StringAttribute{
				Optional:    true,
				Description: "Path of stoke-trainer. Default: beside the stoke binary, else in $PATH.",
			},
		},
	}
}

func (p *trainProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var config struct {
		RunsDir     types.String `tfsdk:"runs_dir"`
		DatasetsDir types.String `tfsdk:"datasets_dir"`
		Trainer     types.String `tfsdk:"trainer"`
	}
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	s := &settings{
		unknown:   config.RunsDir.IsUnknown() || config.DatasetsDir.IsUnknown() || config.Trainer.IsUnknown(),
		given:     config.Trainer.ValueString(),
		inspected: make(map[string]manifest),
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
	if s.given != "" {
		if s.given, err = expandHome(s.given); err == nil {
			_, err = findTrainer(s.given)
		}
		if err != nil {
			resp.Diagnostics.AddAttributeError(path.Root("trainer"), "The trainer cannot be used",
				fmt.Sprintf("Give the path of stoke-trainer, or leave it out: %s.", err))
		}
	}
	resp.ResourceData = s
}

// trainer finds stoke-trainer; not having one is said where it is needed.
func (s *settings) trainer() (trainer, diag.Diagnostic) {
	t, err := findTrainer(s.given)
	if err != nil {
		return "", diag.NewErrorDiagnostic("stoke-trainer was not found",
			fmt.Sprintf("Training and preparing data is done by %s, which is expected beside the stoke binary or in $PATH. "+
				"Build it with `make`, or name it with trainer = \"…\" in the provider block. (%s)", trainerName, err))
	}
	return t, nil
}

func (p *trainProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		func() resource.Resource { return new(datasetResource) },
		func() resource.Resource { return new(experimentResource) },
	}
}

func (p *trainProvider) DataSources(context.Context) []func() datasource.DataSource { return nil }

// configured takes the settings that Configure left; none while validating.
func configured(req resource.ConfigureRequest, to **settings) {
	if s, ok := req.ProviderData.(*settings); ok {
		*to = s
	}
}
