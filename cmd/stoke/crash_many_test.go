//go:build e2e

package main

const (
	crashMoments   = 500
	crashObjects   = 60
	crashTrainings = 25
)
