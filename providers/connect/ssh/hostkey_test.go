package ssh

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/stokehq/stoke/providers/connect/ssh/sshtest"
)

// hostKeys makes a key of each kind.
func hostKeys(t *testing.T) map[string]ssh.Signer {
	t.Helper()
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	long, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	keys := map[string]ssh.Signer{}
	for name, key := range map[string]any{"ecdsa": ec, "rsa": long} {
		if keys[name], err = ssh.NewSignerFromKey(key); err != nil {
			t.Fatal(err)
		}
	}
	keys["ed25519"], _ = sshtest.NewKey(t)
	return keys
}

// TestHostKey covers unknown, changed and matching keys of target and bastion.
func TestHostKey(t *testing.T) {
	bastion, m := serverWith(t, sshtest.Config{}), serverWith(t, sshtest.Config{})
	other, _ := sshtest.NewKey(t)
	wrong := sshtest.Line(other.PublicKey())
	var accepted string
	accept := func(key string) error { accepted = key; return nil }
	with := func(s *sshtest.Server, key string) Hop { h := hop(s, byPassword); h.HostKey = key; return h }
	target, first := hop(m, byPassword), hop(bastion, byPassword)
	for _, c := range []struct {
		name   string
		target Target
		want   string
	}{
		{"matching", Target{Hop: target, Hops: []Hop{first}}, ""},
		{"one of two", Target{Hop: with(m, wrong+"\n"+m.HostKey()+" comment\n")}, ""},
		{"unknown", Target{Hop: with(m, "")}, "no host key is known"},
		{"changed", Target{Hop: with(m, wrong)}, "instead of " + ssh.FingerprintSHA256(other.PublicKey())},
		{"malformed", Target{Hop: with(m, "SHA256:x")}, "is not a line such as"},
		{"accepted", Target{Hop: with(m, ""), AcceptNew: accept}, ""},
		{"refused", Target{Hop: with(m, ""), AcceptNew: func(string) error { return errors.New("not today") }}, "not today"},
		{"changed, though new ones are accepted", Target{Hop: with(m, wrong), AcceptNew: accept}, "shows the host key"},
		{"bastion unknown", Target{Hop: target, Hops: []Hop{with(bastion, "")}, AcceptNew: accept}, "no host key is known"},
		{"bastion changed", Target{Hop: target, Hops: []Hop{with(bastion, wrong)}}, "shows the host key"},
		{"jump host changed", Target{Hop: target, Hops: []Hop{{Address: first.Address, Port: first.Port, HostKey: wrong, KeyFrom: "~/.ssh/known_hosts", Credential: first.Credential}}}, "in ~/.ssh/known_hosts"},
		{"second bastion changed", Target{Hop: target, Hops: []Hop{first, with(bastion, wrong)}}, "shows the host key"},
		{"target changed behind a bastion", Target{Hop: with(m, wrong), Hops: []Hop{first}}, "shows the host key"},
		{"two bastions", Target{Hop: target, Hops: []Hop{first, hop(m, byPassword)}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, err := Dial(t.Context(), c.target, Timeouts{})
			client.Close()
			tell(t, err, c.want)
			var key *HostKeyError
			if c.want == "shows the host key" && (!errors.As(err, &key) || key.Got != m.HostKey() && key.Got != bastion.HostKey()) {
				t.Errorf("%#v", err)
			}
		})
	}
	if accepted != m.HostKey() {
		t.Errorf("accepted %q", accepted)
	}
}

// A server that has several keys shows the one that is known.
func TestHostKeyKinds(t *testing.T) {
	keys := hostKeys(t)
	all := serverWith(t, sshtest.Config{HostKeys: []ssh.Signer{keys["ed25519"], keys["rsa"], keys["ecdsa"]}})
	one := serverWith(t, sshtest.Config{HostKeys: []ssh.Signer{keys["rsa"]}})
	for name, key := range keys {
		h := hop(all, byPassword)
		h.HostKey = sshtest.Line(key.PublicKey())
		client, err := Dial(t.Context(), Target{Hop: h}, Timeouts{})
		client.Close()
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	h := hop(one, byPassword)
	h.HostKey = sshtest.Line(keys["ed25519"].PublicKey())
	_, err := Dial(t.Context(), Target{Hop: h}, Timeouts{})
	tell(t, err, "has no host key of the kind in host_key; it offers")
}

// TestHostCertificate trusts whoever signs host keys.
func TestHostCertificate(t *testing.T) {
	by, _ := sshtest.NewKey(t)
	stranger, _ := sshtest.NewKey(t)
	key, _ := sshtest.NewKey(t)
	server := func(name string, by ssh.Signer, edit ...func(*ssh.Certificate)) *sshtest.Server {
		signer, err := ssh.NewCertSigner(sshtest.Certify(t, by, key.PublicKey(), ssh.HostCert, name, edit...), key)
		if err != nil {
			t.Fatal(err)
		}
		return serverWith(t, sshtest.Config{HostKeys: []ssh.Signer{signer}})
	}
	for _, c := range []struct {
		name string
		s    *sshtest.Server
		want string
	}{
		{"signed", server("127.0.0.1", by), ""},
		{"for another host", server("10.0.0.1", by), "host certificate that does not hold"},
		{"by somebody else", server("127.0.0.1", stranger), "host certificate that does not hold"},
		{"expired", server("127.0.0.1", by, func(c *ssh.Certificate) { c.ValidBefore = 1 }), "expired"},
		{"for a user", server("127.0.0.1", by, func(c *ssh.Certificate) { c.CertType = ssh.UserCert }), "host certificate that does not hold"},
		{"no certificate", serverWith(t, sshtest.Config{HostKeys: []ssh.Signer{key}}), "has no host key of the kind"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := hop(c.s, byPassword)
			h.HostKey = authority + sshtest.Line(by.PublicKey())
			client, err := Dial(t.Context(), Target{Hop: h}, Timeouts{})
			client.Close()
			tell(t, err, c.want)
		})
	}
}
