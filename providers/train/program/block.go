package program

import (
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// The values of on_change.
const (
	NewRun = "new_run"
	Resume = "resume"
)

// Block returns the schema of the block.
func Block() schema.SingleNestedBlock {
	return schema.SingleNestedBlock{
		Description: "A program of your own that the workers run, instead of a built-in model.",
		Attributes: map[string]schema.Attribute{
			"command": schema.ListAttribute{
				Optional: true, ElementType: types.StringType,
				Description: "Required. The program and its arguments, where {{name}} is replaced by a parameter. " +
					"Its working folder is the folder of code.",
			},
			"code": schema.StringAttribute{
				Optional: true,
				Description: "Folder of the program's code, at most 64 MiB. Each run has its own copy. " +
					"The file .stokeignore in it names files to leave out.",
			},
			"processes": optional("Processes of each worker: a number, or \"gpu\" for one for each GPU. Default: 1."),
			"framework": optional("Library that the program uses: torch, tensorflow, jax or none. " +
				"It decides about the environment of the processes. Default: none."),
			"chief": schema.BoolAttribute{
				Optional: true, Computed: true,
				Description: "With TensorFlow: whether the first worker is the chief. The run ends with its chief. Default: false.",
			},
			"evaluator": schema.BoolAttribute{
				Optional: true, Computed: true,
				Description: "With TensorFlow: whether the last worker is the evaluator. Default: false.",
			},
			"environment": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				Description: "Variables of the program. They are stored: secrets belong into files.",
			},
			"parameters": schema.DynamicAttribute{
				Optional: true,
				Description: "Texts, numbers and truth values by name. The program reads them from the JSON file $STOKE_PARAMETERS, " +
					"from $STOKE_PARAM_NAME, or as {{name}} in command.",
			},
			"on_change": optional("Effect of a change of command, code, environment or parameters: a new run (\"new_run\", default), " +
				"or the same run resumes from its checkpoint (\"resume\")."),
			"join_timeout": optional("How long a start waits for the other workers once there are min_replicas of them. Default: \"30s\"."),
			"max_restarts": schema.NumberAttribute{
				Optional: true, Computed: true,
				Description: "How many times the program is started again after an error of its own. Default: 3.",
			},
			"stop_grace": optional("How long the program may take to save itself and end after SIGTERM. Default: \"30s\"."),
		},
	}
}

func optional(text string) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, Computed: true, Description: text}
}
