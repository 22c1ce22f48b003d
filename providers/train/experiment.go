package train

import (
	"context"
	"maps"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/train/graph"
	"github.com/stokehq/stoke/providers/train/program"
)

// experimentResource is train_experiment: one run of a training, from its
// launch to its result.
type experimentResource struct{ settings *settings }

// experimentModel is train_experiment's value.
type experimentModel struct {
	ID            types.String `tfsdk:"id"`
	Name          types.String `tfsdk:"name"`
	Cluster       types.Object `tfsdk:"cluster"`
	Model         types.String `tfsdk:"model"`
	ModelGraph    types.Object `tfsdk:"model_graph"`
	ModelFile     types.String `tfsdk:"model_file"`
	ModelSummary  types.List   `tfsdk:"model_summary"`
	Program       types.Object `tfsdk:"program"`
	Dataset       types.String `tfsdk:"dataset"`
	Strategy      types.String `tfsdk:"strategy"`
	Synchronous   types.Bool   `tfsdk:"synchronous"`
	Deterministic types.Bool   `tfsdk:"deterministic"`
	BatchPer      types.String `tfsdk:"batch_per"`
	Scaling       types.String `tfsdk:"learning_rate_scaling"`
	ComputeType   types.String `tfsdk:"compute_type"`
	Deadline      types.String `tfsdk:"deadline"`
	InitFrom      types.String `tfsdk:"init_from"`
	InitSkip      types.List   `tfsdk:"init_skip"`
	GPUHealth     types.String `tfsdk:"gpu_health"`
	Wait          types.Bool   `tfsdk:"wait"`
	AssumeNodes   types.Bool   `tfsdk:"assume_nodes"`

	Hyperparameters types.Object `tfsdk:"hyperparameters"`
	ParameterServer types.Object `tfsdk:"parameter_server"`
	Worker          types.Object `tfsdk:"worker"`
	Evaluation      types.Object `tfsdk:"evaluation"`
	Checkpoint      types.Object `tfsdk:"checkpoint"`

	Status         types.String `tfsdk:"status"`
	Metrics        types.Map    `tfsdk:"metrics"`
	GPUHealthWorst types.String `tfsdk:"gpu_health_worst"`
	RunsDir        types.String `tfsdk:"runs_dir"`
	RunDir         types.String `tfsdk:"run_dir"`
	LogsDir        types.String `tfsdk:"logs_dir"`
	MetricsFile    types.String `tfsdk:"metrics_file"`
	SpecHash       types.String `tfsdk:"spec_hash"`
	DatasetHash    types.String `tfsdk:"dataset_hash"`
	CodeHash       types.String `tfsdk:"code_hash"`
	InitHash       types.String `tfsdk:"init_hash"`
	StartedAt      types.String `tfsdk:"started_at"`
	FinishedAt     types.String `tfsdk:"finished_at"`

	placementModel

	Timeouts timeouts.Value `tfsdk:"timeouts"`
}

func (r *experimentResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_experiment"
}

func (r *experimentResource) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	configured(req, &r.settings)
}

func (r *experimentResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "One training run: planned, launched, watched, rescaled and removed. A finished run stays finished.",
		Attributes:  merged(merged(merged(experimentAttributes(), initAttributes()), gpuAttributes()), placementAttributes()),
		Blocks: map[string]schema.Block{
			"program":     program.Block(),
			"coordinator": block("On a cluster: the pod that hands out records, commits updates and keeps the run's log.", coordinatorAttributes()),
			"parameter_server": block(serverText, podAttributes(map[string]schema.Attribute{
				"replicas": number("Number; each holds a span of the parameters. Default: 1, or 0 with program and no block."),
			})),
			"worker": block(workerText, merged(workerPodAttributes(), map[string]schema.Attribute{
				"replicas":     number("How many. Can change while the run lives. Default: 1."),
				"min_replicas": number("With fewer of them alive, training waits. Default: 1."),
				"gpus":         number("GPUs of each. A built-in model uses at most 1, with stoke-trainer-gpu. Default: 0."),
				"threads":      number("Threads of each. Default: 0, the cores divided among the workers."),
				"priority":     schema.StringAttribute{Optional: true, Description: "low, normal or high: who gives way on a full cluster. On one machine it is only recorded."},
			})),
			"evaluation": block("Measures the model on held-out records; always at the end.", map[string]schema.Attribute{
				"every_steps": number("Also after every so many updates. Default: 0, only at the end."),
			}),
			"checkpoint": block("Saves the run, so that it can go on after a loss.", map[string]schema.Attribute{
				"every_steps":   number("After every so many updates. Default: 0, not by their number."),
				"every_seconds": number("After every so many seconds. Default: 300; 0 is not by time."),
				"keep":          number("How many of the newest to keep. Default: 3."),
				"place":         option("On a cluster: gs://BUCKET/PREFIX, s3://BUCKET/PREFIX, or a folder on a volume. Default: with the coordinator's log."),
			}),
			"timeouts": timeouts.Block(ctx, timeouts.Opts{
				Create: true, Update: true, Delete: true,
				CreateDescription: "How long apply waits for the run to end, e.g. \"2h\". The run itself continues; see deadline. Default: no limit.",
				UpdateDescription: "How long apply waits for a run that it attached to. Default: no limit.",
				DeleteDescription: "How long stopping may take before it is forced. Default: 1m and stop_grace; on a cluster 3m.",
			}),
		},
	}
}

const (
	serverText = "Processes that hold the parameters; with program, processes of the same program that have the role ps."
	workerText = "Processes that compute gradients, or run the program."
)

func experimentAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name":    text("Name of the run, for readers. Default: the model's name, or \"program\"."),
		"cluster": connect.Argument("Connection to the cluster to run on. Left out: this machine."),
		"model": option("Built-in model: softmax, linear, mlp, mnist-cnn, cifar-cnn, resnet20, resnet18 or transformer. " +
			"Exactly one of model, model_graph, model_file and program is given."),
		graph.Name: graph.Attribute(),
		graph.File: option("JSON file with a model as data, like model_graph: {\"layers\": [{\"name\": …, \"type\": …}, …]}."),
		"model_summary": schema.ListAttribute{
			Computed: true, ElementType: types.StringType,
			Description: "Of model_graph and model_file: each layer with the shape of its output for one record, and its parameters.",
		},
		"dataset": option("Prepared dataset to train on: train_dataset's uri. A program may have any folder, or none."),
		"strategy": text("How gradients become updates: parameter_server, or all_reduce: every worker holds all parameters. " +
			"Default: all_reduce where workers have GPUs, unless synchronous = false or parameter_server is given; " +
			"else parameter_server. An existing run keeps its strategy."),
		"synchronous":   schema.BoolAttribute{Optional: true, Computed: true, Description: "Whether an update waits for its whole batch; otherwise each push is one. Default: true."},
		"deterministic": schema.BoolAttribute{Optional: true, Description: "Whether sums are made in one order on any number of workers, servers and threads, so that the same machine gives the same parameters to the bit; needs a little more memory. Default: false."},
		"compute_type": option("Type of products and convolutions: f32, tf32 (f32 with 10 bits of mantissa) or bf16. " +
			"Parameters are always f32. Only GPUs have tf32 and bf16. Default: tf32 on GPUs; f32 on the CPU and with deterministic."),
		"batch_per":             text("Meaning of batch_size: the batch of one update (\"update\", default), or one worker's part of it (\"worker\")."),
		"learning_rate_scaling": text("How the rate grows with the workers under batch_per = \"worker\": none (default), linear or sqrt."),
		"deadline":              schema.StringAttribute{Optional: true, Description: "How long the run may run with at least min_replicas workers, e.g. \"2h\"; then it is stopped, and a later deadline resumes it. Default: no limit."},
		"wait":                  schema.BoolAttribute{Optional: true, Computed: true, Description: "Whether apply waits for the run to end. Default: true."},
		"assume_nodes": schema.BoolAttribute{
			Optional: true,
			Description: "On a cluster: whether nodes that take the pods are assumed, " +
				"such as nodes of an autoscaler that stoke does not find. Default: false; the plan rejects pods that no node could take.",
		},
		"hyperparameters": schema.SingleNestedAttribute{
			Optional: true, Computed: true,
			Description: "Arguments that the result depends on: a change of any of them is a new run.",
			Attributes:  hyperparameterAttributes(),
		},
		"id":     result("Names the run."),
		"status": result("pending, running, succeeded, failed, stopped or lost."),
		"metrics": schema.MapAttribute{
			Computed: true, ElementType: types.NumberType,
			Description: "Newest evaluation (accuracy, loss, …) and samples_per_second, steps, epochs, elapsed_seconds, …; of a program its own metrics.",
		},
		"runs_dir":     result("Parent folder of the run's own folder."),
		"run_dir":      result("The run's folder; removed on destroy."),
		"logs_dir":     result("Logs of every process."),
		"metrics_file": result("Every update and evaluation, one JSON object per line."),
		"spec_hash":    result("Identifies what was trained; a change means a new run."),
		"dataset_hash": result("Hash of the records that it was trained on. Null where they are not a prepared dataset."),
		"code_hash":    result("Hash of the program's code."),
		"started_at":   result("When it started (RFC 3339)."),
		"finished_at":  result("When it ended (RFC 3339)."),
	}
}

func hyperparameterAttributes() map[string]schema.Attribute {
	given := func(text string) schema.NumberAttribute {
		return schema.NumberAttribute{Optional: true, Description: text}
	}
	return map[string]schema.Attribute{
		"learning_rate": number("Step size. Default: 0.05; of adam and adamw 0.001, of adagrad 0.01."),
		"batch_size":    number("Records; see batch_per. Default: 64."),
		"epochs":        number("Passes over the training records; 0 with init_from only evaluates that model. Default: 1."),
		"max_steps":     number("Most updates. Default: 0, no limit."),
		"micro_batch":   number("Records per step of the engine. Default: batch_size, at most 32."),
		"momentum":      number("Of sgd, at least 0 and below 1. Default: 0."),
		"nesterov":      schema.BoolAttribute{Optional: true, Computed: true, Description: "Of sgd: Nesterov's momentum. Default: false."},
		"weight_decay":  number("Not applied to biases and normalisation. Part of the gradient; under adamw apart from it. Default: 0."),
		"seed":          number("Of initial values, order and dropout. Default: 0."),

		"optimizer": option("sgd (default), adam, adamw or adagrad."),
		"beta1":     given("Of adam and adamw: decay of the mean gradient, above 0 and below 1. Default: 0.9."),
		"beta2":     given("Of adam and adamw: decay of the mean squared gradient, above 0 and below 1. Default: 0.999."),
		"epsilon":   given("Of adam, adamw and adagrad: added to the divisor. Default: 1e-8; of adagrad 1e-10."),
		"clip_norm": given("Largest norm of an update's mean gradient over all parameters; more is scaled down. Default: 0, no limit."),
		"random_crop": given("Pictures of training records are padded with so many black pixels on each side, " +
			"and a part of their size is taken at random. Default: 0."),
		"random_flip": schema.BoolAttribute{Optional: true, Description: "Half of the pictures of training records are mirrored, " +
			"left to right. Default: false."},
		"shuffle_block": given("Records of a block, which an epoch's order reads together: for training sets larger than memory. " +
			"Default: 0, each record is read by itself."),
		"schedule": option("Learning rate over the committed records: constant (default); step, lowered at epochs; " +
			"cosine or linear, down to minimum_learning_rate at the run's end."),
		"warmup_epochs": given("Epochs at the beginning, such as 0.5: the rate grows linearly from 0. Default: 0."),
		"decay_epochs": schema.ListAttribute{Optional: true, ElementType: types.NumberType,
			Description: "Of the schedule step: after these epochs the rate is multiplied by decay_factor, such as [82, 109]."},
		"decay_every":           given("Of the schedule step, instead of decay_epochs: so many epochs lie between two decays."),
		"decay_factor":          given("Of the schedule step, above 0 and at most 1. Default: 0.1."),
		"minimum_learning_rate": given("Of the schedules cosine and linear: the rate at the end. Default: 0."),
	}
}

func hyperparameterTypes() map[string]attr.Type {
	ty := make(map[string]attr.Type)
	for name, a := range hyperparameterAttributes() {
		ty[name] = a.GetType()
	}
	return ty
}

// merged is all of both.
func merged(a, b map[string]schema.Attribute) map[string]schema.Attribute {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func number(text string) schema.NumberAttribute {
	return schema.NumberAttribute{Optional: true, Computed: true, Description: text}
}

func text(text string) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, Computed: true, Description: text}
}

func result(text string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, Description: text}
}

func block(text string, attributes map[string]schema.Attribute) schema.SingleNestedBlock {
	return schema.SingleNestedBlock{Description: text, Attributes: attributes}
}
