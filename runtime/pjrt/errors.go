package pjrt

import (
	"errors"
	"fmt"
	"strings"
)

// Code is the kind of a plugin's error, as in absl::StatusCode.
type Code int

// The codes that callers tell apart.
const (
	Unknown           Code = 2 // also a program that cannot be parsed
	InvalidArgument   Code = 3
	ResourceExhausted Code = 8 // out of device memory
	Unimplemented     Code = 12
	Internal          Code = 13
)

func (c Code) String() string {
	names := [...]string{
		"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED",
		"RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
		"INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED",
	}
	if c < 0 || int(c) >= len(names) {
		return fmt.Sprintf("code %d", int(c))
	}
	return names[c]
}

// Error is an error that the plugin reported.
type Error struct {
	Code    Code
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s", e.Code, e.Message) }

// ErrClosed is the cause of errors about objects that are closed already.
var ErrClosed = errors.New("closed already")

// ErrTooOld and ErrTooNew are the causes of errors about plugins that this
// package cannot drive.
var (
	ErrTooOld = errors.New("the plugin is too old")
	ErrTooNew = errors.New("the plugin is too new")
)

// IsExhausted reports whether an error says that the device's memory was not
// enough. XLA wraps that error in others while it compiles, where it tries algorithms,
// and passes the driver's error on where a program or a graph is loaded: it then has
// another code, and only its text says so.
func IsExhausted(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	return e.Code == ResourceExhausted || strings.Contains(e.Message, "RESOURCE_EXHAUSTED") ||
		strings.Contains(e.Message, "CUDA_ERROR_OUT_OF_MEMORY") || strings.Contains(e.Message, "CUDNN_STATUS_ALLOC_FAILED")
}
