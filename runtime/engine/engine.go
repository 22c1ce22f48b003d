package engine

import (
	"context"

	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/optimizer"
)

// Engine makes replicas of one model on one kind of device. Any goroutine may
// call it.
type Engine interface {
	// Build compiles the model for one device. The returned Replica holds
	// the model's initial values (see Init).
	Build(m *model.Model, o Options) (Replica, error)
}

// Classed is an Engine whose results may differ in the last bits between
// machines. Machines of one class compute the same.
type Classed interface{ Class() string }

// Options fixes everything about a replica that may not change afterwards.
type Options struct {
	Device        int  // number of the GPU on the machine, from 0; the CPU engine ignores it
	Threads       int  // most threads one call may use; 0 = all of GOMAXPROCS
	MicroBatch    int  // records per Step: the only batch shape that is built
	Deterministic bool // sums in a fixed order, at any number of threads
	// ComputeType is the type of products and convolutions: f32, tf32 or bf16, as
	// spec.ComputeTypeName returns it; "" is f32. Parameters, sums and results are
	// f32 with all of them. An engine rejects types that it does not have.
	ComputeType string
	Seed        uint64 // the initial values are a function of it
}

// Input is one raw input tensor, little-endian; its first dimension is the
// record. It is normalised on the device.
type Input struct {
	Type  model.DType
	Shape []int
	Data  []byte
}

// Batch is one micro-batch, or several one after the other (see Replica.MicroBatches):
// Inputs[0] the features, Inputs[1] the labels. Records of weight 0 are padding: they
// count in no sum, mean or moment.
type Batch struct {
	Inputs      []Input
	Records     []int64 // the records' numbers in the dataset; dropout masks follow from them
	Weights     []float32
	Seed, Epoch uint64
}

// Pass is one call's place in a series of micro-batches whose sums are added
// up: all Steps, or all Evaluates, from one with First to one with Last. A
// replica has one pass at a time: a First begins a new one, whatever was under
// way. After a call that failed the pass is void, and the next call must be a
// First.
type Pass struct {
	First, Last bool // First zeroes the sums, Last reports them
	// LossScale multiplies the loss within half-precision backward passes (0:
	// the engine chooses). Sums are reported without it.
	LossScale float32
	// Ready, when not nil, hears of every finished span of the sums during
	// the Last Step: the moments at the vector's tail first, which forward
	// completes, then back to front. Together the spans are the whole vector,
	// and this is the only way to the sums. It is called by the goroutine that
	// called Step; what it is given is read-only and stays valid until the
	// next First. Evaluate does not call it.
	Ready func(offset int, sums []float32)
	// Keep, together with Last, leaves the sums where they are, for Updater.Update
	// without sums: Ready is not called. The pass stays under way: a further Step adds to
	// the same sums, and its results begin at zero. Evaluate ignores it, and so do
	// replicas without Update.
	Keep bool
	// Ahead, together with Keep, lets the call return before the numbers of its result are
	// there; see Result.Later. A replica may ignore it.
	Ahead bool
}

// Result holds the sums over a pass's records, so that results of any split
// merge by addition. Only the call with Last has one, so that a device is
// waited for once per pass: the others return the zero Result.
type Result struct {
	Weight  float64      // sum of the records' weights
	Loss    float64      // weighted sum of the records' losses
	Metrics []float64    // weighted sums, in the order of Model.Metrics, e.g. correct answers
	Rows    []model.Rows // gradients of embedding rows, one entry per Table
	Finite  bool         // no NaN or infinity in loss and gradients
	// Squares, with Pass.Keep, is the sum of the squares of the kept sums, moments
	// excepted.
	Squares float64
	// Later, after Pass.Ahead, waits for the numbers and returns the whole result; this one
	// has the weight only. Any goroutine may call it, any number of times. Where the whole
	// result is not finite, no Update without sums has changed anything since this call, and
	// none does before the next First.
	Later func() (Result, error)
}

// Staged is a batch on the device, made by Replica.Stage. The replica that
// made it and its forks may use it any number of times.
type Staged interface {
	// Release gives the batch's memory back. Whoever staged it calls it, from
	// any goroutine, after the last call that uses it has returned; it cannot
	// be used afterwards. Further calls have no effect.
	Release()
}

// Replica is one model on one device in one process.
//
// One goroutine at a time uses it, with three exceptions: Layout and Needs may
// be called by any goroutine at any time, and Stage by one other goroutine
// during any other call except Close. Forks are replicas of their own.
type Replica interface {
	Layout() ([]model.Var, []model.Table)
	// Needs returns the ids of the rows to pull before Stage, per table.
	Needs(b *Batch) [][]int64
	// Put overwrites values of a vector from offset on: vector 0 holds the
	// parameters, 1… the optimizer's slots where the replica is an Updater.
	Put(vector, offset int, v []float32) error
	// Get reads len(v) values.
	Get(vector, offset int, v []float32) error
	// MicroBatches returns how many micro-batches a Batch may have at most. Steps of
	// several cost a device fewer round trips; the sums are the same.
	MicroBatches() int
	// Stage checks a batch and uploads it. The caller may reuse the batch's
	// memory once Stage has returned.
	Stage(ctx context.Context, b *Batch, rows []model.Rows) (Staged, error)
	// Step runs forward and backward and adds to the sums.
	Step(ctx context.Context, s Staged, p Pass) (Result, error)
	// Evaluate runs forward with running statistics and without dropout.
	// out, when not nil, takes the predictions (micro-batch × outputs).
	Evaluate(ctx context.Context, s Staged, p Pass, out []float32) (Result, error)
	// Fork shares the compiled code but has its own values: a pinned version.
	Fork() (Replica, error)
	// Close gives everything back. Batches that were staged are released
	// first.
	Close() error
}

// Updater is a Replica that keeps the optimizer's slots beside the parameters
// and updates both where they are, so that neither travels.
type Updater interface {
	Replica
	// Update applies one committed update as Update does, to the whole vector:
	// sums are the summed gradients of all the update's records (the vector's
	// length), weight their summed weights. Slots begin as zeros; Put and Get
	// reach them as vectors 1 to Recipe.Slots(). An error leaves everything as
	// it was.
	//
	// Without sums it takes the sums of the Steps of the pass under way, which do
	// not travel then, and zeroes them. The pass continues: losses and metrics add
	// up over all its updates.
	Update(sums []float32, weight float64, r optimizer.Recipe) error
}
