// Package wire is how a run's processes talk: frames over TCP, each a type, a
// JSON head and a body of raw float32 values, checked by length and CRC-32C; a
// first exchange that proves the run's token; and the messages.
//
// It is not a general RPC: there are no streams, no retries and no state. Who
// answers what, and when, belongs to coordinator, ps and worker.
//
// Entry points: Dial and Accept.
package wire
