// Package ssh works on machines over SSH: it dials through any number of hops,
// each with a host key of its own, logs in with a credential, runs commands
// and writes files.
//
// Nothing is ever put into a command line unquoted (Quote), no secret into one
// at all: they go by standard input. An error says whether trying again can
// help (Permanent), and a failed command's error shows the command as it can
// be pasted into a shell.
//
// It does not know the purpose of a command. Dial is its entry point.
package ssh
