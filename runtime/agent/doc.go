// Package agent is a member of a session whose work is a program of the user's: it
// runs the ranks of one worker or server, generation after generation, as the
// coordinator's rendezvous (runtime/rendezvous) decides.
//
// An agent is ready once it has the program's code and holds ports for its ranks. It
// starts a generation when the coordinator says so, reports what its ranks do, and
// ends them when the coordinator halts the generation, when it is asked to leave, or
// when there has been no coordinator for too long. A lost connection ends nothing.
//
// Entry point: Run.
package agent
