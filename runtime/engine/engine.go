package engine

import "context"

// Engine makes replicas of one model on one kind of device.
type Engine interface {
	// Build compiles the model for one device. The returned Replica holds
	// the model's initial values (see Init) and is used by one goroutine.
	Build(m *Model, o Options) (Replica, error)
}

// Options fixes everything about a replica that may not change afterwards.
type Options struct {
	Device        int    // index of the GPU; the CPU engine ignores it
	Threads       int    // most threads one call may use; 0 = all of GOMAXPROCS
	MicroBatch    int    // records per Step: the only batch shape that is built
	Deterministic bool   // sums in a fixed order, at any number of threads
	Seed          uint64 // the initial values are a function of it
}

// Kind says how a variable of the flat vector changes.
type Kind uint8

const (
	// Trained variables follow their gradient.
	Trained Kind = iota
	// Moment variables are batch normalisation's running statistics: their
	// "gradient" is the micro-batch's moment times its weight, so that the
	// update's weighted mean moves the running average one step.
	Moment
)

// Var is one named span of the flat parameter vector. Trained variables come
// first, in forward order; moments are the vector's tail.
type Var struct {
	Name        string
	Shape       []int
	Offset, Len int // in float32 elements
	Kind        Kind
	Momentum    float32 // of a Moment's running average, e.g. 0.9
	Decay       bool    // weight decay applies (never to biases and normalisation)
}

// Table is an embedding table; its rows are never part of the flat vector.
type Table struct {
	Name  string
	Width int
}

// Rows are rows of one table: ids unique and ascending, len(Values) =
// len(IDs) × Width.
type Rows struct {
	IDs    []int64
	Values []float32
}

// DType is the element type of an Input.
type DType uint8

const (
	U8 DType = iota
	I32
	I64
	F32
)

// Input is one raw input tensor, little-endian; its first dimension is the
// record. It is normalised on the device.
type Input struct {
	Type  DType
	Shape []int
	Data  []byte
}

// Batch is one micro-batch: Inputs[0] the features, Inputs[1] the labels.
// Records of weight 0 are padding: they count in no sum, mean or moment.
type Batch struct {
	Inputs      []Input
	Records     []int64 // the records' numbers in the dataset; dropout masks follow from them
	Weights     []float32
	Seed, Epoch uint64
}

// Pass is one Step's place in an accumulation. After a Step that failed the
// accumulation is void: the next one must be a First.
type Pass struct {
	First, Last bool // First zeroes the sums, Last reports them
	// LossScale multiplies the loss within half-precision backward passes (0:
	// the engine chooses). Sums are reported without it.
	LossScale float32
	// Ready, when not nil, hears of every finished span of the sums during
	// the Last step: the moments at the vector's tail first, which forward
	// completes, then back to front. Together the spans are the whole vector,
	// and this is the only way to the sums. A span is read-only and stays
	// valid until the next First.
	Ready func(offset int, sums []float32)
}

// Result holds sums over records, so that results of any split merge by
// addition.
type Result struct {
	Weight  float64   // sum of the records' weights
	Loss    float64   // weighted sum of the records' losses
	Metrics []float64 // weighted sums, in the order of Model.Metrics, e.g. correct answers
	Rows    []Rows    // gradients of embedding rows, one entry per Table
	Finite  bool      // no NaN or infinity in loss and gradients
}

// Staged is a batch on its way to the device, made by Replica.Stage. It may be
// used again, by the replica that made it and by its forks.
type Staged any

// Replica is one model on one device in one process, used by one goroutine.
type Replica interface {
	Layout() ([]Var, []Table)
	// Needs returns the ids of the rows to pull before Stage, per table.
	Needs(b *Batch) [][]int64
	// Put overwrites values of a vector from offset on: vector 0 holds the
	// parameters, 1… the optimizer's slots where the replica keeps them.
	Put(vector, offset int, v []float32) error
	// Get reads len(v) values.
	Get(vector, offset int, v []float32) error
	// Stage uploads a batch beside the running step.
	Stage(ctx context.Context, b *Batch, rows []Rows) (Staged, error)
	// Step runs forward and backward and adds to the sums.
	Step(ctx context.Context, s Staged, p Pass) (Result, error)
	// Evaluate runs forward with running statistics and without dropout.
	// out, when not nil, takes the predictions (micro-batch × outputs).
	Evaluate(ctx context.Context, s Staged, out []float32) (Result, error)
	// Fork shares the compiled code but has its own values: a pinned version.
	Fork() (Replica, error)
	Close() error
}
