// Package redact keeps in one place what nobody may see: where values are
// sensitive (Places), what their texts are (Secrets), where an object repeats
// them (Echoes), how they are taken out of values for files (Cut, Mend) and out
// of everything that providers say (Provider, Review), which is how the engine
// drives them: nobody else has the providers themselves.
//
// It decides nothing about what is sensitive: configurations and schemas do. It
// encrypts nothing: package seal does.
package redact
