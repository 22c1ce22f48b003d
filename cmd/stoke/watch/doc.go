// Package watch shows runs while they run: live curves, roles with their usage,
// events and logs on a terminal, or plain lines elsewhere.
//
// A feed reads one run: its status every two seconds, its metrics and logs as they
// come, and all of them again after a lost connection. A frame is the screen as
// lines, made from a copy of the feeds and the size of the window. The loop draws at
// most four frames a second, only after news, and writes only lines that changed.
//
// The package has its own loop. Bubble Tea v1 asks the terminal for its colours in the
// initialisation of its package: each command of stoke, version as well, would do so.
//
// Entry points: Show, Options.
package watch
