// Package zoo holds the ready models that a configuration can name. It makes
// plain engine.Model data and computes nothing.
//
// The entry point is Model.
package zoo

import ()
