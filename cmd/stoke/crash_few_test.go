//go:build !e2e

package main

// How much the crash test does in every test run; `make e2e` does more.
const (
	crashMoments   = 16
	crashObjects   = 24
	crashTrainings = 2
	crashRequests  = 4 // every which request of a run is its last
	googlePolls    = 2 // looks that an operation on Google Cloud takes; with many lives at once others' listings are some of them
)
