// Package imagetest is a registry for tests: go-containerregistry's own, behind
// a door that keeps the rules of those in use.
//
// Entry point: New.
package imagetest
