//go:build e2e

package gke

const most, hours, all, refusals = 200, 24, true, 1
