// Package coordinator runs one experiment: it knows who is there, hands out
// leases on records, fixes what each update is made of, tells the servers to
// commit it, keeps the ledger, evaluates at a fixed version, cuts checkpoints
// and answers the HTTP API.
//
// What an update waits for and where the parameters lie is the strategy's;
// everything else here knows none of its kinds.
//
// Whoever speaks for a run does so in a term. A coordinator claims one when it
// comes and another one whenever the run goes back to one state: the highest
// claimed term is obeyed, lower ones are refused by servers and workers, and
// what they still write reaches nobody. Where checkpoints lie apart from the
// coordinator's own folder, terms are claimed there as well, so that they still
// rise when that folder is lost.
//
// Behind the run's end, a coordinator may linger: its API answers until the
// results have been collected. Conclude is that alone, for one that is started
// again behind the end.
//
// It starts no process (that is the supervisor's, or Kubernetes'), holds no
// parameter and computes no gradient.
//
// One goroutine owns the run's state (coordinator.loop); connections and the
// API talk to it by events and read what it publishes.
//
// Entry points: Run, Conclude.
package coordinator
