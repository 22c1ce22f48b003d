// Package traintest makes folders with many runs of long trainings, for tests of the
// programs that show runs: in minutes nothing can train for 10 million updates.
//
// The files have the format of package runtime/history after it has merged older
// updates. Nothing of a released binary imports it.
//
// Entry points: Make, Keep.
package traintest
