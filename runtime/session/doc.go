// Package session keeps one run together: its term, its members, its history,
// its status and its API, and how it ends. A Work computes: the session does not
// know records, models or checkpoints.
//
// A coordinator speaks for a run in a term. It claims a term at its beginning,
// and another one for each restore of an older state. Members and servers obey the highest claimed term and refuse lower ones. Files that a lower
// term still writes are void. Where checkpoints lie apart from the coordinator's own
// folder, terms are claimed there as well, so that they still rise when that
// folder is lost.
//
// One goroutine owns the state of session and work (Session.loop). Connections,
// the API and the work's own goroutines reach it by events, and read the
// published status. The loop never waits for a member or a server.
//
// After the run's end a session may linger: its API answers until the results
// have been collected. Conclude is that part by itself, for a coordinator that
// is started again after the end.
//
// Entry points: Open, Session.Run, Session.Conclude.
package session
