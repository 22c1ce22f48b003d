// Package address says what things are called: module instances, resources,
// resource instances and their keys, as values that compare with == and
// print as people write them in configurations and on the command line.
//
// It knows nothing of configurations or state. ParseInstance is its entry
// point from text; everything else starts from struct literals.
package address
