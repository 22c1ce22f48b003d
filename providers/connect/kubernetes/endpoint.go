package kubernetes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"k8s.io/apimachinery/pkg/runtime"
	clientauthentication "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/stokehq/stoke/providers/connect"
)

// endpoint is where to go and how to log in.
type endpoint struct {
	name       string
	config     *rest.Config       // without Exec: plugin stands for it
	plugin     *plugin            // hands out the credential; nil: there is none
	tokens     oauth2.TokenSource // nil: there is none
	tunnel     *Tunnel            // the way there; nil: directly
	credential string             // what messages call it
	warned     func(context.Context, string)
}

// NoCredentialError says why a credential could not be had.
type NoCredentialError struct {
	From string // the kubeconfig, the plugin, the file
	Err  error
}

func (e *NoCredentialError) Error() string { return fmt.Sprintf("%s: %v", e.From, e.Err) }
func (e *NoCredentialError) Unwrap() error { return e.Err }

// resolve reads the files that a connection names, and finds the way there among
// machines. It dials nothing.
func resolve(c connect.Connection, w way) (*endpoint, error) {
	e := &endpoint{name: c.Endpoint, config: &rest.Config{Host: c.Endpoint}, warned: w.warned}
	var err error
	switch k := c.Credential; {
	case k.Kubeconfig != nil:
		err = e.kubeconfig(*k.Kubeconfig)
	case k.Exec != nil:
		e.credential = "the credential plugin " + k.Exec.Command
		e.plugin = newPlugin(&clientcmdapi.ExecConfig{
			Command: k.Exec.Command, Args: k.Exec.Args, APIVersion: k.Exec.APIVersion, InteractiveMode: clientcmdapi.NeverExecInteractiveMode,
		})
	case k.Google != nil:
		err = e.google(*k.Google)
	case k.Certificate != nil:
		e.credential = "the client certificate " + k.Certificate.CertificateFile
		err = e.certificate(*k.Certificate)
	case k.TokenFile != nil:
		e.credential = "the token in " + k.TokenFile.Path
		if e.config.BearerTokenFile, err = connect.ExpandHome(k.TokenFile.Path); err == nil {
			_, err = readToken(e.config.BearerTokenFile)
		}
	case k.InCluster != nil:
		e.credential = "the pod's service account"
		var in *rest.Config
		if in, err = rest.InClusterConfig(); err == nil {
			e.config = in
		} else if errors.Is(err, rest.ErrNotInCluster) {
			err = errors.New("this is not a pod of a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
		}
	case k.SSH != nil:
		if c.Endpoint == "" {
			return nil, &NoCredentialError{"credential.ssh", errors.New("give endpoint, the URL of the API server as the control plane knows it")}
		}
		e.credential = "the certificate that " + k.SSH.Address + " signed"
		if e.tunnel, err = tunnelIn(w.machines, w.settings, *k.SSH); err != nil {
			return nil, err
		}
		e.config.Dial = e.tunnel.DialContext
	default:
		return nil, &NoCredentialError{"credential", errors.New("none is given")}
	}
	if err != nil {
		return nil, &NoCredentialError{e.configure(c), err}
	}
	if c.Endpoint != "" {
		e.config.Host = c.Endpoint
	}
	if c.CA != "" {
		e.config.CAData, e.config.CAFile = []byte(c.CA), ""
	}
	if e.name == "" {
		e.name = e.config.Host
	}
	return e, nil
}

func (e *endpoint) configure(c connect.Connection) string {
	if k := c.Credential.Kubeconfig; k != nil {
		return k.Path
	}
	return e.credential
}

// kubeconfig takes the cluster and the user of a context.
func (e *endpoint) kubeconfig(k connect.Kubeconfig) error {
	path, err := connect.ExpandHome(k.Path)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	loaded, err := clientcmd.Load(text)
	if err != nil {
		return errors.New("it is no kubeconfig") // the parser's error may quote what is secret
	}
	if err := clientcmd.ResolveLocalPaths(withOrigin(loaded, path)); err != nil {
		return err
	}
	name := k.Context
	if name == "" {
		name = loaded.CurrentContext
	}
	context := loaded.Contexts[name]
	switch {
	case name == "":
		return errors.New("it has no current context: name one, as context")
	case context == nil:
		return fmt.Errorf("it has no context %q; it has %s", name, names(loaded.Contexts))
	case loaded.Clusters[context.Cluster] == nil:
		return fmt.Errorf("its context %q names the cluster %q, which is not there", name, context.Cluster)
	case context.AuthInfo != "" && loaded.AuthInfos[context.AuthInfo] == nil:
		return fmt.Errorf("its context %q names the user %q, who is not there", name, context.AuthInfo)
	}
	if user := loaded.AuthInfos[context.AuthInfo]; user != nil && user.Exec != nil {
		e.plugin, user.Exec = newPlugin(user.Exec), nil
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*loaded, name, nil, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("context %q: %w", name, err)
	}
	e.config, e.name, e.credential = config, name, fmt.Sprintf("the user of the context %s in %s", name, k.Path)
	if e.plugin != nil && e.plugin.config.ProvideClusterInfo {
		e.plugin.cluster, err = pluginCluster(config, loaded.Clusters[context.Cluster])
	}
	return err
}

// pluginCluster returns the description of a cluster for credential plugins.
func pluginCluster(config *rest.Config, of *clientcmdapi.Cluster) (*clientauthentication.Cluster, error) {
	config = rest.CopyConfig(config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, err
	}
	c := &clientauthentication.Cluster{
		Server: config.Host, TLSServerName: config.ServerName, InsecureSkipTLSVerify: config.Insecure,
		CertificateAuthorityData: config.CAData,
		ProxyURL:                 of.ProxyURL, DisableCompression: of.DisableCompression,
	}
	if more := of.Extensions["client.authentication.k8s.io/exec"]; more != nil {
		text, err := json.Marshal(more)
		if err != nil {
			return nil, err
		}
		c.Config = runtime.RawExtension{Raw: text}
	}
	return c, nil
}

// withOrigin says where the configuration was read, for paths that are relative
// to it.
func withOrigin(c *clientcmdapi.Config, path string) *clientcmdapi.Config {
	for _, cluster := range c.Clusters {
		cluster.LocationOfOrigin = path
	}
	for _, user := range c.AuthInfos {
		user.LocationOfOrigin = path
	}
	return c
}

func (e *endpoint) certificate(k connect.Certificate) error {
	var err error
	if e.config.CertFile, err = connect.ExpandHome(k.CertificateFile); err != nil {
		return err
	}
	if e.config.KeyFile, err = connect.ExpandHome(k.KeyFile); err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(e.config.CertFile, e.config.KeyFile)
	if err != nil {
		return err
	}
	if leaf := pair.Leaf; leaf != nil && time.Now().After(leaf.NotAfter) {
		return fmt.Errorf("it ended on %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// readToken reads a token, so that a file without one is told before dialling.
func readToken(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(text))
	if token == "" {
		return "", errors.New("the file is empty")
	}
	if strings.ContainsAny(token, " \n\t") {
		return "", errors.New("the file holds more than one word, which is not a token")
	}
	return token, nil
}

// transport makes connections to the API server, with a client certificate where
// one is given.
func (e *endpoint) transport(certificate *tls.Certificate) (*http.Transport, error) {
	if ca := e.config.CAData; len(ca) > 0 && !x509.NewCertPool().AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s: %w", e.name, errAuthority)
	}
	tlsConfig, err := rest.TLSConfigFor(e.config)
	if err != nil {
		return nil, &NoCredentialError{e.credential, err}
	}
	if tlsConfig == nil {
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if e.plugin != nil {
		tlsConfig.GetClientCertificate = e.plugin.certificate
	}
	if certificate != nil {
		tlsConfig.Certificates = []tls.Certificate{*certificate}
	}
	proxy := e.config.Proxy
	if proxy == nil && e.tunnel == nil { // what comes out of a tunnel is beyond this computer's proxies
		proxy = http.ProxyFromEnvironment
	}
	transport := &http.Transport{
		Proxy: proxy, TLSClientConfig: tlsConfig, TLSHandshakeTimeout: 2 * dialTime, IdleConnTimeout: 90 * time.Second,
		MaxIdleConnsPerHost: 32, ForceAttemptHTTP2: true,
		DialContext: dialer,
		// Pings find peers that vanished without closing: their connections
		// would be used for a quarter of an hour.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
	}
	if e.config.Dial != nil {
		transport.DialContext = e.config.Dial
	}
	return transport, nil
}

// roundTripper is what requests go through, with the credential; end ends it.
func (e *endpoint) roundTripper() (through http.RoundTripper, end func(), err error) {
	if e.tunnel != nil {
		o := newOperator(e)
		return o, o.end, nil
	}
	config, err := e.config.TransportConfig()
	if err != nil {
		return nil, nil, err
	}
	transport, err := e.transport(nil)
	if err != nil {
		return nil, nil, err
	}
	if through, err = wrapped(config, transport); err != nil {
		return nil, nil, err
	}
	if e.plugin != nil {
		through = &pluginAuth{next: through, plugin: e.plugin, forget: transport.CloseIdleConnections}
	}
	if e.tokens != nil {
		through = &oauth2.Transport{Source: e.tokens, Base: through}
	}
	return through, transport.CloseIdleConnections, nil
}
