// Package stablehlotest is a reference interpreter of StableHLO programs given
// as text: the judge of the programs that the engine for GPUs writes, where no
// GPU is available. It computes in float64 and in exact integers. The code that
// writes the programs is not known to it.
//
// The parser is strict. It accepts the printed forms of MLIR's parser for the
// operations that it knows, and compares each annotation with the type that the
// operation gives. Anything else is an error with its line: an operation, an
// attribute or a type that it does not know, a name that is defined twice or used
// before its definition, element types that the specification does not allow.
// Results that the specification leaves to the implementation (a division of
// integers by zero, a conversion that does not fit) are errors of Run.
//
// It is not a compiler and not fast, and only tests import it. Parse is the entry
// point.
package stablehlotest
