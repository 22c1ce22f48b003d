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
// Who a test is: c.Admin and c.Kubeconfig may do everything. KubeconfigFor makes
// kubeconfigs of anybody else, with any kind of credential:
//
//	c.KubeconfigFor(t, kubetest.Login{User: "alice", Grants: []kubetest.Grant{{Namespace: ns, Rules: rules}}})
//	c.KubeconfigFor(t, kubetest.Login{User: "system:serviceaccount:ci:deploy", With: kubetest.TokenFile})
//	c.KubeconfigFor(t, kubetest.Login{With: kubetest.Exec, Script: "sleep 3600"}) // a plugin that hangs
//	c.KubeconfigFor(t, kubetest.Login{User: "bob", Expired: true})
//
// What was asked of the server: c.Requests is its own count, apiserver_request_total,
// of everybody's requests; c.Audit lists those of one user, from its audit log.
//
// What goes wrong: c.StopAPI, c.StartAPI and c.Outage (connections are refused),
// c.PauseAPI (nothing is answered), c.KillAPI; c.Webhook is an admission webhook that
// does what it is told to. They are for clusters of a test's own.
//
// What pods do on the fake nodes: they run and are ready at once. Those of Jobs
// succeed after a second. Annotations of the pod say otherwise:
//
//	kubetest/run-for: 30s                 // of a Job: how long it runs
//	kubetest/exit-code: "1"               // of a Job: it fails instead
//	kubetest/waiting: ImagePullBackOff    // it never starts, for that reason
//
// Nothing else of a node is there: no containers, logs, volumes, or network.
//
// c.AddKubelet adds a node whose kubelet the API server can ask: for logs, which
// the test writes, commands, which are run on this machine, and ports, which are
// this machine's. What becomes of the pods there is the test's to say as well. The
// API server, the scheduler, and the controllers are the real ones with the
// settings of kubeadm, RBAC, the Node authorizer, and the default admission
// plugins among them.
package kubetest
