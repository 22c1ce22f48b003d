// Package pattern has regular expressions for variables of packages. Each is
// compiled at its first use: stoke starts often and uses few of its expressions
// in one run, and a large one takes milliseconds and megabytes to compile. A
// function with an expression of its own calls regexp. New is the entry point.
package pattern
