// Package engine is the seam between the distributed runtime and the numbers:
// a Model as plain data, the flat parameter vector that servers, checkpoints
// and rings share, and the Engine and Replica that compute on one device.
//
// It computes nothing itself except what needs no device: the Layout of a
// model's vector, its initial values and the optimizer's Update, so that a
// parameter server needs no engine. Implementations live below it (cpu); ready
// models in zoo. It imports nothing else of this project.
//
// The entry point is Model: its Layout and Init on the servers' side,
// Engine.Build on the workers'.
package engine
