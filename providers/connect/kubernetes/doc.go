// Package kubernetes dials the API server that a connect.Connection leads to.
//
// Pool hands out one Client for each connection. Client says which cluster it
// talks to, by the UID of the namespace kube-system: where the connection names
// another one, Dial refuses before anything else is read. Requests that do not
// reach the API server are repeated for a while once it has answered before, so
// that an apply outlives its restart. Executor and Tunnels are for what stays
// open: commands in pods and forwarded ports. Describe turns errors into what people
// read. No credential is stored or shown.
//
// Over SSH, the API server is dialled from the control plane, and stoke logs in
// with a certificate of one hour: it makes a key, reads the administrator's
// credential in /etc/kubernetes/admin.conf into memory, has the API server sign
// a CertificateSigningRequest with it, and drops it. So nothing has to be
// installed on the control plane (no kubectl, no openssl), the authority's key
// stays where it is and may lie elsewhere, and the cluster's audit log tells who
// came. Both keys are in memory alone. Whoever logs in so is a member of the group
// Operators, which has the rights that it is bound to.
package kubernetes
