// Package kube is the provider of objects in Kubernetes clusters: manifests of
// any kind (kube_manifest), and the objects around a training as resources of
// their own.
//
// Every resource is a set of objects (kind.render makes them from the
// configuration) with one life, which is told once, in set.go: server-side
// apply under the field manager "stoke", planned by the server's own dry run;
// refreshed by lists of what carries stoke's mark; pruned when an object is no
// longer declared. What a state keeps of an object is the text of the fields
// that are declared, as the server has them (object.Project): a Secret's values
// are a hash.
//
// A review of the whole plan (review.go) looks at what a dry run cannot tell: what
// moves between resources, objects that no server could be asked about (unseen.go,
// by package schema), and pods that no node could ever take (fit.go, demand.go).
package kube
