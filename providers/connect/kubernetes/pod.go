package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
)

// PodConn is a connection to a port of a pod, which the API server forwards.
type PodConn struct {
	stream httpstream.Stream
	conn   httpstream.Connection
	pod    string

	refused chan error // what the node says of the port; closed without a word where it is well
	once    sync.Once
	why     error
}

// DialPod connects to a port of a pod that runs. That nobody listens there is
// known only once something was sent: it is the error of Read then.
func (c *Client) DialPod(ctx context.Context, namespace, pod string, port int) (*PodConn, error) {
	fail := func(err error) (*PodConn, error) {
		return nil, fmt.Errorf("connect to port %d of pod %s/%s: %w", port, namespace, pod, err)
	}
	at := c.REST().Get().AbsPath("/api/v1/namespaces", namespace, "pods", pod, "portforward").URL()
	dialer, err := c.Tunnels(ctx, at)
	if err != nil {
		return fail(err)
	}
	conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return fail(Refusal(err))
	}
	headers := http.Header{}
	headers.Set(core.PortHeader, strconv.Itoa(port))
	headers.Set(core.PortForwardRequestIDHeader, "0")
	headers.Set(core.StreamType, core.StreamTypeError)
	complaints, err := conn.CreateStream(headers)
	if err != nil {
		conn.Close()
		return fail(err)
	}
	complaints.Close() // nothing is written to it
	headers.Set(core.StreamType, core.StreamTypeData)
	stream, err := conn.CreateStream(headers)
	if err != nil {
		conn.Close()
		return fail(err)
	}
	p := &PodConn{stream: stream, conn: conn, pod: namespace + "/" + pod, refused: make(chan error, 1)}
	go func() { // ends with the connection
		text, err := io.ReadAll(io.LimitReader(complaints, 4<<10))
		if len(text) > 0 && err == nil {
			p.refused <- errors.New(strings.TrimSpace(string(text)))
			conn.Close()
		}
		close(p.refused)
	}()
	return p, nil
}

// Read gives what the pod sends; where its node refused the port, that is the
// error.
func (p *PodConn) Read(b []byte) (int, error) {
	n, err := p.stream.Read(b)
	return n, p.explain(err)
}

// Write sends to the pod.
func (p *PodConn) Write(b []byte) (int, error) {
	n, err := p.stream.Write(b)
	return n, p.explain(err)
}

// explain gives the node's reason in place of a connection that just ended.
func (p *PodConn) explain(err error) error {
	if err == nil {
		return nil
	}
	p.once.Do(func() {
		select {
		case p.why = <-p.refused:
		case <-time.After(time.Second): // the reason arrives on another stream than the end
		}
	})
	if p.why != nil {
		return p.why
	}
	return err
}

// Close ends the connection.
func (p *PodConn) Close() error { return p.conn.Close() }

// LocalAddr and RemoteAddr name the pod: there is no address of either end.
func (p *PodConn) LocalAddr() net.Addr  { return podAddress("stoke") }
func (p *PodConn) RemoteAddr() net.Addr { return podAddress(p.pod) }

// Deadlines are not kept: whoever needs one closes the connection.
func (p *PodConn) SetDeadline(time.Time) error      { return nil }
func (p *PodConn) SetReadDeadline(time.Time) error  { return nil }
func (p *PodConn) SetWriteDeadline(time.Time) error { return nil }

type podAddress string

func (podAddress) Network() string  { return "pod" }
func (a podAddress) String() string { return string(a) }
