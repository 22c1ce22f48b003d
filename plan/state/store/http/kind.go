package http

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/plan/state"
	"github.com/stokehq/stoke/plan/state/backend"
	"github.com/stokehq/stoke/runtime/pattern"
)

// Kind is the backend "http".
func Kind() *backend.Kind {
	text := func(name, variable string) backend.Argument {
		return backend.Argument{Name: name, Type: cty.String, Environment: []string{variable}}
	}
	number := func(name, variable string) backend.Argument {
		return backend.Argument{Name: name, Type: cty.Number, Environment: []string{variable}}
	}
	k := &backend.Kind{Name: "http", Open: open, Arguments: []backend.Argument{
		text("address", "TF_HTTP_ADDRESS"),
		text("update_method", "TF_HTTP_UPDATE_METHOD"),
		text("lock_address", "TF_HTTP_LOCK_ADDRESS"),
		text("lock_method", "TF_HTTP_LOCK_METHOD"),
		text("unlock_address", "TF_HTTP_UNLOCK_ADDRESS"),
		text("unlock_method", "TF_HTTP_UNLOCK_METHOD"),
		text("username", "TF_HTTP_USERNAME"),
		text("password", "TF_HTTP_PASSWORD"),
		{Name: "skip_cert_verification", Type: cty.Bool},
		number("retry_max", "TF_HTTP_RETRY_MAX"),
		number("retry_wait_min", "TF_HTTP_RETRY_WAIT_MIN"),
		number("retry_wait_max", "TF_HTTP_RETRY_WAIT_MAX"),
		text("client_ca_certificate_pem", "TF_HTTP_CLIENT_CA_CERTIFICATE_PEM"),
		text("client_certificate_pem", "TF_HTTP_CLIENT_CERTIFICATE_PEM"),
		text("client_private_key_pem", "TF_HTTP_CLIENT_PRIVATE_KEY_PEM"),
	}}
	for i := range k.Arguments {
		switch a := &k.Arguments[i]; a.Name {
		case "address":
			a.Required = true
		case "password", "client_private_key_pem":
			a.Secret = true
		}
	}
	return k
}

// Backend keeps one state at one address. It is a backend.Backend.
type Backend struct {
	client *client
	config settings
}

// settings are where and how the protocol is spoken.
type settings struct {
	address, update          string
	lock, lockMethod         string // "" for no locks
	unlock, unlockMethod     string
	user, password, sentFrom string
}

func open(_ context.Context, c backend.Config) (backend.Backend, error) {
	or := func(text, other string) string {
		if text == "" {
			return other
		}
		return text
	}
	b := &Backend{config: settings{
		address: c.String("address"), update: or(c.String("update_method"), "POST"),
		lock: c.String("lock_address"), lockMethod: or(c.String("lock_method"), "LOCK"),
		unlock: c.String("unlock_address"), unlockMethod: or(c.String("unlock_method"), "UNLOCK"),
		user: c.String("username"), password: c.String("password"), sentFrom: c.Caller,
	}}
	for name, address := range map[string]string{"address": b.config.address, "lock_address": b.config.lock, "unlock_address": b.config.unlock} {
		if u, err := url.Parse(address); address != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "") {
			return nil, fmt.Errorf("%s must be a URL that begins with http:// or https://, and not %q", name, redacted(address))
		}
	}
	secure, err := secured(c)
	if err != nil {
		return nil, err
	}
	r := retryablehttp.NewClient()
	r.Logger = nil
	r.RetryMax = c.Int("retry_max", 2)
	r.RetryWaitMin = time.Duration(c.Int("retry_wait_min", 1)) * time.Second
	r.RetryWaitMax = time.Duration(c.Int("retry_wait_max", 30)) * time.Second
	if r.RetryMax < 0 || r.RetryWaitMin < 0 || r.RetryWaitMax < r.RetryWaitMin {
		return nil, errors.New("retry_max, retry_wait_min and retry_wait_max must not be negative, and the last not less than the one before")
	}
	r.ErrorHandler = retryablehttp.PassthroughErrorHandler
	if t, ok := r.HTTPClient.Transport.(*http.Transport); ok {
		t.TLSClientConfig = secure
	}
	b.client = &client{http: r, config: b.config}
	return b, nil
}

// redacted is a URL without its password, and without arguments that let
// somebody in, for messages.
func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "a text that is not a URL"
	}
	arguments := strings.Split(u.RawQuery, "&")
	for i, a := range arguments {
		if name, _, given := strings.Cut(a, "="); given && secretName.MatchString(name) {
			arguments[i] = name + "=xxxxx"
		}
	}
	u.RawQuery = strings.Join(arguments, "&")
	return u.Redacted()
}

// secretName is how arguments are called that let somebody in; none of them
// may say which state it is, because names of states are made of this.
var secretName = pattern.New(`(?i)token|secret|passw|signature|credential|api_?key|access_?key|^(sig|auth|jwt|pwd)$`)

// secured is how TLS is spoken.
func secured(c backend.Config) (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.Bool("skip_cert_verification", false)} //nolint:gosec // asked for
	if pem := c.String("client_ca_certificate_pem"); pem != "" {
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM([]byte(pem)) {
			return nil, errors.New("client_ca_certificate_pem holds no certificate")
		}
	}
	certificate, key := c.String("client_certificate_pem"), c.String("client_private_key_pem")
	if (certificate == "") != (key == "") {
		return nil, errors.New("client_certificate_pem and client_private_key_pem belong together")
	}
	if certificate != "" {
		pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
		if err != nil {
			return nil, fmt.Errorf("client_certificate_pem and client_private_key_pem: %w", err)
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

// Workspaces returns none: the protocol has no list of states.
func (b *Backend) Workspaces(context.Context) ([]string, error) {
	return nil, &backend.SingleStateError{Kind: "http"}
}

// Store is the state; there is one.
func (b *Backend) Store(workspace string) (state.Store, error) {
	if workspace != backend.DefaultWorkspace {
		return nil, &backend.SingleStateError{Kind: "http"}
	}
	return &Store{client: b.client, name: redacted(b.config.address)}, nil
}

// Add fails: there is one state.
func (b *Backend) Add(context.Context, string) (bool, error) {
	return false, &backend.SingleStateError{Kind: "http"}
}

// Remove fails: there is one state.
func (b *Backend) Remove(context.Context, string) error {
	return &backend.SingleStateError{Kind: "http"}
}

// Close closes idle connections.
func (b *Backend) Close() error {
	b.client.http.HTTPClient.CloseIdleConnections()
	return nil
}
