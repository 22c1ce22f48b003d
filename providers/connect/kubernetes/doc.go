// Package kubernetes dials the API server that a connect.Connection leads to.
//
// Pool hands out one Client for each connection. Client says which cluster it
// talks to, by the UID of the namespace kube-system: where the connection names
// another one, Dial refuses before anything else is read. Requests that do not
// reach the API server are repeated for a while once it has answered before, so
// that an apply outlives its restart. Describe turns errors into what people
// read. No credential is stored or shown.
package kubernetes
