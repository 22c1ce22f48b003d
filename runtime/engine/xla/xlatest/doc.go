// Package xlatest is a device for tests of the XLA engine: an interpreter that computes in
// float64, or with the roundings of each type, and is strict about the life of buffers.
//
// The entry point is Device.
package xlatest
