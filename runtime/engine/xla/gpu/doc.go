// Package gpu opens an NVIDIA GPU as a device of the XLA engine.
//
// The entry point is Open. It needs a C library in the process: only programs with the
// build tag gpu import it.
package gpu
