// Package view is what people and pipelines read: diagnostics with their
// excerpt, the plan as a diff, live progress, the table of outcomes, outputs,
// and Terraform's published JSON forms of state and plan.
//
// It is text out of data and nothing else: it decides nothing, reads no file
// and calls no provider. Printer is the entry point; a view is one of its
// methods or, if it only produces data, a function that returns JSON.
package view
