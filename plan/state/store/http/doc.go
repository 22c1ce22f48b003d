// Package http keeps a state on a web server that speaks the protocol of
// Terraform's http backend: GET, POST and DELETE of one document, and a lock
// that is taken and given back by requests of its own.
//
// A server that knows nothing else can keep one document per address. The
// journal therefore rides inside it while a run is at work, as the member
// "stoke_journal" of the snapshot, so that nothing that was announced is ever
// lost; each batch of records costs one transfer of the whole document, and
// folding takes the member out again. Where the server gives strong ETags and
// minds If-Match, writes are conditional; elsewhere the lock alone keeps
// others out. The protocol has no leases: the lock of a holder that died stays
// until it is broken.
//
// Kind is its entry point.
package http
