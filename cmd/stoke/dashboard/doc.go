// Package dashboard serves the pages of stoke dashboard: runs, their curves, logs
// and workers, in a browser on this machine.
//
// It reads runs through Source and providers.Run, and changes none of them. Only a
// browser with the session of this process gets an answer (guard). Reading is
// bounded: statuses are read together and kept for a moment (board), a history is
// read once for all its viewers (feeds), logs are a tail (logs.go).
//
// The scripts and styles in assets are built from web by make dashboard; a test
// compares the hash of their sources. Commands and states are cmd/stoke's.
//
// Entry points: New, Server, Source.
package dashboard
