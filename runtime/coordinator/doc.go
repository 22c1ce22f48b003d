// Package coordinator trains one experiment by records: it is the work of a
// session (see package session). It hands out leases on records, fixes the
// contributions of each update, commits it at the holders of the parameters,
// keeps the ledger, evaluates at a fixed version and cuts checkpoints.
//
// A schedule decides when units are computed and updates committed; parameters
// is where the parameters lie. Neither knows the other one, and nothing else
// here knows their kinds.
//
// The session's loop owns the state. A call to the holders of the parameters
// runs beside it, one at a time, and ends in an event: a commit, a cut, or a
// restore, which finds the newest state that the run can go on from. Members
// join and leave meanwhile.
//
// It starts no process (that is the supervisor's, or Kubernetes'), holds no
// parameter and computes no gradient.
//
// Entry points: Run, Conclude.
package coordinator
