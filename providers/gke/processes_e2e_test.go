//go:build e2e

package gke

const most, hours = 200, 24
