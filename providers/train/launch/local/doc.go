// Package local runs an experiment on this machine: it makes the run's folder,
// starts one `stoke-trainer supervise` on it that outlives us, finds it again,
// stops it, and removes the folder.
//
// It is not the supervisor: which roles there are, how they are restarted and
// how they end is runtime's business. It never trusts a process number alone
// and never removes a folder that does not carry its mark.
//
// Entry point: Launcher; below it Place, the folder in which runs lie.
//
// # What a crash leaves
//
// A run's folder appears under its name in one rename, its mark already in it.
// launched.json is written, durably, after the supervisor has said who it is
// and before it hears "go". So a marked folder without launched.json has never
// trained anything and never will (its supervisor, if there is one, ends when
// our pipe closes); one with launched.json may have, and is kept.
package local
