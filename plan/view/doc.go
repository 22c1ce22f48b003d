// Package view is what people and pipelines read: diagnostics with their
// excerpt, the plan as a diff, live progress, the table of outcomes, outputs,
// and Terraform's published JSON forms of state and plan.
//
// It is text out of data and nothing else: it decides nothing, reads no file
// and calls no provider. Printer is the entry point; every view is one of its
// methods or, where nothing but data comes out, a function that returns JSON.
package view
