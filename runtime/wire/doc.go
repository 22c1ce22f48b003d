// Package wire is how a run's processes talk: frames over TCP, each a type, a
// JSON head and a body of raw float32 values, checked by length and CRC-32C; a
// first exchange in which both sides show that they belong to the run and are of
// one version; and the messages. Bodies between two processes of one machine lie in
// memory that both have mapped.
//
// It is not a general RPC: there are no streams, no retries and no state. Who
// answers what, and when, belongs to coordinator, ps and worker.
//
// Entry points: Credentials, with Dial for one side and Serve for the other.
package wire
