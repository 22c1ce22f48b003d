// Package filetest is the provider stokehq/test: one resource, test_file,
// whose objects are files, made slowly or failing on request. It is for tests:
// what a plan shows, what an interrupted apply leaves behind, how it goes on. No
// released binary has it: the test binary of cmd/stoke adds it to the catalogue of
// the command stoke that its tests run. It is not a way to manage files.
//
// An object is one file. Its first line is the mark, the id of the operation
// that made it, and what follows is the content; both appear in one step, so a
// crash leaves the whole object or none. In the folder of the files, creates.log
// is the provider's own record of its work, one line for each step:
//
//	create MARK PATH
//	update MARK PATH
//	delete MARK PATH
//
// A line that a crash prevented is added when the object is next read, so that
// files, state and log agree once everything is settled. Entry is what a
// catalogue takes, New what a plugin would serve.
package filetest
