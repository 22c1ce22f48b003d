// Package durable writes files that exist completely or not at all, also after
// a crash, and that survive a loss of power once they exist.
//
// It does not interpret the content.
//
// Entry points: Write for content in memory, Create for a stream.
package durable
