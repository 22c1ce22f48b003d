package kubernetes

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// backdated is how far before the signing Kubernetes' signers let a
	// certificate begin, for clocks that are slow (kube-controller-manager's
	// signer, "Backdate").
	backdated = 5 * time.Minute
	// renewPause is how long after a renewal that failed the next one begins,
	// while there is a certificate still.
	renewPause = 10 * time.Second
)

// operator logs in on an API server behind SSH: with a certificate of one hour
// that the control plane signs. It is renewed before it expires, so that no
// request waits for it, and when the API server rejects it. Its age is measured
// by the monotonic clock: the wall clock of this computer may be wrong.
type operator struct {
	endpoint *endpoint
	closing  context.Context
	close    context.CancelFunc
	running  sync.WaitGroup

	mu       sync.Mutex
	held     *certified
	renewing *renewal
	failed   time.Time // when a renewal failed last
}

// certified is a certificate, with the connections that were made with it: a
// connection stays what it was when its certificate is renewed.
type certified struct {
	*tls.Certificate
	transport *http.Transport
	since     time.Time
	life      time.Duration
	refused   bool // the API server does not take it
}

// renewal is one under way.
type renewal struct {
	done chan struct{}
	err  error // once done
}

func newOperator(e *endpoint) *operator {
	o := &operator{endpoint: e}
	o.closing, o.close = context.WithCancel(context.Background())
	return o
}

// age is how much of the certificate's life has passed; from 1 it has ended.
func (c *certified) age() float64 { return float64(time.Since(c.since)) / float64(c.life) }

// login reads the administrator's credential, has a certificate of a new key
// signed with it, and drops it.
func (o *operator) login(ctx context.Context) (*tls.Certificate, error) {
	machine := o.endpoint.tunnel.Machine
	admin, err := o.endpoint.tunnel.administrator(ctx)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = &ControlPlaneError{machine, cause}
		}
		return nil, err
	}
	key, request, err := newRequest()
	if err != nil {
		return nil, &ControlPlaneError{machine, err}
	}
	transport, err := o.endpoint.transport(admin.certificate)
	if err != nil {
		return nil, err
	}
	defer transport.CloseIdleConnections()
	var through http.RoundTripper = transport
	if admin.token != "" {
		through = bearer{transport, admin.token}
	}
	config := &rest.Config{Host: o.endpoint.config.Host, UserAgent: o.endpoint.config.UserAgent, WarningHandler: rest.NoWarnings{}, QPS: -1}
	text, err := sign(ctx, config, &http.Client{Transport: through}, request)
	if err != nil {
		return nil, o.unsigned(ctx, err)
	}
	pair, err := pairOf(key, text)
	if err != nil {
		return nil, &ControlPlaneError{machine, err}
	}
	return pair, nil
}

// unsigned says why the API server did not do what its administrator asked for.
func (o *operator) unsigned(ctx context.Context, err error) error {
	if errors.Is(err, errNoSignature) {
		return &ControlPlaneError{o.endpoint.tunnel.Machine, err}
	}
	if cause := context.Cause(ctx); cause != nil {
		err = fmt.Errorf("%w (%w)", cause, err)
	}
	return &DialError{Name: o.endpoint.name, Endpoint: o.endpoint.config.Host, Err: err,
		credential: "the administrator's certificate in /etc/kubernetes/admin.conf of " + o.endpoint.tunnel.Machine, renew: "kubeadm certs renew admin.conf"}
}

// take makes a certificate the one that requests are sent with.
func (o *operator) take(pair *tls.Certificate) error {
	transport, err := o.endpoint.transport(pair)
	if err != nil {
		return err
	}
	life := pair.Leaf.NotAfter.Sub(pair.Leaf.NotBefore) - backdated
	next := &certified{Certificate: pair, transport: transport, since: time.Now(), life: max(min(life, certificateTime), time.Minute)}
	o.mu.Lock()
	old := o.held
	o.held, o.failed = next, time.Time{}
	o.mu.Unlock()
	if old != nil {
		old.transport.CloseIdleConnections() // those in use end by themselves
	}
	return nil
}

// ready is a certificate that is good. In the last quarter of its life it is
// renewed; requests wait for that at the very end alone.
func (o *operator) ready(ctx context.Context) (*certified, error) {
	o.mu.Lock()
	held := o.held
	if held != nil && !held.refused && held.age() < 0.75 {
		o.mu.Unlock()
		return held, nil
	}
	usable := held != nil && !held.refused && held.age() < 0.95
	if usable && time.Since(o.failed) < renewPause {
		o.mu.Unlock()
		return held, nil
	}
	r := o.renew()
	o.mu.Unlock()
	if usable {
		return held, nil
	}
	select {
	case <-r.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if r.err != nil {
		return nil, r.err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.held, nil
}

// renew begins a renewal, or finds the one under way. o.mu is held.
func (o *operator) renew() *renewal {
	if o.renewing != nil {
		return o.renewing
	}
	r := &renewal{done: make(chan struct{})}
	if r.err = o.closing.Err(); r.err != nil {
		close(r.done)
		return r
	}
	o.renewing = r
	o.running.Go(func() {
		ctx, cancel := context.WithTimeoutCause(o.closing, dialTime, errSlow)
		defer cancel()
		pair, err := o.login(ctx)
		if err == nil {
			err = o.take(pair)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		if err != nil {
			o.failed = time.Now()
		}
		o.renewing, r.err = nil, err
		close(r.done)
	})
	return r
}

// RoundTrip is that of http.RoundTripper. A certificate that the API server
// refuses is replaced once: this computer may have slept, or the authority may be
// another one since.
func (o *operator) RoundTrip(req *http.Request) (*http.Response, error) {
	for again := false; ; again = true {
		held, err := o.ready(req.Context())
		if err != nil {
			return nil, err
		}
		resp, err := held.transport.RoundTrip(req)
		if err != nil || resp.StatusCode != http.StatusUnauthorized || again || req.Body != nil && req.GetBody == nil {
			return resp, err
		}
		resp.Body.Close()
		o.mu.Lock()
		held.refused = true
		o.mu.Unlock()
		if req.GetBody != nil {
			body, err := req.GetBody()
			if err != nil {
				return nil, err
			}
			req = req.Clone(req.Context())
			req.Body = body
		}
	}
}

// end ends what is under way, and waits for it.
func (o *operator) end() {
	o.mu.Lock()
	o.close()
	o.mu.Unlock()
	o.running.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held != nil {
		o.held.transport.CloseIdleConnections()
	}
}

// bearer sends a token with each request.
type bearer struct {
	next  http.RoundTripper
	token string
}

func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(req)
}
