package ssh

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/crypto/ssh"
)

// machine is an SSH server in this process. Commands run for real, by a shell,
// with a sudo that behaves like the real one.
type machine struct {
	t      testing.TB
	listen net.Listener
	config *ssh.ServerConfig
	key    ssh.Signer
	home   string
	banner string // what login scripts print, on both streams

	dropOnce     string       // a file that remembers that the first command was cut off; "" for none
	sudoPassword string       // "": sudo asks for nothing
	cutAfter     atomic.Int64 // bytes until the connection breaks; 0: never
	noForward    atomic.Bool  // AllowTcpForwarding no
	conns        sync.WaitGroup
	open         sync.Map
}

func newKey(t testing.TB) (ssh.Signer, ed25519.PrivateKey) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer, private
}

func pemOf(t testing.TB, private ed25519.PrivateKey, passphrase string) string {
	var block *pem.Block
	var err error
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(private, "")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}

// newMachine starts a server that lets the user "ops" in with the key or the
// password.
func newMachine(t testing.TB, allowed ssh.PublicKey, password string) *machine {
	m := &machine{t: t, home: t.TempDir()}
	m.key, _ = newKey(t)
	m.config = &ssh.ServerConfig{
		PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if cert, ok := key.(*ssh.Certificate); ok {
				checker := &ssh.CertChecker{IsUserAuthority: func(k ssh.PublicKey) bool { return allowed != nil && string(k.Marshal()) == string(allowed.Marshal()) }}
				return checker.Authenticate(c, cert)
			}
			if c.User() == "ops" && allowed != nil && string(key.Marshal()) == string(allowed.Marshal()) {
				return nil, nil
			}
			return nil, errors.New("no")
		},
		PasswordCallback: func(c ssh.ConnMetadata, p []byte) (*ssh.Permissions, error) {
			if c.User() == "ops" && password != "" && string(p) == password {
				return nil, nil
			}
			return nil, errors.New("no")
		},
		MaxAuthTries: 6,
	}
	m.config.AddHostKey(m.key)
	var err error
	if m.listen, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	m.conns.Go(m.accept)
	t.Cleanup(func() {
		m.listen.Close()
		m.drop()
		m.conns.Wait()
	})
	return m
}

// drop cuts all connections.
func (m *machine) drop() {
	m.open.Range(func(conn, _ any) bool { conn.(net.Conn).Close(); return true })
}

func (m *machine) hostKey() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(m.key.PublicKey())))
}

func (m *machine) hop(c Credential) Hop {
	host, port, _ := net.SplitHostPort(m.listen.Addr().String())
	n, _ := strconv.Atoi(port)
	if c.User == "" {
		c.User = "ops"
	}
	return Hop{Address: host, Port: n, HostKey: m.hostKey(), Credential: c}
}

func (m *machine) accept() {
	for {
		conn, err := m.listen.Accept()
		if err != nil {
			return
		}
		if n := m.cutAfter.Load(); n > 0 {
			conn = &cutting{Conn: conn, left: n}
		}
		m.open.Store(conn, true)
		m.conns.Go(func() {
			defer conn.Close()
			m.serve(conn)
		})
	}
}

// cutting breaks after a number of bytes in either direction.
type cutting struct {
	net.Conn
	mu   sync.Mutex
	left int64
}

func (c *cutting) take(n int) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if int64(n) > c.left {
		n = int(c.left)
	}
	c.left -= int64(n)
	return n, c.left <= 0
}

func (c *cutting) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n, over := c.take(n); over {
		c.Close()
		return n, io.EOF
	}
	return n, err
}

func (c *cutting) Write(p []byte) (int, error) {
	n, over := c.take(len(p))
	n, err := c.Conn.Write(p[:n])
	if over {
		c.Close()
		return n, io.ErrClosedPipe
	}
	return n, err
}

func (m *machine) serve(conn net.Conn) {
	server, channels, requests, err := ssh.NewServerConn(conn, m.config)
	if err != nil {
		return
	}
	defer server.Close()
	m.conns.Go(func() { ssh.DiscardRequests(requests) })
	for ch := range channels {
		switch ch.ChannelType() {
		case "session":
			m.conns.Go(func() { m.session(ch) })
		case "direct-tcpip":
			if m.noForward.Load() {
				ch.Reject(ssh.Prohibited, "open failed")
				continue
			}
			m.conns.Go(func() { forward(ch) })
		default:
			ch.Reject(ssh.UnknownChannelType, "no")
		}
	}
}

// forward does what a bastion does.
func forward(ch ssh.NewChannel) {
	var to struct {
		Host   string
		Port   uint32
		From   string
		FromAt uint32
	}
	if err := ssh.Unmarshal(ch.ExtraData(), &to); err != nil {
		ch.Reject(ssh.ConnectionFailed, "malformed")
		return
	}
	conn, err := net.Dial("tcp", net.JoinHostPort(to.Host, fmt.Sprint(to.Port)))
	if err != nil {
		ch.Reject(ssh.ConnectionFailed, err.Error())
		return
	}
	channel, requests, err := ch.Accept()
	if err != nil {
		conn.Close()
		return
	}
	go ssh.DiscardRequests(requests)
	var both sync.WaitGroup
	both.Go(func() { io.Copy(channel, conn); channel.CloseWrite() })
	both.Go(func() { io.Copy(conn, channel); conn.(*net.TCPConn).CloseWrite() })
	both.Wait()
	channel.Close()
	conn.Close()
}

// sudo asks as the real one does: on standard error, and only where it has to.
const sudo = `#!/bin/sh
ask=; prompt=Password:
while :; do case $1 in
-n) ask=never; shift;; -S) shift;; -p) prompt=$2; shift 2;; --) shift; break;; *) break;; esac; done
want=%s
if [ -n "$want" ]; then
  [ "$ask" != never ] || { echo "sudo: a password is required" >&2; exit 1; }
  for try in 1 2 3; do
    printf '%%s' "$prompt" >&2
    IFS= read -r p || { echo "sudo: no password was provided" >&2; exit 1; }
    [ "$p" = "$want" ] && AS_ROOT=yes exec "$@"
    echo "Sorry, try again." >&2
  done
  exit 1
fi
AS_ROOT=yes exec "$@"
`

func (m *machine) session(ch ssh.NewChannel) {
	channel, requests, err := ch.Accept()
	if err != nil {
		return
	}
	defer channel.Close()
	for req := range requests {
		if req.Type != "exec" {
			req.Reply(false, nil)
			continue
		}
		n := binary.BigEndian.Uint32(req.Payload)
		line := string(req.Payload[4 : 4+n])
		req.Reply(true, nil)
		ctx, cancel := context.WithCancel(context.Background())
		m.conns.Go(func() { // a signal or the channel's end
			for range requests {
				cancel()
			}
			cancel()
		})
		if m.dropOnce != "" {
			if f, err := os.OpenFile(m.dropOnce, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
				f.Close()
				m.drop()
			}
		}
		status := m.exec(ctx, line, channel)
		channel.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, uint32(status)))
		return
	}
}

func (m *machine) exec(ctx context.Context, line string, channel ssh.Channel) int {
	bin := filepath.Join(m.home, "bin")
	os.MkdirAll(bin, 0o755)
	os.WriteFile(filepath.Join(bin, "sudo"), fmt.Appendf(nil, sudo, Quote(m.sudoPassword)), 0o755)
	if m.banner != "" {
		io.WriteString(channel, m.banner)
		io.WriteString(channel.Stderr(), m.banner)
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = m.home
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = channel, channel.Stderr()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // what the shell started, too
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 255
	}
	if err := cmd.Start(); err != nil {
		return 255
	}
	go func() { io.Copy(stdin, channel); stdin.Close() }() // ends with the channel
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode() & 0xff
	}
	return 0
}
