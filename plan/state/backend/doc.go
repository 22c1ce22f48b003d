// Package backend says what a backend block is: a kind of place where the
// states of all workspaces are kept, its arguments, and where their values
// come from (the block, -backend-config, the environment, what init
// remembered).
//
// It knows no concrete kind: each lives in a package of its own below
// plan/state/store and describes itself by a Kind, and the command line has
// the list of them. It reads and writes no state. Kind.Read and Kind.Open are
// its entry points.
package backend
