// Package pjrt drives a PJRT plugin, XLA's C interface to devices, without cgo.
//
// A Plugin is a shared library. Its Client drives one device: it compiles
// StableHLO text into executables, copies arrays to the device as buffers, runs
// executables on buffers, and copies buffers back. The package knows no GPU, no
// model, and no file except the plugin.
//
// # Objects
//
// Clients, executables, buffers and events are the plugin's memory. Each is
// closed once: a second Close and a use after Close are ErrClosed, and
// Client.Close reports what is still open. Any goroutine may use an object; an
// object that is closed during a call is freed after that call. An Event ends
// with the first of Wait, OnReady and Close.
//
// # Memory
//
// Go's memory and C's meet under these rules:
//
//   - The arguments of a call are one object on the heap, made in call, whose
//     last bytes are spare and zero: newer plugins, which know more fields, read
//     "not given" there. Go moves no objects of the heap.
//   - What arguments point to is kept by fields of type unsafe.Pointer. Results
//     and the plugin's handles are of type uintptr: Go's collector must not see
//     addresses of C's heap.
//   - Memory that a copy reads or writes after the call has returned is kept by
//     the Event of that copy, the client keeps the Event, and the plugin the client.
//     None can be collected before the copy is done, even where the caller drops them.
//   - Pinned memory is mapped, and not Go's heap.
//   - Sizes are checked here before C sees an address, as C does not know how
//     long a slice is.
//
// # Versions
//
// All structs have the fields of version 0.104. Open asks the plugin for the size of
// each struct that it demands, and refuses a plugin whose structs do not fit or
// that lacks a function. A function behind the end of that version's table is
// never called: its place means something else in other versions.
//
// Entry point: Open.
package pjrt
