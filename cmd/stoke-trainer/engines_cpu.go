//go:build !gpu

package main

import "github.com/stokehq/stoke/runtime/engine"

// registerGPU adds nothing: this build has no GPU engine, and needs no library.
func registerGPU(*engine.Registry) {}
