//go:build race

package dataset_test

const underRace = true
