package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/providers/connect/kubernetes"
)

func proxyCommand(s *session) *cobra.Command {
	var path string
	var port int
	cmd := &cobra.Command{
		Use:   "proxy [options] ADDRESS",
		Short: "Forward a local port to a cluster behind SSH",
		Long: `Listens on this computer, so that kubectl and other programs reach, through SSH,
the API server of the cluster that the object at ADDRESS is or belongs to. The
kubeconfig that "stoke kubeconfig ADDRESS" prints names this address. The proxy
reaches only that API server and hands out no credentials. Ctrl-C ends it.`,
		Args: exactArgs(1, "the ADDRESS of a cluster behind SSH, or of an object in one"),
	}
	cmd.Flags().IntVar(&port, "port", 0, "Listen at `PORT`. By default the port that the kubeconfig names, which is the same each time.")
	cmd.Flags().StringVar(&path, "state", "", "Read `FILE` in place of terraform.tfstate.")
	s.addNoColor(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := checkPort(cmd, port); err != nil {
			return err
		}
		s.looking.Store(true)
		ctx, done := s.signals.untilStopped(cmd.Context())
		defer done()
		c, err := s.cluster(ctx, path, args[0])
		if err != nil {
			return err
		}
		if c.Credential.SSH == nil {
			s.complainOnStderr(problem("No proxy needed", "The cluster of %s is reached directly: use what \"stoke kubeconfig '%s'\" prints.", c.address, c.address))
			return failed
		}
		return s.unreached(s.serveProxy(ctx, c, port))
	}
	return cmd
}

// checkPort refuses what is no port; 0 is none given.
func checkPort(cmd *cobra.Command, port int) error {
	if port < 0 || port > 65535 {
		return &usageError{path: cmd.CommandPath(), err: errors.New("-port must be between 1 and 65535")}
	}
	return nil
}

const (
	// Ports of proxies: below those that systems hand out themselves (from 32768
	// on Linux, 49152 elsewhere), and below Kubernetes' node ports (30000).
	firstProxyPort, proxyPorts = 20000, 10000
	// proxyGrace is how long connections may take to end.
	proxyGrace = 2 * time.Second
)

// proxyAddress is where the proxy of a cluster listens: at the same port each
// time, for all objects in it.
func proxyAddress(c *cluster, port int) string {
	if port == 0 {
		h := fnv.New32a()
		fmt.Fprintf(h, "%s %s %d", c.Endpoint, c.Credential.SSH.Address, c.Credential.SSH.Port)
		port = firstProxyPort + int(h.Sum32()%proxyPorts)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// serveProxy serves until the context ends.
func (s *session) serveProxy(ctx context.Context, c *cluster, port int) error {
	tunnel, err := kubernetes.NewTunnel(c.ssh, *c.Credential.SSH)
	if err != nil {
		return err
	}
	defer tunnel.Close()
	p := &proxy{tunnel: tunnel, to: hostPort(c.Endpoint), failed: func(err error) {
		summary, detail := kubernetes.Describe(err)
		s.complainOnStderr(problem(summary, "%s", detail))
	}}
	// What would go wrong later is better told now.
	conn, err := tunnel.DialContext(ctx, "tcp", p.to)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	conn.Close()
	at := proxyAddress(c, port)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	if err != nil {
		s.complainOnStderr(problem("Port cannot be listened at", "%s: another \"stoke proxy\" for this cluster may serve it already. Otherwise give another one by -port, here and to stoke kubeconfig.", asSentence(err.Error())))
		return failed
	}
	s.printf("Listening at http://%s for %s, over SSH to %s. Ctrl-C ends it.\n", at, c.Endpoint, tunnel.Machine)
	return p.serve(ctx, listener)
}

// hostPort is the part of an endpoint that is dialled.
func hostPort(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return endpoint
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// proxy opens connections to one address for whoever asks by the method CONNECT.
type proxy struct {
	tunnel *kubernetes.Tunnel
	to     string // HOST:PORT
	failed func(error)
	mu     sync.Mutex // for failed
	ending context.Context
	open   sync.WaitGroup
}

// serve serves until the context ends, and ends all connections then.
func (p *proxy) serve(ctx context.Context, listener net.Listener) error {
	ending, end := context.WithCancel(ctx)
	p.ending = ending
	server := &http.Server{Handler: p, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	var err error
	select {
	case <-ctx.Done():
	case err = <-served:
	}
	end()
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), proxyGrace)
	defer cancel()
	if server.Shutdown(grace) != nil {
		server.Close()
	}
	p.open.Wait()
	return err
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.open.Add(1)
	defer p.open.Done()
	switch {
	case r.Method != http.MethodConnect:
		http.Error(w, "stoke: this is a proxy, for the method CONNECT", http.StatusMethodNotAllowed)
		return
	case r.Host != p.to:
		http.Error(w, "stoke: this proxy only reaches "+p.to, http.StatusForbidden)
		return
	}
	there, err := p.tunnel.DialContext(p.ending, "tcp", p.to)
	if err != nil {
		if p.ending.Err() == nil {
			p.mu.Lock()
			p.failed(err)
			p.mu.Unlock()
		}
		http.Error(w, "stoke: "+err.Error(), http.StatusBadGateway)
		return
	}
	defer there.Close()
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, "stoke: HTTP/1.1 is needed", http.StatusHTTPVersionNotSupported)
		return
	}
	here, buffered, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	if _, err := io.WriteString(here, "HTTP/1.1 200 Connection established\r\n\r\n"); err == nil {
		p.join(here, buffered, there)
	}
}

// join copies both ways until one of them ends, or the proxy does.
func (p *proxy) join(here net.Conn, from io.Reader, there net.Conn) {
	ended := make(chan struct{}, 2)
	copies := func(to io.Writer, from io.Reader) {
		_, _ = io.Copy(to, from) // TLS notices what is cut off
		ended <- struct{}{}
	}
	go copies(there, from)
	go copies(here, there)
	left := 2
	select {
	case <-ended:
		left--
	case <-p.ending.Done():
	}
	here.Close()
	there.Close()
	for range left {
		<-ended
	}
}
