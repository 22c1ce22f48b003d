package ssh

import (
	"errors"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/stokehq/stoke/providers/connect/ssh/sshtest"
)

// hop leads to a server; the user is the one that it knows unless the
// credential says otherwise.
func hop(s *sshtest.Server, c Credential) Hop {
	host, port := s.Address()
	if c.User == "" {
		c.User = sshtest.User
	}
	return Hop{Address: host, Port: port, HostKey: s.HostKey(), Credential: c}
}

const password = "secret-9f31"

var byPassword = Credential{Password: password}

// serverWith is a server that lets the user in with a password.
func serverWith(t testing.TB, c sshtest.Config) *sshtest.Server {
	if c.Password == "" {
		c.Password = password
	}
	return sshtest.New(t, c)
}

func dialled(t testing.TB, target Target) *Client {
	t.Helper()
	c, err := Dial(t.Context(), target, Timeouts{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// tell checks that an error says something (one thing…and another), or that
// there is none, and that it counts as permanent.
func tell(t *testing.T, err error, want string) {
	t.Helper()
	for part := range strings.SplitSeq(want, "…") {
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), part) {
			t.Fatalf("got %v, want %q", err, want)
		}
	}
	switch {
	case err != nil && !IsPermanent(err):
		t.Errorf("%v does not count as permanent", err)
	case err != nil && (strings.Contains(err.Error(), password) || strings.Contains(err.Error(), "PRIVATE KEY")):
		t.Errorf("%v tells a secret", err)
	}
}

// TestLogin tries every way to log in, and every way to be refused.
func TestLogin(t *testing.T) {
	signer, private := sshtest.NewKey(t)
	strange, stranger := sshtest.NewKey(t)
	s := sshtest.New(t, sshtest.Config{Authorized: []ssh.PublicKey{signer.PublicKey()}, Password: password})
	folder := t.TempDir()
	file := func(name, content string) string {
		name = filepath.Join(folder, name)
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	locked, plain := file("locked", sshtest.PEM(t, private, "pass")), file("plain", sshtest.PEM(t, private, ""))
	other := file("other", sshtest.PEM(t, stranger, ""))
	exposed := func(mode os.FileMode) string {
		name := file("exposed", sshtest.PEM(t, private, ""))
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		return name
	}
	large := file("large", strings.Repeat("x", maxKey+1))
	for _, c := range []struct {
		name string
		c    Credential
		want string // part of the error; "" for none
	}{
		{"key", Credential{PrivateKey: sshtest.PEM(t, private, "")}, ""},
		{"encrypted key", Credential{PrivateKeyFile: locked, Passphrase: "pass"}, ""},
		{"encrypted key without passphrase", Credential{PrivateKeyFile: locked}, "is encrypted: give its passphrase"},
		{"encrypted key, wrong passphrase", Credential{PrivateKeyFile: locked, Passphrase: "x"}, "the passphrase of " + locked + " is wrong"},
		{"plain key with a passphrase", Credential{PrivateKeyFile: plain, Passphrase: "x"}, ""},
		{"password", byPassword, ""},
		{"wrong password", Credential{Password: "x"}, "does not let ops in: tried a password"},
		{"wrong user", Credential{User: "root", Password: password}, "does not let root in"},
		{"stranger's key", Credential{PrivateKeyFile: other}, "does not let ops in: tried ssh-ed25519 " + ssh.FingerprintSHA256(strange.PublicKey())},
		{"key of somebody else, then password", Credential{PrivateKeyFile: other, Password: password}, ""},
		{"several, some of no use", Credential{IdentityFiles: []string{"/nowhere", locked, large, other, plain}}, ""},
		{"several, all of no use", Credential{IdentityFiles: []string{locked, "/nowhere"}}, "none of the private keys can be used: " + locked + " is encrypted"},
		{"several, one that others may read", Credential{IdentityFiles: []string{exposed(0o644), plain}}, ""},
		{"several, the right one may be read by others", Credential{IdentityFiles: []string{exposed(0o644), other}}, "does not let ops in…passed over " + filepath.Join(folder, "exposed") + "…chmod 600"},
		{"nothing", Credential{}, "no private key, no password and no agent"},
		{"line ends of Windows", Credential{PrivateKeyFile: file("crlf", strings.ReplaceAll(sshtest.PEM(t, private, ""), "\n", "\r\n"))}, ""},
		{"public key", Credential{PrivateKeyFile: file("id.pub", sshtest.Line(signer.PublicKey())+" me@here\n")}, "id.pub is not a private key that OpenSSH or PEM knows: it is the public key"},
		{"PuTTY's key", Credential{PrivateKeyFile: file("id.ppk", "PuTTY-User-Key-File-3: ssh-ed25519\r\nEncryption: none\r\n")}, "puttygen KEY.ppk"},
		{"certificate as key", Credential{PrivateKeyFile: file("cert", sshtest.Line(sshtest.Certify(t, signer, signer.PublicKey(), ssh.UserCert, "ops")))}, "certificate_file"},
		{"empty file", Credential{PrivateKeyFile: file("empty", "\n")}, "it is empty"},
		{"no key", Credential{PrivateKey: "hello"}, "is not a private key"},
		{"no file", Credential{PrivateKeyFile: "/nowhere/key"}, "read private key"},
		{"folder", Credential{PrivateKeyFile: t.TempDir()}, "no regular file"},
		{"large file", Credential{PrivateKeyFile: large}, "so it is not a key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, err := Dial(t.Context(), Target{Hop: hop(s, c.c)}, Timeouts{})
			if err == nil {
				client.Close()
			}
			tell(t, err, c.want)
		})
	}
}

// TestExposedKey: as OpenSSH has it, a key file of one's own must not be open to
// the group or to others in any way; the modes of somebody else's are theirs to
// choose.
func TestExposedKey(t *testing.T) {
	_, private := sshtest.NewKey(t)
	name := filepath.Join(t.TempDir(), "id")
	if err := os.WriteFile(name, []byte(sshtest.PEM(t, private, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	refused := func(mode os.FileMode) bool {
		t.Helper()
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
		_, _, err := Credential{PrivateKeyFile: name}.signers(nil)
		if err != nil && (!strings.Contains(err.Error(), "chmod 600 "+name) || strings.Contains(err.Error(), "PRIVATE KEY")) {
			t.Errorf("mode %o: %v", mode, err)
		}
		return err != nil
	}
	for mode, want := range map[os.FileMode]bool{
		0o600: false, 0o400: false, 0o700: false, 0o500: false,
		0o640: true, 0o604: true, 0o644: true, 0o620: true, 0o610: true, 0o601: true, 0o602: true, 0o777: true,
	} {
		if refused(mode) != want {
			t.Errorf("mode %o: refused is %v", mode, !want)
		}
	}
	if os.Getuid() == 0 { // who else can give files away?
		if err := os.Chown(name, 4242, -1); err != nil {
			t.Fatal(err)
		}
		if refused(0o644) {
			t.Error("the file of another user is refused")
		}
	}
}

// What a server says before it refuses is told, and cannot move the cursor.
func TestRefusalSaysWhy(t *testing.T) {
	s := serverWith(t, sshtest.Config{PreAuth: "Only with a \x1b[31mticket\r\n"})
	_, err := Dial(t.Context(), Target{Hop: hop(s, Credential{Password: "x"})}, Timeouts{})
	tell(t, err, "the machine says:\n  Only with a [31mticket")
}

func TestKeyboardInteractive(t *testing.T) {
	for _, c := range []struct {
		name, given, want string
		asks              []string
	}{
		{"password", password, "", []string{"Password: "}},
		{"wrong password", "x", "does not let ops in", []string{"Password: "}},
		{"second factor", password, `asks for more than a password: "Verification code:"`, []string{"Password: ", "Verification code: "}},
		{"expired", password, `asks for more than a password: "New password:"`, []string{"Current password: ", "New password: "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serverWith(t, sshtest.Config{Interactive: c.asks})
			client, err := Dial(t.Context(), Target{Hop: hop(s, Credential{Password: c.given})}, Timeouts{})
			client.Close()
			tell(t, err, c.want)
		})
	}
}

// keyring serves an agent.
func keyring(t *testing.T, a agent.Agent) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			agent.ServeAgent(a, conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return socket
}

// refusing is an agent whose user says no.
type refusing struct{ agent.ExtendedAgent }

func (refusing) SignWithFlags(ssh.PublicKey, []byte, agent.SignatureFlags) (*ssh.Signature, error) {
	return nil, errors.New("no")
}

func TestAgent(t *testing.T) {
	signer, private := sshtest.NewKey(t)
	s := sshtest.New(t, sshtest.Config{Authorized: []ssh.PublicKey{signer.PublicKey()}, Password: password})
	with := func(keys int) agent.ExtendedAgent {
		ring := agent.NewKeyring().(agent.ExtendedAgent)
		for range keys {
			_, other := sshtest.NewKey(t)
			if err := ring.Add(agent.AddedKey{PrivateKey: other}); err != nil {
				t.Fatal(err)
			}
		}
		if err := ring.Add(agent.AddedKey{PrivateKey: private}); err != nil {
			t.Fatal(err)
		}
		return ring
	}
	locked := with(0)
	if err := locked.Lock([]byte("x")); err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(t.TempDir(), "dead")
	if err := os.WriteFile(dead, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, socket, password, want string
	}{
		{"key", keyring(t, with(0)), "", ""},
		{"third key", keyring(t, with(2)), "", ""},
		{"declared key before twenty of the agent's", keyring(t, with(20)), "", ""},
		{"too many keys", keyring(t, with(9)), "", "too many keys were tried before the right one"},
		{"locked", keyring(t, locked), "", "holds no keys, or is locked"},
		{"locked, but a password", keyring(t, locked), password, ""},
		{"empty", keyring(t, agent.NewKeyring()), "", "holds no keys"},
		{"says no", keyring(t, refusing{with(0)}), "", "the SSH agent does not sign with " + ssh.FingerprintSHA256(signer.PublicKey())},
		{"dead socket", dead, "", "use SSH agent"},
		{"none", "", "", "SSH_AUTH_SOCK is not set"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("SSH_AUTH_SOCK", c.socket)
			given := Credential{Agent: true, Password: c.password}
			if strings.HasPrefix(c.name, "declared key") {
				given.PrivateKey = sshtest.PEM(t, private, "")
			}
			client, err := Dial(t.Context(), Target{Hop: hop(s, given)}, Timeouts{})
			client.Close()
			tell(t, err, c.want)
		})
	}
	t.Setenv("SSH_AUTH_SOCK", dead)
	dialled(t, Target{Hop: hop(s, Credential{Agent: true, AgentSocket: keyring(t, with(0))})})
}

// An agent that takes the question and never answers is given up.
func TestSilentAgent(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := serverWith(t, sshtest.Config{})
	_, err = Dial(t.Context(), Target{Hop: hop(s, Credential{Agent: true, AgentSocket: socket})}, Timeouts{Dial: 50 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "no answer for 50ms") {
		t.Error(err)
	}
}

func TestCertificate(t *testing.T) {
	authority, _ := sshtest.NewKey(t)
	user, private := sshtest.NewKey(t)
	_, other := sshtest.NewKey(t)
	s := sshtest.New(t, sshtest.Config{Authority: authority.PublicKey()})
	line := func(edit ...func(*ssh.Certificate)) string {
		return sshtest.Line(sshtest.Certify(t, authority, user.PublicKey(), ssh.UserCert, sshtest.User, edit...))
	}
	file := filepath.Join(t.TempDir(), "cert")
	if err := os.WriteFile(file, []byte(line()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ring := agent.NewKeyring()
	if err := ring.Add(agent.AddedKey{PrivateKey: private}); err != nil {
		t.Fatal(err)
	}
	key := sshtest.PEM(t, private, "")
	for _, c := range []struct {
		name string
		c    Credential
		want string
	}{
		{"line", Credential{PrivateKey: key, Certificate: line()}, ""},
		{"file", Credential{PrivateKey: key, CertificateFile: file}, ""},
		{"of the agent's key", Credential{Agent: true, AgentSocket: keyring(t, ring), CertificateFile: file}, ""},
		{"of another key", Credential{PrivateKey: sshtest.PEM(t, other, ""), Certificate: line()}, "does not belong to the private key"},
		{"expired", Credential{PrivateKey: key, Certificate: line(func(c *ssh.Certificate) { c.ValidBefore = 1 })}, "a certificate that expired at 1970-01-01 00:00:01 UTC: have it signed again"},
		{"of tomorrow", Credential{PrivateKey: key, Certificate: line(func(c *ssh.Certificate) { c.ValidAfter = math.MaxInt64 })}, "a certificate that is valid from 2242-03-16 12:56:28 UTC on"},
		{"of a machine", Credential{PrivateKey: key, Certificate: line(func(c *ssh.Certificate) { c.CertType = ssh.HostCert })}, "of a machine and not of a user"},
		{"for somebody else", Credential{PrivateKey: key, Certificate: line(func(c *ssh.Certificate) { c.ValidPrincipals = []string{"x"} })}, "a certificate for x"},
		{"a public key", Credential{PrivateKey: key, Certificate: sshtest.Line(user.PublicKey())}, "no certificate"},
		{"no file", Credential{PrivateKey: key, CertificateFile: "/nowhere"}, "read certificate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, err := Dial(t.Context(), Target{Hop: hop(s, c.c)}, Timeouts{})
			client.Close()
			tell(t, err, c.want)
		})
	}
}

// A key that many machines take is decrypted once, and a wrong passphrase
// stays wrong.
func TestKeysAreDecryptedOnce(t *testing.T) {
	_, private := sshtest.NewKey(t)
	pem := []byte(sshtest.PEM(t, private, "pass"))
	var k keys
	first, err := k.parse(pem, "pass", "x")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := k.parse(pem, "pass", "x"); again != first || err != nil {
		t.Errorf("decrypted anew: %v", err)
	}
	if _, err := k.parse(pem, "other", "x"); err == nil {
		t.Error("a wrong passphrase is taken")
	}
	if _, err := k.parse(pem, "", "x"); err == nil {
		t.Error("no passphrase is taken")
	}
}
