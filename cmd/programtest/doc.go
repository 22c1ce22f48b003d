// Package programtest gives tests the programs of this module as they are
// released, each built once.
//
// Its entry points are Path and Folder. make test and the gate build the
// programs first and name their folder in the variable STOKE_PROGRAMS; without
// it the first test of a process that asks for one builds both.
package programtest
