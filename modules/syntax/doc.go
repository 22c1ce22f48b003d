// Package syntax parses configuration text that nobody has checked: it is
// hcl's parsers with bounds. Text that is binary or nested so deeply that a
// recursive parser would exhaust the stack ends in one diagnostic, a file
// full of mistakes in a readable number of them, and a large file is parsed
// by all cores.
//
// It knows the syntax and nothing about blocks and arguments. Parse is its
// entry point; ParseExpression and ParseTemplate are for single texts.
package syntax
