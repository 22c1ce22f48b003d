package spec

import "time"

// The values that the enumerated fields of a Spec take.
const (
	StrategyParameterServer = "parameter_server"
	StrategyAllReduce       = "all_reduce"

	BatchPerUpdate = "update" // batch_size is the batch of one update, whoever computes it
	BatchPerWorker = "worker" // batch_size is one worker's part: the global batch grows with the workers

	ScalingNone   = "none"
	ScalingLinear = "linear" // learning rate × workers
	ScalingSqrt   = "sqrt"   // learning rate × √workers

	LossSoftmaxCrossEntropy = "softmax_cross_entropy"
	LossMeanSquaredError    = "mean_squared_error"

	EngineCPU = "cpu"
	EngineXLA = "xla"

	ComputeF32  = "f32"
	ComputeTF32 = "tf32" // f32 with products of 10 bits of mantissa
	ComputeBF16 = "bf16"
)

// Spec is an experiment as it was planned, every default filled in. Two specs
// with the same Hash describe the same run.
type Spec struct {
	Name     string   `json:"name"`
	Model    string   `json:"model"`            // a name of the zoo; "" = Graph is the model, or the workers run a program
	Graph    JSON     `json:"graph,omitempty"`  // the model as data (model.Description), instead of a name
	Layers   string   `json:"layers,omitempty"` // hash of the model's layers, as the trainer names it; "" = of a run of an earlier version
	Dataset  Dataset  `json:"dataset"`
	Loss     string   `json:"loss"` // of earlier versions: the model has its loss
	Seed     uint64   `json:"seed"`
	Strategy string   `json:"strategy"`
	Engine   string   `json:"engine"`   // "" = cpu, or xla where worker.gpus > 0
	Deadline Duration `json:"deadline"` // of the time that it runs; 0 = none
	// ComputeType is the type of products and convolutions; parameters are f32.
	// "" = f32 on the CPU and in deterministic runs, else tf32.
	ComputeType string `json:"compute_type,omitempty"`

	GPUHealth string `json:"gpu_health,omitempty"` // reported | required; "" = reported

	// Synchronous updates wait for their whole batch; asynchronous ones are
	// one push each. A missing value in JSON means synchronous.
	Asynchronous bool `json:"asynchronous"`
	// Deterministic runs give the same parameters to the bit on machines of the
	// same kind, whatever the number of workers, servers and threads.
	Deterministic bool `json:"deterministic,omitempty"`

	BatchSize           int     `json:"batch_size"`  // records
	BatchPer            string  `json:"batch_per"`   // update | worker
	MicroBatch          int     `json:"micro_batch"` // records per step of an engine; 0 = min(batch_size, 32)
	Epochs              int     `json:"epochs"`
	MaxSteps            int     `json:"max_steps"` // updates; 0 = no limit
	LearningRate        float64 `json:"learning_rate"`
	LearningRateScaling string  `json:"learning_rate_scaling"` // none | linear | sqrt, with batch_per = worker

	ClipNorm float64  `json:"clip_norm,omitempty"` // of an update's mean gradient; 0 = none
	Schedule Schedule `json:"schedule,omitzero"`   // of the learning rate

	ShuffleBlock int `json:"shuffle_block,omitempty"` // records that an epoch's order keeps near each other; 0 = it keeps none

	Augmentation Augmentation `json:"augmentation,omitzero"` // of pictures
	InitFrom     InitFrom     `json:"init_from,omitzero"`    // parameters of another model

	Optimizer  Optimizer  `json:"optimizer"`
	Evaluation Evaluation `json:"evaluation"`
	Checkpoint Checkpoint `json:"checkpoint"`
	Worker     Worker     `json:"worker"`

	ParameterServer ParameterServer `json:"parameter_server"`

	Program Program `json:"program,omitzero"`
}

// Dataset names a folder that `stoke-trainer dataset prepare` made. The hash
// is its identity: the folder may move. A program may have no dataset, or any
// folder, which has no hash.
type Dataset struct {
	Path string `json:"path"` // absolute
	Hash string `json:"hash"`
}

// Evaluation measures the model on held-out records. It always happens at the
// end; EverySteps adds one after every so many updates (0 = none).
type Evaluation struct {
	EverySteps int `json:"every_steps"`
}

// Checkpoint saves a cut of the run after every so many updates and after
// every so many seconds (0 = not by this rule) and keeps the newest Keep of
// them. The final model is always saved.
type Checkpoint struct {
	EverySteps   int `json:"every_steps"`
	EverySeconds int `json:"every_seconds"`
	Keep         int `json:"keep"`
}

// defaultSeconds is between two checkpoints of a run that says nothing else:
// the most that a lost server costs, of which saving is a small part.
const defaultSeconds = 300

// Worker describes the processes that compute gradients.
type Worker struct {
	Replicas    int `json:"replicas"`
	MinReplicas int `json:"min_replicas"` // with fewer alive, training waits
	GPUs        int `json:"gpus"`         // per worker
	Threads     int `json:"threads"`      // per worker; 0 = cores / replicas, at least 1
}

// ParameterServer describes the processes that hold the parameters, each a
// contiguous span of the flat vector.
type ParameterServer struct {
	Replicas int `json:"replicas"`
}

// Default returns a spec with every default filled in; name, model and
// dataset remain to be set.
func Default() Spec {
	return Spec{
		Loss:                LossSoftmaxCrossEntropy,
		Strategy:            StrategyParameterServer,
		BatchSize:           64,
		BatchPer:            BatchPerUpdate,
		Epochs:              1,
		LearningRate:        Optimizer{Name: OptimizerSGD}.DefaultRate(),
		LearningRateScaling: ScalingNone,
		Optimizer:           Optimizer{Name: OptimizerSGD},
		Checkpoint:          Checkpoint{EverySeconds: defaultSeconds, Keep: 3},
		Worker:              Worker{Replicas: 1, MinReplicas: 1},
		ParameterServer:     ParameterServer{Replicas: 1},
	}
}

// EngineName resolves an engine that was left to be chosen.
func (s *Spec) EngineName() string {
	switch {
	case s.Engine != "":
		return s.Engine
	case s.Worker.GPUs > 0:
		return EngineXLA
	}
	return EngineCPU
}

// ComputeTypeName resolves a compute type that was left to be chosen.
func (s *Spec) ComputeTypeName() string {
	switch {
	case s.ComputeType != "":
		return s.ComputeType
	case s.EngineName() == EngineXLA && !s.Deterministic:
		return ComputeTF32
	}
	return ComputeF32
}

// MicroBatchSize resolves micro_batch = 0. It depends on nothing that can
// change while the run lives, because batch normalisation normalises by it.
func (s *Spec) MicroBatchSize() int {
	if s.MicroBatch > 0 {
		return s.MicroBatch
	}
	return min(s.BatchSize, 32)
}

// GlobalBatch is the number of records in one update: asynchronously of one
// push, else of all workers' parts together.
func (s *Spec) GlobalBatch(workers int) int {
	if s.BatchPer == BatchPerWorker && !s.Asynchronous {
		return s.BatchSize * max(1, workers)
	}
	return s.BatchSize
}

// Duration is a time.Duration that reads as text ("90s", "2h") in JSON. Zero
// means none.
type Duration time.Duration

// MarshalText gives "" for zero, else Go's notation.
func (d Duration) MarshalText() ([]byte, error) {
	if d == 0 {
		return []byte{}, nil
	}
	return []byte(time.Duration(d).String()), nil
}

// UnmarshalText accepts what MarshalText gives.
func (d *Duration) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*d = 0
		return nil
	}
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}
