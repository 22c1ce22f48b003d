// Package process has what packages that own or measure processes share: the
// state of a process as Linux shows it, and a thread that outlives its calls.
//
// Entry points: ParseStat, NewThread.
package process
