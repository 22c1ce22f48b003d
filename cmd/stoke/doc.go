// Command stoke is the command line: Terraform's commands, flags and exit
// codes over stoke's engine. Flags come in, calls go out; what is decided is
// decided by the packages below (modules, plan, plan/run, plan/state), what is
// printed is written by plan/view.
//
// There is one file per command. execute is the entry point: root.go builds the
// commands, arguments.go makes the arguments fit for them, operation.go is
// what plan, apply and destroy have in common, engine.go is where the engine
// is called.
package main
