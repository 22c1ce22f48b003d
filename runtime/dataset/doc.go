// Package dataset turns what people have (pictures, IDX files, CSV, or nothing:
// synthetic digits) into one storage format of our own and reads records of it
// by number. It neither shuffles nor batches: which records are read when is
// the coordinator's business.
//
// Nothing in a file is believed before it has been checked against the file's
// size: a hostile header costs neither memory nor time.
//
// The entry points are Inspect and Prepare for origins, Open for the prepared
// folder.
package dataset
