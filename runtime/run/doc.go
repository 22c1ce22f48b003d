// Package run is a run on one machine, as its launcher and its own processes
// share it: what lies in its folder (Folder), how its supervisor is found
// again (Supervisor), and which process that is (Process).
//
// It starts nothing and decides nothing. A run elsewhere has no folder: what
// its roles need reaches them by argument or environment.
//
// Entry point: Folder.
//
// # The life of a run
//
// The launcher makes the folder with Folder.Create, then starts
//
//	stoke-trainer supervise --run DIR
//
// in a session of its own, with a pipe as its standard input and one as its
// standard output. The supervisor takes the folder's lock, writes
// supervisor.json, prints the same record as one line of JSON, and waits. Once
// the launcher has recorded that identity durably it writes "go\n"; from then
// on the run belongs to the supervisor and the launcher may die at any moment.
// When the pipe closes before "go", the supervisor removes supervisor.json and
// exits without having started anything. After "go" it never writes to its
// standard output or error again: logs/supervisor-0.log has what it says.
//
// While the run lives, status.json is rewritten about once a second and the
// API at Supervisor.API answers. A final phase is written into status.json
// exactly once, by the supervisor, after every role has ended; the supervisor
// then exits as spec.End says. From before "go" it keeps room for the final
// status in a file of the folder, so that a run can report a full disk as its
// cause. A folder whose status is not final and whose supervisor is gone is a lost run (Folder.Status says so):
// starting a supervisor on it again resumes from its newest checkpoint, and so
// it does for a stopped run, whose Cause says why. Failed is only what would
// fail again.
package run
