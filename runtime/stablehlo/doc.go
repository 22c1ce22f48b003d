// Package stablehlo writes programs in StableHLO, the language that XLA compiles, as
// text: https://openxla.org/stablehlo/spec.
//
// The entry point is New, which returns an empty Function. Its methods add arguments and
// constants; the methods of a Value add operations to the function of the value. Text
// writes the whole program, Loop a program that calls the function for each of several
// micro-batches.
//
// The shapes of a program follow from a model that was validated before. An operation on
// shapes that do not fit is a mistake of the caller's code: it panics.
package stablehlo
