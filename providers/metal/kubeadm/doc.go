// Package kubeadm is what is done to a machine to make it the control plane or a
// worker of a Kubernetes cluster, by the machine's own kubeadm, and to make it
// neither again.
//
// A Cluster and a Node are plain data. Check says what is wrong with them before
// any machine is asked, Cluster.Init and Join.Configuration render what kubeadm
// reads (kubeadm.k8s.io/v1beta4), and Observe says what a machine is now:
//
//	token := kubeadm.NewToken()
//	config, err := cluster.Init(head, token)
//	err = kubeadm.Begin(ctx, m, config)               // kubeadm init
//	err = kubeadm.RevokeInit(ctx, m)                  // its token is nobody's
//	is, err := kubeadm.Observe(ctx, m)                // is.CAHash is what joins pin
//
//	token = kubeadm.NewToken()
//	err = kubeadm.Grant(ctx, m, token, worker.Name, 5*time.Minute)
//	config, err = kubeadm.Join{Endpoint: …, CAHash: is.CAHash, Token: token}.Configuration(worker)
//	err = kubeadm.Enter(ctx, w, config)               // kubeadm join
//	err = kubeadm.Revoke(ctx, m, token)
//
// It installs nothing, and knows neither networks of pods nor GPUs: packages,
// containerd and the machine's settings come before, CNI after. Draining is
// package drain's.
//
// Tokens and configurations reach a machine by standard input alone and are
// written to no file there; what kubeadm says has tokens taken out before it is
// kept. No private key leaves a machine.
package kubeadm
