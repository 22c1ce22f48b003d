// Package connect says what a connection to a Kubernetes cluster is: the one
// typed object that clusters produce (Result) and that everything which works
// in a cluster takes as an argument (Argument).
//
//	cluster = {
//	  id         = "…"                  # UID of the namespace kube-system: which cluster it is
//	  endpoint   = "https://10.0.0.1:6443"
//	  ca         = "-----BEGIN CERTIFICATE-----…"
//	  credential = { kubeconfig = { path = "~/.kube/config", context = "lab" } }
//	}
//
// A connection holds no secret. Its credential says how to get one: from a
// kubeconfig, from an exec plugin, from Google, or over SSH on the control
// plane. So it can lie in a state, and one value serves plan, apply and destroy.
//
// Connection is the object in Go. This package does not dial anything.
//
// Beside it is what a plan compares before there is anything to ask: Capacity, which
// clusters and pools of nodes compute as their attribute "capacity", and Demand, what
// pods ask for. Demand.On says whether some node could take such a pod.
package connect
