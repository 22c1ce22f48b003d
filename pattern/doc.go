// Package pattern has regular expressions that are compiled when they are first
// used: stoke starts often and uses few of its expressions in one run, and a
// large one takes milliseconds and megabytes to compile. It is for variables of
// packages; a function that compiles an expression of its own calls regexp.
// New is its entry point.
package pattern
