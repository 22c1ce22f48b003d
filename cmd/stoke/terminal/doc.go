// Package terminal reads from a terminal: lines and secrets that people type, and
// keys as they are pressed, with the sizes of the window.
//
// A read from a terminal cannot be called off: a goroutine reads for as long as the
// process lives.
//
// Entry points: NewAnswers, Give, IsTerminal.
package terminal
