//go:build e2e

package main

const (
	crashMoments   = 500
	crashObjects   = 30
	crashTrainings = 25
	crashRequests  = 1 // every which request of a run is its last
	googlePolls    = 5 // looks that an operation on Google Cloud takes; with many lives at once others' listings are some of them
)
