// Package zoo holds the ready models that a configuration can name. It makes
// plain model.Model data and computes nothing.
//
// The entry point is Model.
package zoo
