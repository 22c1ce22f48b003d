//go:build !e2e

package metal

// refusedEvery: each how many commands of an apply one fails in TestPlanAfterARefusedApply.
const refusedEvery = 8

// plantEvery: the same for TestPlanAfterARefusedCluster and TestPlanAfterARefusedNode.
const plantEvery = 16

// wallEvery: the same for TestPlanAfterARefusedFirewall.
const wallEvery = 3

// allCases: TestMatrix and TestMatrixFirewall try half of all cases, in which each pair of
// circumstances occurs.
const allCases = false
