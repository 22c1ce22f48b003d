//go:build race

package xla_test

const raceEnabled = true
