// Package plan is the engine: it compares the configuration with the real
// objects and makes a Plan, which is pure data. Make is its entry point.
//
// It does not know concrete providers and prints nothing; package run carries
// plans out, package view renders them, package eval gives values to
// declarations.
package plan
