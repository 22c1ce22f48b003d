// Package live reads and changes the objects of one cluster: server-side apply
// under stoke's own field manager, dry or for good, lists of what carries
// stoke's mark, and waiting by watches until objects are ready or gone. It also
// tells whether its nodes, and those that a plan brings, have room for pods (Room).
package live
