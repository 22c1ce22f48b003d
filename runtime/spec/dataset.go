package spec

// The formats of datasets.
const (
	FormatCIFAR     = "cifar" // the binary files of CIFAR-10 and CIFAR-100
	FormatCSV       = "csv"
	FormatIDX       = "idx"
	FormatImages    = "images"           // PNG and JPEG, a folder for each class
	FormatRecordIO  = "recordio"         // of a prepared dataset
	FormatSynthetic = "synthetic-digits" // drawn, not read
	FormatText      = "text"             // the target of each byte is the next byte
	FormatExamples  = "tf-examples"      // tf.train.Example, in RecordIO or TFRecord files
)

// DatasetFormats returns the values of Origin.Format, sorted.
func DatasetFormats() []string {
	return []string{FormatCIFAR, FormatCSV, FormatIDX, FormatImages, FormatRecordIO, FormatSynthetic, FormatText, FormatExamples}
}

// Origin is the source of a dataset's records.
type Origin struct {
	Format string `json:"format"`         // one of DatasetFormats
	Path   string `json:"path,omitempty"` // folder, or file (csv, images, text)
	Train  int64  `json:"train,omitempty"`
	Test   int64  `json:"test,omitempty"` // most records of a split, 0: all; synthetic: how many (0: 10,000 and 2,000)
	Seed   uint64 `json:"seed,omitempty"` // of synthetic digits, a CSV file's split and the order of images

	CSV     *CSV     `json:"csv,omitempty"`
	Text    *Text    `json:"text,omitempty"`
	Example *Example `json:"example,omitempty"`
}

// CSV has the options of comma-separated values. The zero value reads what most
// public sets are: the label first, then values 0–255.
type CSV struct {
	// Label is the column of the class: its name in the header, or its number
	// from 0; default: "label" if the header has it, else 0. Labels that are text
	// become classes, sorted.
	Label     string  `json:"label,omitempty"`
	LabelType string  `json:"label_type,omitempty"` // "class", "number" or "" (class)
	Header    string  `json:"header,omitempty"`     // "yes", "no" or "" (looks whether the first line is numbers)
	Shape     []int   `json:"shape,omitempty"`      // of one record, default: one row of all columns
	Type      string  `json:"type,omitempty"`       // "u8", "f32" or "" (u8 if every value is a whole number of 0–255)
	TestShare float64 `json:"test_share,omitempty"` // part of the records for testing, without a test.csv; 0: 1/6
}

// Text has the options of texts.
type Text struct {
	Length    int     `json:"length,omitempty"`     // bytes of one record; 0: 128
	TestShare float64 `json:"test_share,omitempty"` // the last part of the text, for testing, without a test.txt; 0: 1/10
}

// Example has the options of records of the type tf.train.Example. The zero value
// reads what ElasticDL writes of MNIST and CIFAR-10.
type Example struct {
	Image string `json:"image,omitempty"` // feature with the values; default: image
	Label string `json:"label,omitempty"` // feature with the class, or with numbers where it has floats; default: label
	Shape []int  `json:"shape,omitempty"` // of one record; default: 28 × 28 or 32 × 32 × 3 for so many values, else one row
	Type  string `json:"type,omitempty"`  // "u8", "f32" or "" (u8 if every value is a whole number of 0–255)
}
