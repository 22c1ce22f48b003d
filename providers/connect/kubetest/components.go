package kubetest

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	clientapi "k8s.io/client-go/tools/clientcmd/api"
)

// auditPolicy has a line in the audit log for each request that was answered, and
// one more for each that is answered for long, when that begins.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`

// serviceRange is what addresses of Services are taken from.
const serviceRange = "10.96.0.0/16"

// prepare writes the files that the programs need, and says how to start them.
func (c *Cluster) prepare() error {
	for _, step := range []func() error{c.certify, c.ports, c.identify} {
		if err := step(); err != nil {
			return err
		}
	}
	if err := os.WriteFile(c.file("audit.yaml"), []byte(auditPolicy), 0o600); err != nil {
		return err
	}
	if err := os.WriteFile(c.file("stages.yaml"), stages, 0o600); err != nil {
		return err
	}
	c.etcd = c.program("etcd", c.etcdArgs())
	c.server = c.program("kube-apiserver", append(c.serverArgs(), c.options.APIServer...))
	if !c.options.APIOnly {
		c.others = []*process{
			c.program("kube-controller-manager", c.controllerArgs()),
			c.program("kube-scheduler", []string{"--kubeconfig=scheduler.kubeconfig", "--leader-elect=false", "--secure-port=0"}),
			c.program("kwok", []string{
				"--kubeconfig=admin.kubeconfig", "--config=stages.yaml", "--server-address=", "--cidr=10.65.0.1/16",
				// It renews their leases, and the lifecycle controller sees that they live.
				"--manage-nodes-with-label-selector=" + fakeNode, "--node-lease-duration-seconds=40",
			}),
		}
	}
	return nil
}

func (c *Cluster) file(name string) string { return filepath.Join(c.dir, name) }

func (c *Cluster) program(name string, args []string) *process {
	return &process{name: name, path: c.Program(name), args: args, dir: c.dir, log: c.file(name + ".log")}
}

// certify makes the authority and what the API server shows of itself and signs
// tokens with.
func (c *Cluster) certify() error {
	var err error
	if c.authority, err = newAuthority(); err != nil {
		return err
	}
	secret, err := encode(c.authority.key)
	if err != nil {
		return err
	}
	if err := (pair{c.authority.pem, secret}).write(c.dir, "ca"); err != nil {
		return err
	}
	server, err := c.authority.server("kube-apiserver")
	if err != nil {
		return err
	}
	if err := server.write(c.dir, "apiserver"); err != nil {
		return err
	}
	caller, err := c.authority.client(kubeletClient, []string{masters}, time.Now().Add(lifetime))
	if err != nil {
		return err
	}
	if err := caller.write(c.dir, "kubelet-client"); err != nil {
		return err
	}
	key, err := newKey()
	if err != nil {
		return err
	}
	if secret, err = encode(key); err != nil {
		return err
	}
	return os.WriteFile(c.file("sa.key"), secret, 0o600)
}

func (c *Cluster) ports() error {
	for _, p := range []*port{&c.api, &c.store, &c.peers} {
		var err error
		if *p, err = reserve(); err != nil {
			return err
		}
		c.reserved = append(c.reserved, *p)
	}
	c.Endpoint = "https://" + c.api.address()
	return nil
}

// identify writes kubeconfigs of the administrator and of the programs.
func (c *Cluster) identify() error {
	for name, user := range map[string]Login{
		"admin":      {},
		"controller": {User: "system:kube-controller-manager"},
		"scheduler":  {User: "system:kube-scheduler"},
	} {
		id := clientapi.NewAuthInfo()
		p, err := c.authority.client(user.user(), user.groups(), time.Now().Add(lifetime))
		if err != nil {
			return err
		}
		id.ClientCertificateData, id.ClientKeyData = p.cert, p.key
		if err := c.write(c.file(name+".kubeconfig"), c.kubeconfig(user, id)); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) etcdArgs() []string {
	store, peers := "http://"+c.store.address(), "http://"+c.peers.address()
	return []string{
		"--name=default", "--data-dir=etcd", "--listen-client-urls=" + store, "--advertise-client-urls=" + store,
		"--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers, "--initial-cluster=default=" + peers,
		"--socket-reuse-port=true", "--unsafe-no-fsync", "--log-level=warn",
	}
}

func (c *Cluster) serverArgs() []string {
	return []string{
		"--etcd-servers=http://" + c.store.address(),
		"--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.api.number), "--permit-port-sharing=true",
		"--tls-cert-file=apiserver.crt", "--tls-private-key-file=apiserver.key", "--client-ca-file=ca.crt",
		"--kubelet-client-certificate=kubelet-client.crt", "--kubelet-client-key=kubelet-client.key", "--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=sa.key", "--service-account-signing-key-file=sa.key",
		"--service-cluster-ip-range=" + serviceRange, "--endpoint-reconciler-type=none", "--allow-privileged=true",
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--audit-policy-file=audit.yaml", "--audit-log-path=audit.log", "--audit-log-mode=blocking", "--audit-log-maxsize=4000",
	}
}

func (c *Cluster) controllerArgs() []string {
	return []string{
		"--kubeconfig=controller.kubeconfig", "--leader-elect=false", "--secure-port=0", "--use-service-account-credentials=true",
		"--service-account-private-key-file=sa.key", "--root-ca-file=ca.crt", "--service-cluster-ip-range=" + serviceRange,
		"--cluster-signing-cert-file=ca.crt", "--cluster-signing-key-file=ca.key",
		// Otherwise it makes /usr/libexec/kubernetes, and a claim made before its
		// volume waits for 15 s.
		"--flex-volume-plugin-dir=" + c.file("plugins"), "--pvclaimbinder-sync-period=1s",
	}
}
