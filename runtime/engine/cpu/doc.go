// Package cpu is the engine that computes on the machine's processor, over
// gonum's single-precision BLAS. It knows nothing of the network, of
// datasets or of optimizers.
//
// The entry point is New.
package cpu
