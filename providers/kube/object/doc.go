// Package object is Kubernetes objects as data: what a manifest says (Parse),
// in which order kinds are made (Waves), and what of a live object is ours
// (Project), as the text that plans show (Text). It asks no cluster.
package object
