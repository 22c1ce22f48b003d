// Package plan is the engine: it compares what the configuration wants with
// what is there and makes a Plan, which is pure data. Make is its entry point.
//
// It knows no concrete provider and prints nothing; package run carries plans
// out, package view renders them, package eval gives values to declarations.
package plan
