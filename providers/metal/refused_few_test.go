//go:build !e2e

package metal

// refusedEvery: each how many commands of an apply one fails in TestPlanAfterARefusedApply.
const refusedEvery = 8

// plantEvery: the same for TestPlanAfterARefusedCluster and TestPlanAfterARefusedNode.
const plantEvery = 16
