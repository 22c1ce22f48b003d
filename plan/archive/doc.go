// Package archive writes a run as a zip file: its status, its configuration, its metrics
// as JSON lines and as comma-separated values, and the logs of its roles.
//
// It streams: its memory does not grow with the run.
//
// Entry points: Write, Create, Rows.
package archive
