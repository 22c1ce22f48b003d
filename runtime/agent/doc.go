// Package agent is a member of a session whose members run a user's program. It runs
// the ranks of one worker or server, one generation after the other, for the
// coordinator's rendezvous (runtime/rendezvous).
//
// An agent is ready once it has the program's code and holds ports for its ranks. It
// starts a generation on a message of the coordinator, and reports what its ranks do.
// It ends them on another message, on a signal, or without a coordinator for too
// long. A lost connection ends nothing.
//
// Entry point: Run.
package agent
