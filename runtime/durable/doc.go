// Package durable writes files that are there whole or not at all, whatever
// happens meanwhile, and that survive a loss of power once they are there.
//
// It knows nothing of what is in them.
//
// Entry points: Write for content at hand, Create for content that comes.
package durable
