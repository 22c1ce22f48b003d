package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	pluginTime = 3 * time.Minute // for a plugin to answer: it may wait for a login in a browser
	pluginSlow = 5 * time.Second // until the caller hears that it has not answered
	maxCredent = 1 << 20         // bytes of its answer
	maxSaid    = 400             // of what it writes on stderr, in messages
	// Versions of the protocol, https://kubernetes.io/docs/reference/config-api/client-authentication.v1/
	execV1, execV1beta1 = "client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"
)

// plugin runs a credential plugin and keeps what it hands out in memory until
// that ends. client-go's own has no time limit.
type plugin struct {
	config *clientcmdapi.ExecConfig
	// cluster is the description that the plugin asks for, or nil.
	cluster *clientauthentication.Cluster
	// waiting, where it is not nil, gets a *SlowPluginError after slow; the plugin
	// is ended after limit.
	waiting     func(context.Context, error)
	slow, limit time.Duration

	mu   sync.Mutex
	have *pluginCredential // nil: none yet, or the API server did not take it
}

// pluginCredential is a credential from a plugin.
type pluginCredential struct {
	token  string
	cert   *tls.Certificate
	pem    [2][]byte // the certificate and its key, as they were printed
	expiry time.Time // zero: it does not say
}

func newPlugin(c *clientcmdapi.ExecConfig) *plugin {
	return &plugin{config: c, slow: pluginSlow, limit: pluginTime}
}

// SlowPluginError reports a credential plugin that has not answered yet.
type SlowPluginError struct {
	Command string
	After   time.Duration
}

func (e *SlowPluginError) Error() string {
	return fmt.Sprintf("the credential plugin %s has not answered for %v: it may wait for a login", e.Command, e.After)
}

// get is a credential that is still good. It runs the plugin where there is
// none.
func (p *plugin) get(ctx context.Context) (*pluginCredential, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.have; h != nil && (h.expiry.IsZero() || time.Until(h.expiry) > 10*time.Second) {
		return h, nil
	}
	h, err := p.run(ctx)
	if err != nil {
		return nil, &NoCredentialError{"the credential plugin " + p.config.Command, err}
	}
	p.have = h
	return h, nil
}

// refuse drops a credential that the API server did not take. Requests that are
// refused together drop the same one, so that the plugin is asked once for all.
func (p *plugin) refuse(h *pluginCredential) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.have == h {
		p.have = nil
	}
}

// certificate is the TLS configuration's.
func (p *plugin) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.have == nil || p.have.cert == nil {
		return new(tls.Certificate), nil
	}
	return p.have.cert, nil
}

// answer is what a plugin prints.
type answer struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Status     *struct {
		ExpirationTimestamp   time.Time `json:"expirationTimestamp"`
		Token                 string    `json:"token"`
		ClientCertificateData string    `json:"clientCertificateData"`
		ClientKeyData         string    `json:"clientKeyData"`
	} `json:"status"`
}

func (p *plugin) run(ctx context.Context) (*pluginCredential, error) {
	version := p.config.APIVersion
	if version == "" {
		version = execV1
	}
	if version != execV1 && version != execV1beta1 {
		return nil, fmt.Errorf("it speaks %s; this reads %s and %s", version, execV1, execV1beta1)
	}
	if p.config.InteractiveMode == clientcmdapi.AlwaysExecInteractiveMode {
		return nil, errors.New("it wants to ask at a terminal (interactiveMode: Always), which this gives to no plugin; log in with it first, or use another credential")
	}
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	if p.waiting != nil {
		defer time.AfterFunc(p.slow, func() { p.waiting(ctx, &SlowPluginError{p.config.Command, p.slow}) }).Stop()
	}
	cmd := exec.CommandContext(ctx, p.config.Command, p.config.Args...)
	cmd.WaitDelay = time.Second                                    // for processes that the plugin leaves behind
	info, err := json.Marshal(clientauthentication.ExecCredential{ // v1beta1 has the same fields
		TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ExecCredential"},
		Spec:     clientauthentication.ExecCredentialSpec{Cluster: p.cluster},
	})
	if err != nil {
		return nil, fmt.Errorf("write KUBERNETES_EXEC_INFO: %w", err)
	}
	cmd.Env = append(os.Environ(), "KUBERNETES_EXEC_INFO="+string(info))
	for _, v := range p.config.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	var out, said limited
	out.most, said.most = maxCredent, maxSaid
	cmd.Stdout, cmd.Stderr = &out, &said
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("it did not answer within %v%s", p.limit, said.note())
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist):
		hint := p.config.InstallHint
		if hint == "" {
			hint = "install it, or give its path"
		}
		return nil, fmt.Errorf("there is no such program; %s", strings.TrimSpace(hint))
	case err != nil:
		return nil, fmt.Errorf("%w%s", err, said.note())
	}
	return read(out.Bytes(), version)
}

// read reads a plugin's answer. Its text is not shown: it may be a credential.
func read(text []byte, version string) (*pluginCredential, error) {
	var a answer
	if err := json.Unmarshal(text, &a); err != nil || a.Kind != "ExecCredential" {
		return nil, errors.New("its output is not an ExecCredential in JSON")
	}
	if a.APIVersion != version {
		return nil, fmt.Errorf("it answers in %q instead of %s", a.APIVersion, version)
	}
	if a.Status == nil || a.Status.Token == "" && a.Status.ClientCertificateData == "" {
		return nil, errors.New("its answer has neither a token nor a client certificate")
	}
	h := &pluginCredential{token: a.Status.Token, expiry: a.Status.ExpirationTimestamp}
	if a.Status.ClientCertificateData != "" {
		pair, err := tls.X509KeyPair([]byte(a.Status.ClientCertificateData), []byte(a.Status.ClientKeyData))
		if err != nil {
			return nil, errors.New("its client certificate and key do not belong together")
		}
		h.cert = &pair
		h.pem = [2][]byte{[]byte(a.Status.ClientCertificateData), []byte(a.Status.ClientKeyData)}
		if h.expiry.IsZero() && pair.Leaf != nil {
			h.expiry = pair.Leaf.NotAfter
		}
	}
	if !h.expiry.IsZero() && time.Now().After(h.expiry) {
		return nil, fmt.Errorf("its credential ended at %s; log in again", h.expiry.UTC().Format(time.RFC3339))
	}
	return h, nil
}

// limited keeps the first bytes that are written to it.
type limited struct {
	bytes.Buffer
	most int
}

func (l *limited) Write(p []byte) (int, error) {
	if room := l.most - l.Len(); room > 0 {
		l.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// note is what a plugin said about its failure, for people.
func (l *limited) note() string {
	if text := strings.Join(strings.Fields(l.String()), " "); text != "" {
		return "; it says: " + text
	}
	return ""
}

// pluginAuth logs in with what a plugin hands out. A request that the API server
// refuses is sent once more, with another credential.
type pluginAuth struct {
	next   http.RoundTripper
	plugin *plugin
	forget func() // ends connections that were made with another certificate
}

func (a *pluginAuth) RoundTrip(req *http.Request) (*http.Response, error) {
	for again := false; ; again = true {
		h, err := a.plugin.get(req.Context())
		if err != nil {
			return nil, err
		}
		sent := req.Clone(req.Context())
		if h.token != "" {
			sent.Header.Set("Authorization", "Bearer "+h.token)
		}
		resp, err := a.next.RoundTrip(sent)
		if err != nil || resp.StatusCode != http.StatusUnauthorized || again || req.Body != nil && req.GetBody == nil {
			return resp, err
		}
		resp.Body.Close()
		a.plugin.refuse(h)
		a.forget()
		if req.GetBody != nil {
			if req.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
	}
}
