//go:build e2e

package main

import "testing"

func TestManyKillsOfAProgram(t *testing.T) { killProgram(t, 60) }
