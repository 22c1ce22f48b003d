package spec

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a spec: a summary of at most eight
// words and a detail that says what to do.
type Problem struct {
	Field   string `json:"field"` // as in Fields
	Summary string `json:"summary"`
	Detail  string `json:"detail"`
}

func (p Problem) Error() string { return p.Field + ": " + p.Summary + ". " + p.Detail }

// limits keep a typo from asking one machine for a million processes.
const (
	maxReplicas = 1024
	maxBatch    = 1 << 24
	maxNumber   = 1 << 40
	maxSeconds  = 1 << 31
)

// Validate checks everything that can be checked without looking at data,
// model or machine, and returns every problem.
func (s *Spec) Validate() []Problem {
	c := new(checks)
	if s.HasProgram() {
		s.validateProgram(c)
	} else {
		s.validateModel(c)
	}
	if s.Deadline < 0 {
		c.add("deadline", "Deadline is negative", "Give the time that the run may take, for example \"2h\", or leave it out.")
	}
	s.validateGPUHealth(c)
	c.checkRange("worker.replicas", s.Worker.Replicas, 1, maxReplicas)
	c.checkRange("worker.min_replicas", s.Worker.MinReplicas, 1, max(1, s.Worker.Replicas))
	c.checkRange("worker.threads", s.Worker.Threads, 0, 4096)
	return c.problems
}

// validateModel checks a spec that trains a built-in model.
func (s *Spec) validateModel(c *checks) {
	switch {
	case s.Model == "" && s.Graph == "":
		c.add("model", "No model given", "Name a model, for example mnist-cnn.")
	case s.Model != "" && s.Graph != "":
		c.add("graph", "Two models given", "Give a name, or a model as data.")
	}
	if !filepath.IsAbs(s.Dataset.Path) {
		c.add("dataset.path", "Dataset path is not absolute", "Give the folder that `stoke-trainer dataset prepare` made; it is %q.", s.Dataset.Path)
	}
	if s.Dataset.Hash == "" {
		c.add("dataset.hash", "No dataset hash given", "Give the hash from the prepared folder's manifest.")
	}
	c.oneOf("loss", s.Loss, LossSoftmaxCrossEntropy, LossMeanSquaredError)
	c.oneOf("strategy", s.Strategy, StrategyParameterServer, StrategyAllReduce)
	c.oneOf("engine", s.EngineName(), EngineCPU, EngineXLA)
	if s.Worker.GPUs > 0 && s.Engine == EngineCPU {
		c.add("engine", "The cpu engine uses no GPU", "Set worker.gpus to 0, or leave engine out.")
	}
	s.validateComputeType(c)
	if s.Deterministic && s.Asynchronous {
		c.add("deterministic", "Asynchronous updates depend on who is faster", "Make the run synchronous, or leave deterministic out.")
	}
	s.validateHyperparameters(c)
	c.checkRange("evaluation.every_steps", s.Evaluation.EverySteps, 0, maxNumber)
	c.checkRange("checkpoint.every_steps", s.Checkpoint.EverySteps, 0, maxNumber)
	c.checkRange("checkpoint.every_seconds", s.Checkpoint.EverySeconds, 0, maxSeconds)
	c.checkRange("checkpoint.keep", s.Checkpoint.Keep, 1, 1000)
	if n := s.Worker.GPUs; n > 1 {
		c.add("worker.gpus", "A worker uses one GPU",
			"Set gpus to 1 and replicas to %d times as many, instead of gpus = %[1]d: the engine uses one GPU of a worker.", n)
	} else {
		c.checkRange("worker.gpus", n, 0, 1)
	}
	if s.Strategy != StrategyAllReduce {
		c.checkRange("parameter_server.replicas", s.ParameterServer.Replicas, 1, maxReplicas)
		return
	}
	if s.ParameterServer.Replicas > 0 {
		c.add("parameter_server.replicas", "All-reduce has no servers",
			"Leave parameter_server out, or set strategy to %q.", StrategyParameterServer)
	}
	if s.Asynchronous {
		c.add("asynchronous", "All-reduce updates are synchronous",
			"Leave synchronous out, or set strategy to %q.", StrategyParameterServer)
	}
}

// validateComputeType checks the type that the engine computes in.
func (s *Spec) validateComputeType(c *checks) {
	name := s.ComputeTypeName()
	c.oneOf("compute_type", name, ComputeF32, ComputeTF32, ComputeBF16)
	switch {
	case name == ComputeF32 || name != ComputeTF32 && name != ComputeBF16:
	case s.EngineName() != EngineXLA:
		c.add("compute_type", "The cpu engine computes in f32", "Set worker.gpus to 1 for %s, or leave compute_type out.", name)
	case s.Deterministic:
		c.add("compute_type", "Deterministic runs compute in f32", "Leave compute_type out, or leave deterministic out for %s.", name)
	}
}

// validateHyperparameters checks what a built-in model is trained with.
func (s *Spec) validateHyperparameters(c *checks) {
	c.checkRange("batch_size", s.BatchSize, 1, maxBatch)
	c.oneOf("batch_per", s.BatchPer, BatchPerUpdate, BatchPerWorker)
	c.checkRange("micro_batch", s.MicroBatch, 0, max(1, s.BatchSize))
	s.validateInitFrom(c)
	c.checkRange("max_steps", s.MaxSteps, 0, maxNumber)
	c.checkRange("shuffle_block", s.ShuffleBlock, 0, maxNumber)
	c.number("learning_rate", s.LearningRate, 0, 1e6, true, false)
	c.oneOf("learning_rate_scaling", s.LearningRateScaling, ScalingNone, ScalingLinear, ScalingSqrt)
	if s.LearningRateScaling != ScalingNone && s.BatchPer != BatchPerWorker {
		c.add("learning_rate_scaling", "Scaling needs a growing batch", "Set batch_per = %q, or leave learning_rate_scaling out.", BatchPerWorker)
	}
	s.validateOptimizer(c)
	s.validateAugmentation(c)
	s.validateSchedule(c)
}

// checks collects what is wrong with a spec's fields.
type checks struct{ problems []Problem }

func (c *checks) add(field, summary, detail string, args ...any) {
	c.problems = append(c.problems, Problem{field, summary, fmt.Sprintf(detail, args...)})
}

func (c *checks) checkRange(field string, v, low, high int) {
	if v < low || v > high {
		c.add(field, "Value out of range", "%s must be between %d and %d; it is %d.", field, low, high, v)
	}
}

func (c *checks) oneOf(field, v string, allowed ...string) {
	if !slices.Contains(allowed, v) {
		c.add(field, "Unknown value", "%s must be one of %s; it is %q.", field, strings.Join(allowed, ", "), v)
	}
}

// number checks a number that servers compute with in 32 bits, in which it may
// be another one.
func (c *checks) number(field string, v, low, high float64, openLow, openHigh bool) {
	v32, least, most := float32(v), "at least", "at most"
	if openLow {
		least = "above"
	}
	if openHigh {
		most = "below"
	}
	switch {
	case math.IsNaN(v) || v < low || v > high || openLow && v == low || openHigh && v == high:
		c.add(field, "Value out of range", "%s must be %s %g and %s %g; it is %g.", field, least, low, most, high, v)
	case v != 0 && v32 == 0 || openHigh && v32 == float32(high):
		c.add(field, "Value too close to a limit", "%s is computed with 32 bits, where %g is %g.", field, v, v32)
	}
}
