package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
	httpspdy "k8s.io/streaming/pkg/httpstream/spdy"
)

// pings keep a stream open that says nothing, and find peers that are gone.
const pings = 5 * time.Second

// REST is for requests that are not about whole objects, such as logs.
func (c *Client) REST() rest.Interface { return c.rest }

// Executor runs a command by a POST to a pod's subresource exec, whose URL at
// is. It is good for one call. WebSocket is tried first, and SPDY where the
// API server, or a proxy before it, does not know that.
func (c *Client) Executor(ctx context.Context, at *url.URL) (remotecommand.Executor, error) {
	config, err := c.upgradable(ctx)
	if err != nil {
		return nil, err
	}
	wrapped, upgrader, err := c.spdy(ctx, config)
	if err != nil {
		return nil, err
	}
	old, err := remotecommand.NewSPDYExecutorForTransports(wrapped, toTheEnd{upgrader}, http.MethodPost, at)
	if err != nil || config.Dial != nil {
		return old, err
	}
	socket, err := remotecommand.NewWebSocketExecutor(config, http.MethodGet, at.String())
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(socket, old, notUpgraded)
}

// Tunnels dials a pod's subresource portforward, whose URL at is, in the same
// ways as Executor, until ctx is done.
func (c *Client) Tunnels(ctx context.Context, at *url.URL) (httpstream.Dialer, error) {
	config, err := c.upgradable(ctx)
	if err != nil {
		return nil, err
	}
	wrapped, upgrader, err := c.spdy(ctx, config)
	if err != nil {
		return nil, err
	}
	old := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: wrapped}, http.MethodPost, at)
	if config.Dial != nil {
		return hearing{ctx, old}, nil
	}
	socket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(at, config)
	if err != nil {
		return nil, err
	}
	return hearing{ctx, portforward.NewFallbackDialerForStreaming(socket, old, notUpgraded)}, nil
}

// hearing is a dialer that gives up once ctx is done; client-go's have no ctx.
type hearing struct {
	ctx context.Context
	httpstream.Dialer
}

// Dial opens a connection. If the context ends first, a later connection is
// closed.
func (h hearing) Dial(protocols ...string) (httpstream.Connection, string, error) {
	type opened struct {
		conn     httpstream.Connection
		protocol string
		err      error
	}
	done := make(chan opened, 1)
	go func() {
		conn, protocol, err := h.Dialer.Dial(protocols...)
		done <- opened{conn, protocol, err}
	}()
	select {
	case o := <-done:
		return o.conn, o.protocol, o.err
	case <-h.ctx.Done():
	}
	go func() {
		if o := <-done; o.err == nil {
			o.conn.Close()
		}
	}()
	return nil, "", context.Cause(h.ctx)
}

// notUpgraded reports whether a connection did not become a WebSocket, for a
// reason that SPDY might avoid.
func notUpgraded(err error) bool {
	cause := Refusal(err)
	if apierrors.IsForbidden(cause) || apierrors.IsUnauthorized(cause) || apierrors.IsNotFound(cause) {
		return false
	}
	return cause != err || httpstream.IsHTTPSProxyError(err)
}

// Refusal is what a server answered in place of upgrading a connection; any
// other error is given back as it is. client-go's type of it cannot be
// unwrapped.
func Refusal(err error) error {
	var refused *httpstream.UpgradeFailureError
	if errors.As(err, &refused) && refused.Cause != nil {
		return refused.Cause
	}
	return err
}

// upgradable is the configuration of a connection that is upgraded, with the
// credential as it is now: such a connection logs in once.
func (c *Client) upgradable(ctx context.Context) (*rest.Config, error) {
	config := rest.CopyConfig(c.endpoint.config)
	config.UserAgent, config.NextProtos = "stoke", nil
	if p := c.endpoint.plugin; p != nil {
		h, err := p.get(ctx)
		if err != nil {
			return nil, err
		}
		if h.token != "" {
			config.BearerToken, config.BearerTokenFile = h.token, ""
		}
		if h.cert != nil {
			config.CertData, config.KeyData = h.pem[0], h.pem[1]
			config.CertFile, config.KeyFile = "", ""
		}
	}
	if c.endpoint.tokens != nil {
		token, err := c.endpoint.tokens.Token()
		if err != nil {
			return nil, &NoCredentialError{c.endpoint.credential, err}
		}
		config.BearerToken, config.BearerTokenFile = token.AccessToken, ""
	}
	return config, nil
}

// spdy is what upgrades to SPDY. An endpoint with a way of its own, such as
// through SSH, is dialled by a transport; client-go's WebSocket does not support
// that, so that only SPDY is used there. Nothing is in between then that could
// be in its way.
func (c *Client) spdy(ctx context.Context, config *rest.Config) (http.RoundTripper, spdy.Upgrader, error) {
	if config.Dial == nil {
		return spdy.RoundTripperFor(config)
	}
	transport, err := c.dialling(ctx)
	if err != nil {
		return nil, nil, err
	}
	upgrader, err := httpspdy.NewRoundTripperWithConfig(httpspdy.RoundTripperConfig{UpgradeTransport: transport, PingPeriod: pings})
	if err != nil {
		return nil, nil, err
	}
	wrapped, err := rest.HTTPWrappersForConfig(config, upgrader)
	return wrapped, spdy.NewUpgraderForStreaming(upgrader), err
}

// dialling is a transport whose connections can be upgraded, which those of
// HTTP/2 cannot.
func (c *Client) dialling(ctx context.Context) (transport *http.Transport, err error) {
	if c.operator == nil {
		return c.endpoint.transport(nil)
	}
	held, err := c.operator.ready(ctx)
	if err != nil {
		return nil, err
	}
	return c.endpoint.transport(held.Certificate)
}
