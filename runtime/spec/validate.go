package spec

import (
	"fmt"
	"math"
	"path/filepath"
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
// model or machine. It returns every problem, in the order of the fields.
func (s *Spec) Validate() []Problem {
	var problems []Problem
	add := func(field, summary, detail string, args ...any) {
		problems = append(problems, Problem{field, summary, fmt.Sprintf(detail, args...)})
	}
	between := func(field string, v, low, high int) {
		if v < low || v > high {
			add(field, "Value out of range", "%s must be between %d and %d; it is %d.", field, low, high, v)
		}
	}
	oneOf := func(field, v string, allowed ...string) {
		for _, a := range allowed {
			if v == a {
				return
			}
		}
		add(field, "Unknown value", "%s must be one of %s; it is %q.", field, strings.Join(allowed, ", "), v)
	}
	number := func(field string, v, low, high float64, openLow, openHigh bool) {
		// Servers compute with 32 bits, in which a number may be another one.
		v32, least, most := float32(v), "at least", "at most"
		if openLow {
			least = "above"
		}
		if openHigh {
			most = "below"
		}
		switch {
		case math.IsNaN(v) || v < low || v > high || openLow && v == low || openHigh && v == high:
			add(field, "Value out of range", "%s must be %s %g and %s %g; it is %g.", field, least, low, most, high, v)
		case v != 0 && v32 == 0 || openHigh && v32 == float32(high):
			add(field, "Value too close to a limit", "%s is computed with 32 bits, in which %g is %g.", field, v, v32)
		}
	}

	if s.Model == "" {
		add("model", "No model given", "Name a model, for example mnist-cnn.")
	}
	if !filepath.IsAbs(s.Dataset.Path) {
		add("dataset.path", "Dataset path is not absolute", "Give the folder that `stoke-trainer dataset prepare` made; it is %q.", s.Dataset.Path)
	}
	if s.Dataset.Hash == "" {
		add("dataset.hash", "No dataset hash given", "Give the hash from the prepared folder's manifest.")
	}
	oneOf("loss", s.Loss, LossSoftmaxCrossEntropy)
	oneOf("strategy", s.Strategy, StrategyParameterServer)
	oneOf("engine", s.EngineName(), EngineCPU, EngineXLA)
	if s.Worker.GPUs > 0 && s.Engine == EngineCPU {
		add("engine", "The cpu engine uses no GPU", "Set worker.gpus to 0, or leave engine out.")
	}
	if s.Deadline < 0 {
		add("deadline", "Deadline is negative", "Give the time that the run may take, for example \"2h\", or leave it out.")
	}
	if s.Deterministic && s.Asynchronous {
		add("deterministic", "Asynchronous updates depend on who is faster", "Make the run synchronous, or leave deterministic out.")
	}
	between("batch_size", s.BatchSize, 1, maxBatch)
	oneOf("batch_per", s.BatchPer, BatchPerUpdate, BatchPerWorker)
	between("micro_batch", s.MicroBatch, 0, max(1, s.BatchSize))
	between("epochs", s.Epochs, 1, maxNumber)
	between("max_steps", s.MaxSteps, 0, maxNumber)
	number("learning_rate", s.LearningRate, 0, 1e6, true, false)
	oneOf("learning_rate_scaling", s.LearningRateScaling, ScalingNone, ScalingLinear, ScalingSqrt)
	if s.LearningRateScaling != ScalingNone && s.BatchPer != BatchPerWorker {
		add("learning_rate_scaling", "Scaling needs a growing batch", "Set batch_per = %q, or leave learning_rate_scaling out.", BatchPerWorker)
	}
	oneOf("optimizer.name", s.Optimizer.Name, OptimizerSGD)
	number("optimizer.momentum", s.Optimizer.Momentum, 0, 1, false, true)
	if s.Optimizer.Nesterov && s.Optimizer.Momentum == 0 {
		add("optimizer.nesterov", "Nesterov needs momentum", "Set optimizer.momentum, for example to 0.9.")
	}
	number("optimizer.weight_decay", s.Optimizer.WeightDecay, 0, 1, false, true)
	s.validateProcesses(between)
	return problems
}

// validateProcesses checks what says nothing about the result.
func (s Spec) validateProcesses(between func(field string, v, low, high int)) {
	between("evaluation.every_steps", s.Evaluation.EverySteps, 0, maxNumber)
	between("checkpoint.every_steps", s.Checkpoint.EverySteps, 0, maxNumber)
	between("checkpoint.every_seconds", s.Checkpoint.EverySeconds, 0, maxSeconds)
	between("checkpoint.keep", s.Checkpoint.Keep, 1, 1000)
	between("worker.replicas", s.Worker.Replicas, 1, maxReplicas)
	between("worker.min_replicas", s.Worker.MinReplicas, 1, max(1, s.Worker.Replicas))
	between("worker.gpus", s.Worker.GPUs, 0, 64)
	between("worker.threads", s.Worker.Threads, 0, 4096)
	between("parameter_server.replicas", s.ParameterServer.Replicas, 1, maxReplicas)
}
