// Package kubetest runs a real control plane of Kubernetes on loopback for
// tests: etcd, kube-apiserver, kube-controller-manager and kube-scheduler, and
// kwok, whose nodes have whatever they are said to have and run nothing. It is
// ready in seconds, needs no root, and leaves nothing behind.
//
// Its entry points are Start, for a test with a cluster of its own, and Shared,
// for the tests of a package:
//
//	var shared = kubetest.Shared{Options: kubetest.Options{Nodes: []kubetest.Node{kubetest.GPUNode("gpu-1", 8)}}}
//
//	func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }
//
//	func TestDeployment(t *testing.T) {
//		c := shared.Cluster(t)             // skips where there cannot be one
//		ns := c.Namespace(t)               // of its own; deleted at the end
//		c.Kubectl(t, yaml, "apply", "-n", ns, "-f", "-")
//		c.Eventually(t, "the deployment is available", func(ctx context.Context) (bool, error) { … c.Client … })
//	}
//
// The programs are built by testdata/kubernetes/install, which `make e2e-kube`
// calls. Where they are missing, tests are skipped and say so; with
// STOKE_KUBE=required in the environment they fail.
//
// Users: c.Admin and c.Kubeconfig may do everything. KubeconfigFor makes kubeconfigs
// for other users, with any kind of credential:
//
//	c.KubeconfigFor(t, kubetest.Login{User: "alice", Grants: []kubetest.Grant{{Namespace: ns, Rules: rules}}})
//	c.KubeconfigFor(t, kubetest.Login{User: "system:serviceaccount:ci:deploy", With: kubetest.TokenFile})
//	c.KubeconfigFor(t, kubetest.Login{With: kubetest.Exec, Script: "sleep 3600"}) // a plugin that hangs
//	c.KubeconfigFor(t, kubetest.Login{User: "bob", Expired: true})
//
// Requests: c.Requests is the server's count of all requests, apiserver_request_total;
// c.Audit lists the requests of one user, from the audit log.
//
// Faults: c.StopAPI, c.StartAPI and c.Outage (connections are refused), c.PauseAPI
// (nothing is answered), c.KillAPI; c.Webhook is an admission webhook with answers from
// the test. They are only for a cluster that the test does not share.
//
// Pods on the fake nodes run and are ready at once. Pods of Jobs succeed after a
// second. Annotations of the pod change that:
//
//	kubetest/run-for: 30s                 // of a Job: how long it runs
//	kubetest/exit-code: "1"               // of a Job: it fails instead
//	kubetest/waiting: ImagePullBackOff    // it never starts, for that reason
//
// Nothing else of a node is there: no containers, logs, volumes, or network.
//
// c.AddKubelet adds a node whose kubelet answers the API server: for logs, which
// the test writes, commands, which are run on this machine, and ports of this
// machine. The test also decides about the end of the pods there. The
// API server, the scheduler, and the controllers are the real ones with the
// settings of kubeadm, RBAC, the Node authorizer, and the default admission
// plugins among them.
package kubetest
