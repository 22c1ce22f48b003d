package kubernetes

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/stokehq/stoke/providers/connect/ssh"
)

// readAdmin prints the kubeconfig of the cluster's administrator, as kubeadm
// writes it on every control plane. super-admin.conf is there on the first one
// alone, https://kubernetes.io/docs/reference/setup-tools/kubeadm/implementation-details/
const readAdmin = `for f in /etc/kubernetes/admin.conf /etc/kubernetes/super-admin.conf; do
  if [ -f "$f" ]; then cat "$f" || exit 4; exit 0; fi
done
exit 3
`

const (
	noAdmin  = 3       // exit status of readAdmin where there is no such file
	maxAdmin = 1 << 20 // bytes of that file
)

var errNoAdmin = errors.New("it has neither /etc/kubernetes/admin.conf nor super-admin.conf there, as kubeadm writes them: is it a control plane?")

// administrator is the credential of the cluster's administrator. It stays in
// memory, and only for as long as it takes to have a certificate signed.
type administrator struct {
	certificate *tls.Certificate
	token       string
}

// administrator reads the administrator's credential on the control plane.
func (t *Tunnel) administrator(ctx context.Context) (*administrator, error) {
	script := func() ssh.Command {
		return ssh.Command{Args: []string{"sh", "-s"}, Stdin: strings.NewReader(readAdmin), Root: true, Most: maxAdmin}
	}
	out, err := t.pool.Run(ctx, t.target, script, true)
	defer clear(out.Stdout)
	var failed *ssh.CommandError
	switch {
	case errors.As(err, &failed) && failed.Status == noAdmin:
		err = ssh.Permanent{Err: errNoAdmin}
	case errors.As(err, &failed): // what it printed may be a part of the file
		err = ssh.Permanent{Err: fmt.Errorf("its /etc/kubernetes/admin.conf cannot be read (exit status %d)", failed.Status)}
	case err == nil:
		var a *administrator
		if a, err = readAdministrator(out.Stdout); err == nil {
			return a, nil
		}
		err = ssh.Permanent{Err: err}
	}
	return nil, &ControlPlaneError{t.Machine, err}
}

// readAdministrator takes the credential out of a kubeconfig of another machine.
// Only what is written in it counts: a path in it would lead to a file here, and
// a plugin would be run here. Its text is not shown.
func readAdministrator(text []byte) (*administrator, error) {
	const where = "its /etc/kubernetes/admin.conf"
	loaded, err := clientcmd.Load(text)
	if err != nil {
		return nil, errors.New(where + " is no kubeconfig")
	}
	context := loaded.Contexts[loaded.CurrentContext]
	if context == nil || loaded.AuthInfos[context.AuthInfo] == nil {
		return nil, errors.New(where + " names no user in its current context")
	}
	user := loaded.AuthInfos[context.AuthInfo]
	defer clear(user.ClientKeyData)
	switch {
	case len(user.ClientCertificateData) > 0 && len(user.ClientKeyData) > 0:
		pair, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData)
		if err != nil {
			return nil, errors.New(where + " has a certificate and a key that do not belong together")
		}
		return &administrator{certificate: &pair}, nil
	case user.Token != "":
		return &administrator{token: user.Token}, nil
	}
	return nil, errors.New(where + " has no certificate with its key in it")
}
