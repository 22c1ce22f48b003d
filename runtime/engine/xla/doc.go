// Package xla is the engine for accelerators that XLA compiles for, in practice NVIDIA's
// GPUs: one device for each replica. It writes StableHLO programs from a model (forward
// and backward, sums of gradients, losses and metrics) and keeps variables, sums and
// batches as buffers on a Device.
//
// The entry point is New. Package gpu opens a Device on a GPU; tests run the same programs
// on an interpreter.
//
// network.go walks through the graph, a file for each kind of layer writes its operations,
// programs.go puts them together, replica.go runs them.
package xla
