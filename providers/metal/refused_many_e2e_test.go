//go:build e2e

package metal

// refusedEvery: with the tag e2e each command of an apply fails once.
const refusedEvery = 1

// plantEvery: the same for clusters and nodes.
const plantEvery = 1

// wallEvery: the same for a firewall.
const wallEvery = 1

// allCases: TestMatrix and TestMatrixFirewall try all cases.
const allCases = true
