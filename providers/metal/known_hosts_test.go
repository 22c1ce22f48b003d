package metal

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

func signerOf(t *testing.T, kind string) ssh.Signer {
	t.Helper()
	var key any
	var err error
	if kind == "ecdsa" {
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	} else {
		_, key, err = ed25519.GenerateKey(rand.Reader)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func lineOf(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

func TestFromKnownHosts(t *testing.T) {
	a, b, c, authority, revoked := signerOf(t, "").PublicKey(), signerOf(t, "ecdsa").PublicKey(), signerOf(t, "").PublicKey(), signerOf(t, "").PublicKey(), signerOf(t, "").PublicKey()
	file := filepath.Join(t.TempDir(), "known hosts")
	lines := []string{
		"# comment",
		"plain.example,192.0.2.7 " + lineOf(a) + " comment",
		"[port.example]:2222 " + lineOf(b),
		knownhosts.HashHostname("hashed.example") + " " + lineOf(c),
		knownhosts.HashHostname("[hashed.example]:2200") + " " + lineOf(a),
		"two.example " + lineOf(b),
		"two.example " + lineOf(a),
		"@cert-authority *.ca.example " + lineOf(authority),
		"host.ca.example " + lineOf(c),
		"gone.example " + lineOf(revoked),
		"@revoked * " + lineOf(revoked),
		"*.wild.example,!not.wild.example " + lineOf(c),
		"2001:db8::7 " + lineOf(a),
	}
	if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		address string
		port    int
		want    ssh.PublicKey
		line    int
		err     string
	}{
		{"plain.example", 22, a, 2, ""},
		{"PLAIN.example", 22, a, 2, ""},
		{"192.0.2.7", 22, a, 2, ""},
		{"plain.example", 2222, nil, 0, "has no key of [plain.example]:2222"},
		{"port.example", 2222, b, 3, ""},
		{"port.example", 22, nil, 0, "has no key of port.example"},
		{"hashed.example", 22, c, 4, ""},
		{"hashed.example", 2200, a, 5, ""},
		{"two.example", 22, a, 7, ""},
		{"other.ca.example", 22, nil, 0, "authority"},
		{"host.ca.example", 22, c, 9, ""},
		{"gone.example", 22, nil, 0, "revoked"},
		{"x.wild.example", 22, c, 12, ""},
		{"not.wild.example", 22, nil, 0, "has no key"},
		{"2001:db8::7", 22, a, 13, ""},
		{"[2001:db8::7]", 22, a, 13, ""},
	} {
		got, err := fromKnownHosts(file, tt.address, tt.port)
		if tt.want == nil {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s %d: %v, %v; want an error with %q", tt.address, tt.port, got.source, err, tt.err)
			}
			continue
		}
		if err != nil || lineOf(got.key) != lineOf(tt.want) || got.source != fmt.Sprintf("%s:%d", file, tt.line) {
			t.Errorf("%s %d: %+v, %v", tt.address, tt.port, got, err)
		}
	}
	if _, err := fromKnownHosts(file+"x", "a", 22); err == nil {
		t.Error("a file that is not there is read")
	}
	os.WriteFile(file, []byte("plain.example ssh-ed25519 AAAA\n"), 0o600)
	if _, err := fromKnownHosts(file, "plain.example", 22); err == nil || !strings.Contains(err.Error(), ":1") {
		t.Errorf("a damaged line: %v", err)
	}
}

// shows is an SSH server that gets no further than its key.
func shows(t *testing.T, signers ...ssh.Signer) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				config := &ssh.ServerConfig{NoClientAuth: true}
				for _, s := range signers {
					config.AddHostKey(s)
				}
				if _, _, _, err := ssh.NewServerConn(conn, config); err == nil {
					t.Error("somebody logged in")
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return l.Addr().String()
}

func TestFromMachine(t *testing.T) {
	ctx := context.Background()
	ed, ec := signerOf(t, ""), signerOf(t, "ecdsa")
	ca := signerOf(t, "")
	certificate := &ssh.Certificate{Key: ed.PublicKey(), CertType: ssh.HostCert, ValidBefore: ssh.CertTimeInfinity}
	if err := certificate.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	certified, err := ssh.NewCertSigner(certificate, ed)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		signers []ssh.Signer
		want    ssh.PublicKey
	}{"one": {[]ssh.Signer{ec}, ec.PublicKey()}, "the better of two": {[]ssh.Signer{ec, ed}, ed.PublicKey()}, "a certificate is no key": {[]ssh.Signer{certified, ec}, ec.PublicKey()}} {
		address := shows(t, tt.signers...)
		dial := func(ctx context.Context) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		}
		got, err := fromMachine(ctx, dial, address)
		if err != nil || lineOf(got.key) != lineOf(tt.want) || got.source != "connection" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	// A machine that says nothing is given up.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(ctx)
	dial := func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "tcp", l.Addr().String())
		cancel()
		return conn, err
	}
	if _, err := fromMachine(ctx, dial, "x"); err == nil {
		t.Error("a machine that says nothing has shown a key")
	}
}
