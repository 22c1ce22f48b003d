//go:build e2e

package metal

// refusedEvery: with the tag e2e each command of an apply fails once.
const refusedEvery = 1

// plantEvery: the same for clusters and nodes.
const plantEvery = 1
