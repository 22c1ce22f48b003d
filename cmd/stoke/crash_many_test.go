//go:build e2e

package main

const (
	crashMoments   = 50
	crashObjects   = 1500
	crashTrainings = 25
)
