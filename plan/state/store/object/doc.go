// Package object keeps a state in anything that holds named objects and
// writes them on condition: buckets, Secrets. It is a state.Store over a
// Bucket.
//
// The snapshot is one object. The journal has no object of its own to grow:
// each batch of records is a new object, a segment, that is made only if
// nobody has made it, so that a change costs what it is long and a process
// that has lost its lock cannot write what another one relies on. The lock is
// an object too, and a lease: its holder renews it, and one that is no longer
// renewed is taken over.
//
// The package knows no service: see Bucket. New is its entry point.
package object
