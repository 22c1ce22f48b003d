package graph

import (
	"reflect"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/runtime/model"
)

// The names of the two arguments.
const (
	Name = "model_graph" // a model in the configuration
	File = "model_file"  // a file with a model
)

// meanings describes the members of layers.
var meanings = map[string]string{
	"units":    "Of dense: its outputs. Of embedding: the width of a row.",
	"filters":  "Of conv2d: its maps.",
	"kernel":   "Of conv2d, max_pool and avg_pool: height and width of a window.",
	"stride":   "Of conv2d, max_pool and avg_pool: distance between windows. Default: 1; of pools their kernel.",
	"padding":  "Of conv2d: valid (default, none) or same (zeros around, as in TensorFlow).",
	"pad":      "Of conv2d, instead of padding: so many zeros on each side.",
	"no_bias":  "Of dense and conv2d: whether they have no bias. Default: false.",
	"rate":     "Of dropout: the part that is dropped, at least 0 and below 1.",
	"momentum": "Of batch_norm: of the running moments, above 0 and below 1. Default: 0.9.",
	"epsilon":  "Of batch_norm and layer_norm: added to the variance. Default: 0.001.",

	"groups":     "Of conv2d: groups of channels and maps, each map sees the channels of its group. Default: 1.",
	"vocabulary": "Of embedding: ids are 0 to vocabulary - 1.",
	"heads":      "Of attention: equal parts of the width, each with an attention of its own.",
	"causal":     "Of attention: whether a position sees only itself and earlier ones. Default: false.",
	"transpose":  "Of matmul: whether the second input is transposed. Default: false.",
}

// Attribute returns the schema of model_graph.
func Attribute() schema.SingleNestedAttribute {
	layer := map[string]schema.Attribute{
		"name": schema.StringAttribute{Optional: true, Description: "Required. Unique; variables are named after it."},
		"type": schema.StringAttribute{Optional: true, Description: "Required. Operation: " + operations() + "."},
		"inputs": schema.ListAttribute{Optional: true, ElementType: types.StringType,
			Description: "Names of earlier layers, or \"input\" for the records. Default: the layer before it."},
	}
	for _, member := range model.Members() {
		switch model.MemberType(member).Kind() {
		case reflect.Bool:
			layer[member] = schema.BoolAttribute{Optional: true, Description: meanings[member]}
		case reflect.String:
			layer[member] = schema.StringAttribute{Optional: true, Description: meanings[member]}
		default:
			layer[member] = schema.NumberAttribute{Optional: true, Description: meanings[member]}
		}
	}
	return schema.SingleNestedAttribute{
		Optional: true, Computed: true,
		Description: "A model as data, instead of model. With model_file the plan shows the file's model here.",
		Attributes: map[string]schema.Attribute{
			"layers": schema.ListNestedAttribute{
				Optional: true, NestedObject: schema.NestedAttributeObject{Attributes: layer},
				Description: "Required. Each layer reads earlier ones; the last one gives a number for each class.",
			},
			"loss": schema.StringAttribute{Optional: true,
				Description: "Loss function: softmax_cross_entropy (default for classes) or mean_squared_error (default for numbers)."},
			"metrics": schema.ListAttribute{Optional: true, ElementType: types.StringType,
				Description: "Measures of an evaluation, next to the loss: accuracy (default), top5_accuracy and perplexity; " +
					"of numbers mean_absolute_error (default)."},
			"label_smoothing": schema.NumberAttribute{Optional: true,
				Description: "Part of the answer that all classes share in training, at least 0 and below 1. Default: 0."},
		},
	}
}

// operations lists the operations for people.
func operations() string {
	text := ""
	for i, op := range model.Ops() {
		switch {
		case i == 0:
		case i == len(model.Ops())-1:
			text += " or "
		default:
			text += ", "
		}
		text += string(op)
	}
	return text
}
