// Package engine is the seam between the distributed runtime and the numbers: an
// Engine builds Replicas of a model, which compute on one device. Tree adds up
// sums in an order that does not depend on the number of workers.
//
// Models and their parameter vector are in model, updates of the vector in
// optimizer. Implementations are below this package (cpu).
//
// The entry point is Engine.Build; a program finds its engines in a Registry.
package engine
