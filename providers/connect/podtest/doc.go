// Package podtest runs real pods for tests: the control plane of package
// kubetest, with additional nodes where containerd and the kubelet run
// containers.
//
// Its entry point is Start. All of it has the build tag e2e, is for Linux, and
// needs root; the names of tests that use it contain RealPods, by which
// `make e2e-pods` finds them:
//
//	//go:build e2e && linux
//
//	func TestDeploymentRealPods(t *testing.T) {
//		c := podtest.Start(t, podtest.Options{Nodes: 2}) // skips where there cannot be one; ends with the test
//		ns := c.Namespace(t)                             // all that a kubetest.Cluster can do
//		c.Kubectl(t, yaml, "apply", "-n", ns, "-f", "-") // of pods with the image podtest.Demo, which every node has
//		c.Kubectl(t, "", "exec", "-n", ns, "pod", "--", "/demo", "get", "http://web.shop:8080")
//		c.Load(t, podtest.Image{Ref: "stoke.test/mine:1", Files: …}.Archive(t))
//		c.Nodes[0].Offer(t, "nvidia.com/gpu", 2)         // to pods that ask for it, which get nothing
//		c.Nodes[0].Stop(t)                               // power cut
//		c.Nodes[0].Start(t)
//	}
//
// The programs are built by testdata/kubernetes/containerd/install, which
// `make e2e-pods` calls, and runc and nft are the distribution's. Where something is
// missing tests are skipped and say so; with STOKE_KUBE=required or
// STOKE_E2E_REQUIRE=1 in the environment they fail.
//
// A node is a set of namespaces (mounts, processes, network, host name), with
// control groups of its own; the kernel and the file system are those of this
// machine, and the node changes nothing there. Its first process is killed with
// the process of the test, and all others with that one. The network of this
// machine is not used: nodes and pods reach each other and the API server, and
// the API server reaches kubelets and pods through a proxy of the test process.
// Images come from archives; there is no registry.
//
// kube-proxy is there, and so are the names of Services and of pods in headless
// ones. Storage classes, network policies, and names and addresses outside the
// cluster do not exist. Disks and memory are never short, as the kubelet sees it.
package podtest
