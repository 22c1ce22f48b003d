package ssh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// login connects to one machine, through another if via is not nil. The context
// and the limit cover all of it: a machine that accepts a connection and then
// says nothing is given up.
func login(ctx context.Context, via *Client, hop Hop, accept func(string) error, limit time.Duration, private *keys) (*ssh.Client, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%s: no answer for %s", hop.name(), limit.Round(time.Millisecond)))
	defer cancel()
	known, err := newKnown(hop, accept)
	if err != nil {
		return nil, err
	}
	methods, err := hop.Credential.methods(ctx, private)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", hop.name(), causeOf(ctx, err))
	}
	defer methods.close()
	conn, err := dial(ctx, via, hop)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	var said banner
	methods.said = &said
	config := &ssh.ClientConfig{
		User: hop.Credential.User, Auth: methods.auth, HostKeyCallback: known.check, HostKeyAlgorithms: known.algorithms(),
		ClientVersion: "SSH-2.0-stoke", BannerCallback: said.take, AuthCallback: methods.next,
	}
	c, channels, requests, err := ssh.NewClientConn(conn, hop.address(), config)
	if err != nil {
		conn.Close()
		return nil, loginError(ctx, hop, err, known.failed, methods, said)
	}
	if !stop() { // the limit struck just now
		c.Close()
		return nil, context.Cause(ctx)
	}
	return ssh.NewClient(c, channels, requests), nil
}

func dial(ctx context.Context, via *Client, hop Hop) (net.Conn, error) {
	if via != nil {
		conn, err := via.DialContext(ctx, "tcp", hop.address())
		if err != nil {
			return nil, causeOf(ctx, err)
		}
		return conn, nil
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", hop.address())
	var lookup *net.DNSError
	switch {
	case err == nil:
		return conn, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return nil, Permanent{fmt.Errorf("no such host: the name %q does not resolve here", hop.Address)}
	}
	return nil, fmt.Errorf("dial %s: %w", hop.address(), err)
}

// causeOf prefers why the context ended to what that broke.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// banner is the end of a server's text before a login: sometimes the reason why
// it refuses logins.
type banner struct {
	text     string
	messages int
}

func (b *banner) take(message string) error {
	const most = 2000
	b.messages++
	b.text += message
	b.text = b.text[max(0, len(b.text)-most):]
	return nil
}

func (b *banner) message() string {
	if text := strings.TrimSpace(printable(b.text)); text != "" {
		return "; the machine says:\n" + indent(lastLines([]byte(text), 5))
	}
	return ""
}

// loginError returns the cause of a failed handshake, and whether to try again. It
// recognises texts of the library and of OpenSSH.
func loginError(ctx context.Context, hop Hop, err, hostKey error, methods *methods, said banner) error {
	var negotiation *ssh.AlgorithmNegotiationError
	text := err.Error()
	switch {
	case hostKey != nil:
		return Permanent{hostKey}
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case methods.failed != nil:
		return Permanent{fmt.Errorf("log in on %s as %s: %w", hop.name(), hop.Credential.User, methods.failed)}
	case strings.Contains(text, "unable to authenticate"):
		return methods.notTaken(fmt.Errorf("%s does not let %s in: tried %s%s", hop.name(), hop.Credential.User, methods.describeOffered(), said.message()))
	case strings.Contains(text, "Too many authentication failures"), strings.Contains(text, "too many authentication"):
		return methods.notTaken(fmt.Errorf("%s does not let %s in: too many keys were tried before the right one (%s): name the key with private_key_file instead of the agent", hop.name(), hop.Credential.User, methods.describeOffered()))
	case errors.As(err, &negotiation) && strings.Contains(negotiation.What, "host key"):
		return Permanent{fmt.Errorf("%s has no host key of the kind in host_key; it offers %s", hop.name(), printable(strings.Join(negotiation.RequestedAlgorithms, ", ")))}
	case errors.As(err, &negotiation):
		return Permanent{fmt.Errorf("%s and stoke have no %s in common; it offers %s", hop.name(), negotiation.What, printable(strings.Join(negotiation.RequestedAlgorithms, ", ")))}
	}
	return fmt.Errorf("log in on %s: %s%s", hop.name(), printable(text), said.message())
}

// printable keeps what a machine says from moving the cursor of whoever reads
// it, and short.
func printable(s string) string {
	const most = 4000
	if len(s) > most {
		s = s[:most] + " …"
	}
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "�"))
}
