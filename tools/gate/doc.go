// Gate runs what has to pass before a change lands, and the long suites that
// do not fit into it.
//
//	gate run              the stages of .ci/run, cheap ones first; stops at the first failure
//	gate nightly          every suite, one after the other, with a table at the end
//	gate suite NAME…      suites by name, whether they passed before or not
//	gate elsewhere        type-checks the module for the other platforms
//	gate list             the suites, what they are for, and what each cost here
//
// A suite is a set of test binaries with a choice of their tests (suites.go).
// A pass is remembered under a key of all that went into it: the sources that
// the test links, the files that it reads, the programs that it starts, the
// version of Go and the recipe (inputs.go). The same inputs are not tested
// twice on one machine; CI_ALL=1 tests them all the same.
package main
