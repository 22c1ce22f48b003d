package train

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// datasetResource is train_dataset: records in our storage format, made from
// what people have.
type datasetResource struct{ settings *settings }

// datasetModel is train_dataset's value.
type datasetModel struct {
	ID          types.String   `tfsdk:"id"`
	Name        types.String   `tfsdk:"name"`
	Format      types.String   `tfsdk:"format"`
	Path        types.String   `tfsdk:"path"`
	Train       types.Number   `tfsdk:"train"`
	Test        types.Number   `tfsdk:"test"`
	Seed        types.Number   `tfsdk:"seed"`
	DatasetsDir types.String   `tfsdk:"datasets_dir"`
	URI         types.String   `tfsdk:"uri"`
	Hash        types.String   `tfsdk:"hash"`
	TrainCount  types.Number   `tfsdk:"train_records"`
	TestCount   types.Number   `tfsdk:"test_records"`
	Classes     types.Number   `tfsdk:"classes"`
	Shape       types.List     `tfsdk:"shape"`
	CSV         types.Object   `tfsdk:"csv"`
	Text        types.Object   `tfsdk:"text"`
	Example     types.Object   `tfsdk:"example"`
	Timeouts    timeouts.Value `tfsdk:"timeouts"`
}

func (r *datasetResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_dataset"
}

func (r *datasetResource) Configure(_ context.Context, req resource.ConfigureRequest, _ *resource.ConfigureResponse) {
	configured(req, &r.settings)
}

func (r *datasetResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	computed := func(text string) schema.StringAttribute {
		return schema.StringAttribute{Computed: true, Description: text}
	}
	count := func(text string) schema.NumberAttribute {
		return schema.NumberAttribute{Computed: true, Description: text}
	}
	resp.Schema = schema.Schema{
		Description: "A dataset, checked and stored in the format that training reads. Equal records are stored once.",
		Attributes: map[string]schema.Attribute{
			"id":   computed("Identifies this owner of the stored records."),
			"name": schema.StringAttribute{Optional: true, Description: "Its name, for readers."},
			"format": schema.StringAttribute{
				Required: true,
				Description: "Where records come from: images (PNG and JPEG, a folder for each class), cifar (CIFAR-10's and CIFAR-100's binary files), " +
					"idx (MNIST's files, gzip too), csv, text, " +
					"tf-examples (tf.train.Example in ElasticDL's RecordIO or in TFRecord files), recordio, " +
					"or synthetic-digits (drawn, needs no files).",
			},
			"path": schema.StringAttribute{
				Optional:    true,
				Description: "Folder, or file (csv, text, images: .zip), to read. It is never written to or removed.",
			},
			"train": schema.NumberAttribute{
				Optional:    true,
				Description: "Most training records to take (default: all); how many to draw of synthetic-digits (default: 10000).",
			},
			"test": schema.NumberAttribute{
				Optional:    true,
				Description: "Most test records to take (default: all); how many to draw of synthetic-digits (default: 2000).",
			},
			"seed": schema.NumberAttribute{
				Optional: true,
				Description: "Seed of synthetic-digits, of the order of images, and of how a CSV file without a test file is split. " +
					"Default: 0.",
			},
			"datasets_dir":  computed("Parent folder of the prepared dataset's own folder."),
			"uri":           computed("Where the prepared dataset is: an experiment's `dataset`."),
			"hash":          computed("Identifies the records: equal hashes, equal data. A change means a new dataset."),
			"train_records": count("Training records."),
			"test_records":  count("Held-out records."),
			"classes":       count("Labels are 0 … classes-1; 0 where they are numbers."),
			"shape": schema.ListAttribute{
				Computed: true, ElementType: types.NumberType,
				Description: "Shape of one record's features.",
			},
		},
		Blocks: originBlocks(),
	}
	resp.Schema.Blocks["timeouts"] = timeouts.Block(ctx, timeouts.Opts{Create: true, Delete: true})
}

// originBlocks returns the blocks of the formats.
func originBlocks() map[string]schema.Block {
	return map[string]schema.Block{
		"text": schema.SingleNestedBlock{
			Description: "How to cut a text into records. The target of each byte is the byte that follows it.",
			Attributes: map[string]schema.Attribute{
				"length": schema.NumberAttribute{Optional: true, Description: "Bytes of one record. Default: 128."},
				"test_share": schema.NumberAttribute{Optional: true, Description: "Share of the text, at its end, " +
					"held out where test.txt is missing. Default: 1/10."},
			},
		},
		"example": schema.SingleNestedBlock{
			Description: "Which features of a tf.train.Example to read.",
			Attributes: map[string]schema.Attribute{
				"image": schema.StringAttribute{Optional: true, Description: "Feature with the values of a record: " +
					"floats, integers or bytes. Default: image."},
				"label": schema.StringAttribute{Optional: true, Description: "Feature with the class, an integer, " +
					"or with numbers, floats. Default: label."},
				"shape": schema.ListAttribute{Optional: true, ElementType: types.NumberType, Description: "Shape of " +
					"one record. Default: 28 × 28 for 784 values, 32 × 32 × 3 for 3072, else one row of all."},
				"type": schema.StringAttribute{Optional: true, Description: "u8 or f32. " +
					"Default: u8 if every value is a whole number of 0–255."},
			},
		},
		"csv": schema.SingleNestedBlock{
			Description: "How to read comma-separated values.",
			Attributes: map[string]schema.Attribute{
				"label": schema.StringAttribute{Optional: true, Description: "Column of the label: its name, or its number from 0. " +
					"Default: \"label\" if the header has it, else 0. Text labels become classes, sorted."},
				"label_type": schema.StringAttribute{Optional: true, Description: "class, or number: the target is the number itself, " +
					"for models that tell a number. Default: class."},
				"header": schema.StringAttribute{Optional: true, Description: "Whether the first line is a header: yes, no; default: it is looked at."},
				"shape":  schema.ListAttribute{Optional: true, ElementType: types.NumberType, Description: "Shape of one record. Default: one row of all columns."},
				"type":   schema.StringAttribute{Optional: true, Description: "u8 or f32. Default: u8 if every value is a whole number of 0–255."},
				"test_share": schema.NumberAttribute{Optional: true, Description: "Share of the records held out " +
					"where test.csv is missing. Default: 1/6."},
			},
		},
	}
}
