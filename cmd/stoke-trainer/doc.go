// Command stoke-trainer runs the processes of a training run: the supervisor
// that owns a run on this machine, its roles (coordinator, parameter server,
// worker), and the preparation of datasets.
//
// It plans nothing and knows no configuration: providers/train starts it, and
// runtime/spec is what the two share. There is one file per group of commands;
// command, in main.go, is the entry point.
package main
