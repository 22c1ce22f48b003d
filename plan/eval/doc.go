// Package eval gives values to declarations: module instances, variables,
// locals, outputs, resources and provider configurations are memoised cells
// that read each other. The asking is the dependency graph: it is found out
// once, by evaluating, and never declared a second time.
//
// One Evaluator serves one phase. It decides nothing about resources: what an
// instance's value is, it asks its Resolver (the planner, or the executor with
// the results of an apply). New is the entry point.
package eval
