package sshtest

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh"
)

// User is the one user that servers know.
const User = "ops"

// Config says what a server is like. The zero value lets nobody in.
type Config struct {
	Authorized  []ssh.PublicKey // keys that let the user in
	Authority   ssh.PublicKey   // signs users' certificates; nil for none
	Password    string          // lets the user in; "" for none
	Interactive []string        // ask for the password and more, by keyboard-interactive; nil: by the method password
	BothWays    bool            // the method password as well as Interactive
	NotYet      string          // is said to the right password, which the method password refuses
	PreAuth     string          // what is said before the login
	MaxTries    int             // of logins; 0: 6, as OpenSSH has it

	HostKeys     []ssh.Signer // nil: one of ed25519
	KeyExchanges []string     // nil: the library's

	Shell   string // the user's login shell; "": sh
	Profile string // what login scripts print, on both streams

	Sudo         Sudo
	SudoPassword string // "": sudo asks for nothing
	SudoWaits    string // a file for which sudo waits before anything else; "" for none

	MaxSessions  int  // at a time on one connection; 0: 10, as OpenSSH has it
	NoForwarding bool // AllowTcpForwarding no
	NoCommands   bool // exec requests are refused
	ForceCommand string

	// Answer answers commands instead of the shell.
	Answer func(Asked) (stdout string, status int)

	// Before is called with each command before it runs, in its own goroutine.
	Before func(command string)
}

// Sudo is what becoming root is like.
type Sudo int

const (
	SudoAllowed  Sudo = iota // with SudoPassword
	SudoUnlisted             // the user is not in the sudoers file
	SudoTTY                  // requiretty
	SudoAbsent               // it is not installed
)

// Server is an SSH server in this process.
type Server struct {
	Wire
	Home string // the user's

	t      testing.TB
	given  Config
	config *ssh.ServerConfig
	listen net.Listener
	stop   chan struct{}
	all    sync.WaitGroup
	open   sync.Map // of net.Conn
	logins atomic.Int64
	wrong  atomic.Int64
}

// New starts a server, which ends with the test.
func New(t testing.TB, c Config) *Server {
	t.Helper()
	s := &Server{t: t, given: c, Home: t.TempDir(), stop: make(chan struct{})}
	if len(s.given.HostKeys) == 0 {
		key, _ := NewKey(t)
		s.given.HostKeys = []ssh.Signer{key}
	}
	s.config = s.serverConfig()
	bin := filepath.Join(s.Home, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(bin, "sudo"), s.sudo(), 0o755); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.listen, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	s.all.Go(s.accept)
	t.Cleanup(s.Close)
	return s
}

// Close ends the server and waits for all that it does.
func (s *Server) Close() {
	select {
	case <-s.stop:
		return
	default:
	}
	close(s.stop)
	s.listen.Close()
	s.Drop()
	s.all.Wait()
}

// Drop cuts all connections.
func (s *Server) Drop() {
	var all []net.Conn
	s.open.Range(func(conn, _ any) bool { all = append(all, conn.(net.Conn)); return true })
	for _, conn := range all { // not the connection of a client that has come back
		conn.Close()
	}
}

// Connections is how many are open.
func (s *Server) Connections() int {
	n := 0
	s.open.Range(func(any, any) bool { n++; return true })
	return n
}

// Logins is how many there have been.
func (s *Server) Logins() int { return int(s.logins.Load()) }

// WrongPasswords is how many have been tried.
func (s *Server) WrongPasswords() int { return int(s.wrong.Load()) }

// Address is where the server listens.
func (s *Server) Address() (host string, port int) {
	host, text, _ := net.SplitHostPort(s.listen.Addr().String())
	port, _ = strconv.Atoi(text)
	return host, port
}

// HostKey is the server's first key, as an authorized_keys line.
func (s *Server) HostKey() string { return Line(s.given.HostKeys[0].PublicKey()) }

func (s *Server) serverConfig() *ssh.ServerConfig {
	g := s.given
	no := errors.New("no")
	config := &ssh.ServerConfig{Config: ssh.Config{KeyExchanges: g.KeyExchanges}, MaxAuthTries: g.MaxTries}
	if g.MaxTries == 0 {
		config.MaxAuthTries = 6
	}
	if g.PreAuth != "" {
		config.BannerCallback = func(ssh.ConnMetadata) string { return g.PreAuth }
	}
	checker := &ssh.CertChecker{
		IsUserAuthority: func(k ssh.PublicKey) bool { return g.Authority != nil && Line(k) == Line(g.Authority) },
		UserKeyFallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			for _, allowed := range g.Authorized {
				if c.User() == User && Line(allowed) == Line(key) {
					return nil, nil
				}
			}
			return nil, no
		},
	}
	config.PublicKeyCallback = checker.Authenticate
	if g.Interactive != nil {
		config.KeyboardInteractiveCallback = func(c ssh.ConnMetadata, ask ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			for i, question := range g.Interactive {
				answers, err := ask("", "", []string{question}, []bool{false})
				if err == nil && i == 0 && (answers[0] != g.Password || c.User() != User) {
					s.wrong.Add(1)
					err = no
				}
				if err != nil {
					return nil, err
				}
			}
			_, err := ask("", "Welcome", nil, nil) // as PAM does
			return nil, err
		}
	}
	if g.Password != "" && (g.Interactive == nil || g.BothWays) {
		config.PasswordCallback = func(c ssh.ConnMetadata, p []byte) (*ssh.Permissions, error) {
			if c.User() == User && string(p) == g.Password {
				if g.NotYet != "" {
					return nil, &ssh.BannerError{Err: no, Message: g.NotYet}
				}
				return nil, nil
			}
			s.wrong.Add(1)
			return nil, no
		}
	}
	for _, key := range g.HostKeys {
		config.AddHostKey(key)
	}
	return config
}

func (s *Server) accept() {
	for {
		conn, err := s.listen.Accept()
		if err != nil {
			return
		}
		conn = s.wrap(conn)
		s.open.Store(conn, true)
		select {
		case <-s.stop: // Close may have looked before
			conn.Close()
		default:
		}
		s.all.Go(func() {
			defer s.open.Delete(conn)
			defer conn.Close()
			s.serve(conn)
		})
	}
}
