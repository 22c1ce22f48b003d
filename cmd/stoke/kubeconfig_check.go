package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/client-go/tools/auth/exec"
	clientapi "k8s.io/client-go/tools/clientcmd/api"

	connections "github.com/stokehq/stoke/providers/connect"
	"github.com/stokehq/stoke/providers/connect/kubernetes"
)

const (
	// credentialVariable is set for what stoke starts while it makes a credential.
	credentialVariable = "STOKE_CREDENTIAL"
	// execInfoVariable is what a program tells its credential plugin,
	// https://kubernetes.io/docs/reference/config-api/client-authentication.v1/
	execInfoVariable = "KUBERNETES_EXEC_INFO"
)

// guardCredential refuses to make a credential on behalf of a process that makes
// one: a kubeconfig that leads to stoke, which reads it, would go on for ever.
func (s *session) guardCredential(address string) error {
	if s.getenv(credentialVariable) != "" {
		s.complainOnStderr(problem("Credential asks for itself", "Making a credential for %s, stoke was called for the same "+
			"credential: the kubeconfig that the provider's block names leads back to stoke. Name in the block the context of the cluster's own user, as config_context.", address))
		return failed
	}
	return os.Setenv(credentialVariable, "1")
}

// ownSource refuses to write into the kubeconfig through whose current context
// the cluster is reached: as soon as the context of stoke is made the current
// one, stoke would ask itself.
func (s *session) ownSource(c *cluster, path string) error {
	from := c.Credential.Kubeconfig
	if from == nil || from.Context != "" {
		return nil
	}
	source, err := connections.ExpandHome(from.Path)
	if err != nil {
		return err
	}
	a, errA := os.Stat(source)
	b, errB := os.Stat(path)
	if errA != nil || errB != nil || !os.SameFile(a, b) {
		return nil
	}
	s.complainOnStderr(problem("Kubeconfig is the cluster's own", "%s is the file through whose current context %s is reached. With an entry of stoke as that context, stoke would ask itself for the credential. Name the context in the provider's block, as config_context, or merge into another file, by KUBECONFIG.", path, c.address))
	return failed
}

// checkRequestedCluster compares the cluster that a program wants a credential for with the one
// that it would be for. A program that does not say is one that was not told to:
// the entries that stoke writes do.
func (s *session) checkRequestedCluster(pool *kubernetes.Pool, c *cluster) error {
	text := s.getenv(execInfoVariable)
	if text == "" {
		return nil
	}
	var info struct {
		Spec struct {
			Cluster any `json:"cluster"`
		} `json:"spec"`
	}
	if err := json.Unmarshal([]byte(text), &info); err != nil {
		s.complainOnStderr(problem("Invalid environment", "%s is not an ExecCredential in JSON: the fault is in the program "+
			"that asks for a credential.", execInfoVariable))
		return failed
	}
	if info.Spec.Cluster == nil {
		return nil
	}
	_, want, err := exec.LoadExecCredential([]byte(text))
	if err != nil {
		s.complainOnStderr(problem("Invalid environment", "%s cannot be read: %s.", execInfoVariable, err))
		return failed
	}
	have, err := pool.ClusterEntry(c.Connection)
	if err != nil {
		return err
	}
	ca, err := authorityOf(have)
	if err != nil {
		return err
	}
	name := want.ServerName
	switch {
	case want.Host != have.Server:
		return s.otherCluster(c, want.Host, have.Server)
	case !bytes.Equal(bytes.TrimSpace(want.CAData), bytes.TrimSpace(ca)):
		return s.otherCluster(c, want.Host+" with another certificate authority", have.Server)
	case name != have.TLSServerName || want.Insecure != have.InsecureSkipTLSVerify:
		return s.otherCluster(c, fmt.Sprintf("%s (tls-server-name %q, insecure-skip-tls-verify %t)", want.Host, name, want.Insecure),
			fmt.Sprintf("%s (tls-server-name %q, insecure-skip-tls-verify %t)", have.Server, have.TLSServerName, have.InsecureSkipTLSVerify))
	}
	return nil
}

// otherCluster refuses a credential.
func (s *session) otherCluster(c *cluster, want, have string) error {
	s.complainOnStderr(problem("Another cluster", "A program asks for a credential for %s, and %s is at %s. None was printed. "+
		"If the cluster has moved, write the entry again: stoke kubeconfig -merge '%s'.", want, c.address, have, c.address))
	return failed
}

// authorityOf is the certificate authority of a cluster, in PEM.
func authorityOf(c *clientapi.Cluster) ([]byte, error) {
	if len(c.CertificateAuthorityData) > 0 || c.CertificateAuthority == "" {
		return c.CertificateAuthorityData, nil
	}
	return os.ReadFile(c.CertificateAuthority)
}
