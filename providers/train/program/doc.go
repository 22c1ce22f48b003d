// Package program is the block program of train_experiment: its arguments, their
// values in a specification, and what a plan says of the command and of the code.
//
// It starts nothing and knows no run: runtime/program runs programs.
//
// Entry points: Block, Check, CheckCommand, List.
package program
