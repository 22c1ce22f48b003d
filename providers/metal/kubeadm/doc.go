// Package kubeadm makes a machine the control plane or a worker of a Kubernetes
// cluster, with the machine's own kubeadm, and resets it.
//
// A Cluster and a Node are plain data. Check reports their faults before a machine
// is needed, Cluster.Init and Join.Configuration render kubeadm's configuration
// (kubeadm.k8s.io/v1beta4), and Observe returns the state of a machine:
//
//	token := kubeadm.NewToken()
//	config, err := cluster.Init(head, token)
//	err = kubeadm.Begin(ctx, m, config)               // kubeadm init
//	err = kubeadm.RevokeInit(ctx, m)                  // its token is useless from now on
//	is, err := kubeadm.Observe(ctx, m)                // is.CAHash is what joins pin
//
//	token = kubeadm.NewToken()
//	err = kubeadm.Grant(ctx, m, token, worker.Name, 5*time.Minute)
//	config, err = kubeadm.Join{Endpoint: …, CAHash: is.CAHash, Token: token}.Configuration(worker)
//	err = kubeadm.Enter(ctx, w, config)               // kubeadm join
//	err = kubeadm.Revoke(ctx, m, token)
//
// It installs nothing, and knows neither networks of pods nor GPUs: packages,
// containerd and the machine's settings come before, CNI after. Package drain
// drains nodes.
//
// Tokens and configurations reach a machine only by standard input and are not
// written to files there; tokens are
// removed from the output of kubeadm before it is kept. No private key leaves a machine.
package kubeadm
