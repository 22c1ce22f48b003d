package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

func dialled(t *testing.T, target Target) *Client {
	t.Helper()
	c, err := Dial(t.Context(), target, Timeouts{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestLogin tries every way to log in, and every way to be refused.
func TestLogin(t *testing.T) {
	signer, private := newKey(t)
	_, stranger := newKey(t)
	m := newMachine(t, signer.PublicKey(), "secret")
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(pemOf(t, private, "pass")), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name string
		c    Credential
		want string // part of the error; "" for none
	}{
		{"key", Credential{PrivateKey: pemOf(t, private, "")}, ""},
		{"encrypted key", Credential{PrivateKeyFile: file, Passphrase: "pass"}, ""},
		{"encrypted key without passphrase", Credential{PrivateKeyFile: file}, "is encrypted: give its passphrase"},
		{"encrypted key, wrong passphrase", Credential{PrivateKeyFile: file, Passphrase: "x"}, "the passphrase is wrong"},
		{"password", Credential{Password: "secret"}, ""},
		{"wrong password", Credential{Password: "x"}, "does not let ops in"},
		{"wrong user", Credential{User: "root", Password: "secret"}, "does not let root in"},
		{"stranger's key", Credential{PrivateKey: pemOf(t, stranger, "")}, "does not let ops in"},
		{"key of somebody else, then password", Credential{PrivateKey: pemOf(t, stranger, ""), Password: "secret"}, ""},
		{"nothing", Credential{}, "no private key, no password and no agent"},
		{"no key", Credential{PrivateKey: "hello"}, "is no private key"},
		{"no file", Credential{PrivateKeyFile: "/nowhere/key"}, "read private key"},
		{"folder", Credential{PrivateKeyFile: t.TempDir()}, "no regular file"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			client, err := Dial(t.Context(), Target{Hop: m.hop(c.c)}, Timeouts{})
			if err == nil {
				defer client.Close()
			}
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if err != nil && !IsPermanent(err) {
				t.Errorf("%v does not count as permanent", err)
			}
			if err != nil && (strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "PRIVATE KEY")) {
				t.Errorf("%v tells a secret", err)
			}
		})
	}
}

func TestAgent(t *testing.T) {
	signer, private := newKey(t)
	m := newMachine(t, signer.PublicKey(), "")
	keyring := agent.NewKeyring()
	if err := keyring.Add(agent.AddedKey{PrivateKey: private}); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			agent.ServeAgent(keyring, conn)
		}
	}()
	t.Setenv("SSH_AUTH_SOCK", socket)
	dialled(t, Target{Hop: m.hop(Credential{Agent: true})})
}

func TestCertificate(t *testing.T) {
	authority, _ := newKey(t)
	user, private := newKey(t)
	m := newMachine(t, authority.PublicKey(), "")
	cert := &ssh.Certificate{Key: user.PublicKey(), CertType: ssh.UserCert, ValidPrincipals: []string{"ops"}, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(nil2rand{}, authority); err != nil {
		t.Fatal(err)
	}
	dialled(t, Target{Hop: m.hop(Credential{PrivateKey: pemOf(t, private, ""), Certificate: string(ssh.MarshalAuthorizedKey(cert))})})
	_, other := newKey(t)
	_, err := Dial(t.Context(), Target{Hop: m.hop(Credential{PrivateKey: pemOf(t, other, ""), Certificate: string(ssh.MarshalAuthorizedKey(cert))})}, Timeouts{})
	if err == nil || !strings.Contains(err.Error(), "does not belong to the private key") {
		t.Error(err)
	}
}

type nil2rand struct{} // a nonce need not be random in a test

func (nil2rand) Read(p []byte) (int, error) { return len(p), nil }

// TestHostKey covers unknown, changed and matching keys of target and bastion.
func TestHostKey(t *testing.T) {
	bastion, m := newMachine(t, nil, "secret"), newMachine(t, nil, "secret")
	c := Credential{Password: "secret"}
	other, _ := newKey(t)
	wrong := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(other.PublicKey())))
	var accepted string
	accept := func(key string) error { accepted = key; return nil }
	with := func(h Hop, key string) Hop { h.HostKey = key; return h }
	cases := []struct {
		name   string
		target Target
		want   string
	}{
		{"matching", Target{Hop: m.hop(c), Hops: []Hop{bastion.hop(c)}}, ""},
		{"unknown", Target{Hop: with(m.hop(c), "")}, "no host key is known"},
		{"changed", Target{Hop: with(m.hop(c), wrong)}, "instead of " + ssh.FingerprintSHA256(other.PublicKey())},
		{"malformed", Target{Hop: with(m.hop(c), "SHA256:x")}, "is not one line such as"},
		{"accepted", Target{Hop: with(m.hop(c), ""), AcceptNew: accept}, ""},
		{"refused", Target{Hop: with(m.hop(c), ""), AcceptNew: func(string) error { return errors.New("not today") }}, "not today"},
		{"changed, though new ones are accepted", Target{Hop: with(m.hop(c), wrong), AcceptNew: accept}, "shows the host key"},
		{"bastion unknown", Target{Hop: m.hop(c), Hops: []Hop{with(bastion.hop(c), "")}, AcceptNew: accept}, "no host key is known"},
		{"bastion changed", Target{Hop: m.hop(c), Hops: []Hop{with(bastion.hop(c), wrong)}}, "shows the host key"},
		{"target changed behind a bastion", Target{Hop: with(m.hop(c), wrong), Hops: []Hop{bastion.hop(c)}}, "shows the host key"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			client, err := Dial(t.Context(), tc.target, Timeouts{})
			if err == nil {
				client.Close()
			}
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if err != nil && !IsPermanent(err) {
				t.Errorf("%v does not count as permanent", err)
			}
		})
	}
	if accepted != m.hostKey() {
		t.Errorf("accepted %q", accepted)
	}
}

func TestRun(t *testing.T) {
	m := newMachine(t, nil, "secret")
	m.banner = "Welcome!\nLast login: never\n"
	c := dialled(t, Target{Hop: m.hop(Credential{Password: "secret"})})
	out, err := c.Run(t.Context(), Command{Args: []string{"sh", "-c", `cat; echo "$1" >&2`, "sh", "it's $HOME"}, Stdin: strings.NewReader("in\x00put")})
	if err != nil || string(out.Stdout) != "in\x00put" || string(out.Stderr) != "it's $HOME\n" {
		t.Errorf("%q %q %v", out.Stdout, out.Stderr, err)
	}
	_, err = c.Run(t.Context(), Command{Args: []string{"sh", "-c", "echo one; echo two >&2; exit 7"}})
	var failed *CommandError
	if !errors.As(err, &failed) || failed.Status != 7 || failed.Output != "two" || failed.Command != `sh -c 'echo one; echo two >&2; exit 7'` {
		t.Errorf("%#v", err)
	}
	line := bytes.Repeat([]byte("x"), 1<<20)
	out, err = c.Run(t.Context(), Command{Args: []string{"cat"}, Stdin: bytes.NewReader(line)})
	if err != nil || !bytes.Equal(out.Stdout, line) {
		t.Errorf("a line of 1 MB: %d bytes, %v", len(out.Stdout), err)
	}
	if _, err = c.Run(t.Context(), Command{Args: []string{"cat"}, Stdin: bytes.NewReader(line), Most: 1000}); err == nil || !strings.Contains(err.Error(), "more than 1000 bytes") {
		t.Error(err)
	}
	if _, err = c.Run(t.Context(), Command{Args: []string{"cat"}, Stdin: io.MultiReader(strings.NewReader("a"), failing{})}); err == nil || !strings.Contains(err.Error(), "no more") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(errors.New("enough")) })
	if _, err = c.Run(ctx, Command{Args: []string{"sleep", "5"}}); err == nil || err.Error() != "enough" {
		t.Error(err)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("no more") }

func TestSudo(t *testing.T) {
	cases := []struct{ name, asks, given, want string }{
		{"asks for nothing, none given", "", "", ""},
		{"asks for nothing, one given", "", "canary", ""},
		{"right", "canary", "canary", ""},
		{"wrong", "other", "canary", "sudo does not take the password"},
		{"none given", "other", "", "a password is required"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			m := newMachine(t, nil, "secret")
			m.sudoPassword = tc.asks
			c := dialled(t, Target{Hop: m.hop(Credential{Password: "secret", Sudo: true, SudoPassword: tc.given})})
			out, err := c.Run(t.Context(), Command{Args: []string{"sh", "-c", `cat; echo " $AS_ROOT"`}, Stdin: strings.NewReader("data"), Root: true})
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
			if err == nil && string(out.Stdout) != "data yes\n" {
				t.Errorf("got %q", out.Stdout)
			}
			if err != nil && !IsPermanent(err) || strings.Contains(fmt.Sprint(err, out), "canary") {
				t.Errorf("%v, %v", err, out)
			}
		})
	}
}

func TestPut(t *testing.T) {
	m := newMachine(t, nil, "secret")
	c := dialled(t, Target{Hop: m.hop(Credential{Password: "secret"})})
	path := filepath.Join(m.home, "-it's a file")
	for _, content := range []string{"first\n", "", "second\x00'$(id)"} {
		if err := c.Put(t.Context(), File{Path: path, Content: []byte(content), Mode: 0o640}); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		info, _ := os.Stat(path)
		if err != nil || string(got) != content || info.Mode().Perm() != 0o640 {
			t.Errorf("%q %v %v", got, info.Mode(), err)
		}
	}
	if err := c.Put(t.Context(), File{Path: m.home + "/no/such/x", Mode: 0o600}); err == nil {
		t.Error("wrote into a folder that is not there")
	}
}

// TestCut breaks the connection after every so many bytes of a session that
// writes a file: there is the old file or the new one, and never an error that
// counts as permanent.
func TestCut(t *testing.T) {
	m := newMachine(t, nil, "secret")
	path := filepath.Join(m.home, "file")
	old, fresh := strings.Repeat("old", 500), strings.Repeat("new!", 500)
	done := 0
	for cut := int64(1); done < 3; cut += 61 {
		if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
		m.cutAfter.Store(cut)
		err := func() error {
			c, err := Dial(t.Context(), Target{Hop: m.hop(Credential{Password: "secret"})}, Timeouts{})
			if err != nil {
				return err
			}
			defer c.Close()
			return c.Put(t.Context(), File{Path: path, Content: []byte(fresh), Mode: 0o600})
		}()
		if IsPermanent(err) {
			t.Errorf("after %d bytes: %v counts as permanent", cut, err)
		}
		got, readErr := os.ReadFile(path)
		if readErr != nil || string(got) != old && string(got) != fresh {
			t.Fatalf("after %d bytes the file has %d bytes, %v", cut, len(got), readErr)
		}
		if err == nil {
			if string(got) != fresh {
				t.Fatalf("after %d bytes: no error, and the old file", cut)
			}
			done++
		}
	}
}

// TestSilent dials a machine that accepts and then says nothing.
func TestSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	hop := Hop{Address: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, Credential: Credential{User: "x", Password: "x"}}
	_, err = Dial(t.Context(), Target{Hop: hop}, Timeouts{Dial: 50 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "no answer for 50ms") || IsPermanent(err) {
		t.Error(err)
	}
}

// TestLost drops the connection while a command runs.
func TestLost(t *testing.T) {
	m := newMachine(t, nil, "secret")
	c := dialled(t, Target{Hop: m.hop(Credential{Password: "secret"})})
	time.AfterFunc(50*time.Millisecond, m.drop)
	_, err := c.Run(t.Context(), Command{Args: []string{"sleep", "5"}})
	var lost *LostError
	if !errors.As(err, &lost) || IsPermanent(err) {
		t.Errorf("%v", err)
	}
}
