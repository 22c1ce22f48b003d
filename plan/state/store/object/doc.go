// Package object keeps a state in anything that holds named objects and
// writes them on condition: buckets, Secrets. It is a state.Store over a
// Bucket.
//
// The snapshot is one object. The journal is not one growing object: each batch
// of records is a new object, a segment, and creating it fails if it exists, so
// that the cost of a change follows from its length, and a process that has
// lost its lock cannot overwrite segments of another one. The lock is an object
// too, and a lease: its holder renews it, and another process may take over a
// lease that is no longer renewed.
//
// The package knows no service: see Bucket. New is its entry point.
package object
