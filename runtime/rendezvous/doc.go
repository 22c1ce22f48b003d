// Package rendezvous is the work of a session whose members run a user's program. It
// decides about generations of the program: their members and ranks, their end, the
// next one and its checkpoint.
//
// The members are agents (runtime/agent), one for each worker and each server. A
// generation begins when all of them are ready, or join_timeout after all servers
// and min_replicas workers are. It ends everywhere when a rank fails, when an agent
// is lost, or for a change of the members, which waits for a checkpoint. A
// generation that has begun is never begun again: its number is in the history
// before an agent hears of it, and a coordinator that is started again finds the
// generation with the agents.
//
// Programs themselves are elsewhere: runtime/program runs them.
//
// Entry points: Run, Conclude.
package rendezvous
