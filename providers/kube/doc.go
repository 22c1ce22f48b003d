// Package kube is the provider of objects in Kubernetes clusters: manifests of
// any kind (kube_manifest), and the objects around a training as resources of
// their own.
//
// Every resource is a set of objects (kind.render makes them from the
// configuration) with one life cycle, in set.go: server-side apply under the
// field manager "stoke", planned by the server's own dry run; refreshed by
// lists of what carries stoke's mark; pruned when an object is no longer
// declared. The state keeps the text of an object's declared fields, as the
// server has them (object.Project): a Secret's values are a hash.
//
// A review of the whole plan (review.go) has checks beyond a dry run: objects that
// move between resources, objects without a server to ask (unseen.go, by package
// schema), and pods that fit no node (fit.go, demand.go).
package kube
