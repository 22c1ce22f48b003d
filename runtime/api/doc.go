// Package api is the coordinator's HTTP interface as its clients see it: the
// paths, the body of a refusal, and a client. The other bodies are data of
// runtime/spec.
//
// It neither serves nor decides anything; runtime/coordinator answers.
//
// Entry point: Client.
package api
