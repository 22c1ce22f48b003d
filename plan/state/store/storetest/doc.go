// Package storetest is what every place for states has to pass: Run checks a
// state.Store against its interface, and Sabotage checks one that is reached
// over HTTP against a server that fails in every way at every request.
//
// It is for tests only.
package storetest
