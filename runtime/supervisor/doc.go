// Package supervisor owns the processes of one run on this machine: it opens
// their listeners, starts them after "go", restarts those that die, and reaps
// them all before it writes the run's final status. run's documentation has
// the protocol with whoever launches it.
//
// A role gets all that it needs by argument, and the run's folder only as far
// as files in it are its own. How a process ended (spec.End) decides whether it
// is started again.
//
// It neither trains nor decides how training goes: the coordinator tells it
// how many workers to run and what the outcome is. On Kubernetes its place is
// taken by the Jobs.
//
// No role outlives it, however it ends: on Linux the kernel kills them
// (PR_SET_PDEATHSIG), and everywhere they exit when their standard input, a
// pipe that only the supervisor holds open, ends.
//
// Entry point: Run.
package supervisor
