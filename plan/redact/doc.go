// Package redact has everything about hiding values: where values are sensitive
// (Places), what their texts are (Secrets), where an object repeats them
// (Echoes), how they are taken out of values for files (Cut, Mend) and out of
// all texts of providers (Provider, Review). The engine drives providers only
// through it.
//
// It decides nothing about what is sensitive: configurations and schemas do. It
// encrypts nothing: package seal does.
package redact
