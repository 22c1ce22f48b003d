package kubernetes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stokehq/stoke/providers/connect"
)

// Credential is one for another program, such as kubectl, in the terms of the
// protocol of credential plugins: a token, or a certificate and its key. It is
// to be handed over and neither stored nor shown.
type Credential struct {
	Token            string
	Certificate, Key []byte    // PEM
	Expires          time.Time // zero: it does not say
}

// Credential gets a credential for another program. Over SSH it is a certificate
// of one hour, made for this call; otherwise what the connection leads to. It
// takes 10 s at most, and longer only for a credential plugin.
func (p *Pool) Credential(ctx context.Context, c connect.Connection) (*Credential, error) {
	e, err := resolve(c, p.way())
	if err != nil {
		return nil, err
	}
	if e.config.Impersonate.UserName != "" {
		return nil, &NoCredentialError{e.configure(c), errors.New("its user impersonates another one, which cannot be " +
			"handed on; use that kubeconfig itself")}
	}
	if e.plugin != nil {
		e.plugin.waiting = p.Waiting
		if _, err := e.plugin.get(ctx); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, dialTime, errSlow)
	defer cancel()
	switch {
	case e.tunnel != nil:
		o := newOperator(e)
		defer o.end()
		pair, err := o.login(ctx)
		if err != nil {
			return nil, err
		}
		return certificateOf(pair)
	case e.plugin != nil:
		h, err := e.plugin.get(ctx)
		if err != nil {
			return nil, err
		}
		if h.cert == nil {
			return &Credential{Token: h.token, Expires: h.expiry}, nil
		}
		out, err := certificateOf(h.cert)
		if err == nil {
			out.Token, out.Expires = h.token, h.expiry
		}
		return out, err
	case e.tokens != nil:
		token, err := e.tokens.Token()
		if err != nil {
			return nil, &DialError{Name: e.name, Endpoint: e.config.Host, Err: err, credential: e.credential}
		}
		return &Credential{Token: token.AccessToken, Expires: token.Expiry}, nil
	}
	out, err := e.fileCredential()
	if err != nil {
		return nil, &NoCredentialError{e.configure(c), err}
	}
	return out, nil
}

// fileCredential is the credential in a file.
func (e *endpoint) fileCredential() (*Credential, error) {
	k := e.config
	switch {
	case k.Username != "" || k.AuthProvider != nil:
		return nil, errors.New("its user logs in by a password, or by an auth-provider, which cannot be handed on; use that kubeconfig itself")
	case k.BearerTokenFile != "":
		token, err := readToken(k.BearerTokenFile)
		return &Credential{Token: token}, err
	case k.BearerToken != "":
		return &Credential{Token: k.BearerToken}, nil
	}
	certificate, key := k.CertData, k.KeyData
	for _, part := range []struct {
		to   *[]byte
		file string
	}{{&certificate, k.CertFile}, {&key, k.KeyFile}} {
		if len(*part.to) == 0 && part.file != "" {
			text, err := os.ReadFile(part.file)
			if err != nil {
				return nil, err
			}
			*part.to = text
		}
	}
	if len(certificate) == 0 {
		return nil, errors.New("its user has no credential")
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, errors.New("its client certificate and key do not belong together")
	}
	return &Credential{Certificate: certificate, Key: key, Expires: pair.Leaf.NotAfter}, nil
}

func certificateOf(pair *tls.Certificate) (*Credential, error) {
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("write the key: %w", err)
	}
	out := &Credential{Key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), Expires: pair.Leaf.NotAfter}
	for _, der := range pair.Certificate {
		out.Certificate = append(out.Certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return out, nil
}

// ClusterEntry is what a kubeconfig says of the cluster that a connection leads to.
// Nothing of it is secret. Nobody is asked.
func (p *Pool) ClusterEntry(c connect.Connection) (*clientcmdapi.Cluster, error) {
	e, err := resolve(c, p.way())
	if err != nil {
		return nil, err
	}
	t := e.config.TLSClientConfig
	out := &clientcmdapi.Cluster{
		Server: e.config.Host, TLSServerName: t.ServerName, InsecureSkipTLSVerify: t.Insecure,
		CertificateAuthorityData: t.CAData, CertificateAuthority: t.CAFile, DisableCompression: e.config.DisableCompression,
	}
	if e.config.Proxy == nil {
		return out, nil
	}
	to, err := url.Parse(e.config.Host)
	if err != nil {
		return nil, &NoCredentialError{e.configure(c), err}
	}
	through, err := e.config.Proxy(&http.Request{URL: to})
	if err != nil {
		return nil, &NoCredentialError{e.configure(c), err}
	}
	if through != nil {
		out.ProxyURL = through.String()
	}
	return out, nil
}
