// Package usage measures what processes take from a machine: processor time,
// memory, network and disk, as one sample of running totals.
//
// A Meter reads either a control group (version 2), where the container has one
// of its own, or /proc. It is made for one sample every few seconds: a sample of
// a group reads five files, and one of processes two files for each process. To
// find new processes it reads one file for each process of the machine, on
// average at most 256 in each sample.
//
// It keeps no history and knows no run. GPUs are elsewhere.
//
// Entry points: NewProcesses, NewGroup, OwnGroup.
package usage
