//go:build e2e

package gke

const most, hours, all = 200, 24, true
