// Package launch says what it takes to run an experiment somewhere: the
// interface between the resource train_experiment and where its processes are.
// launch/local runs them on this machine, launch/kubernetes on a cluster.
//
// It starts nothing itself and knows no folder, no process and no cluster.
//
// Entry point: Launcher.
package launch
