package ssh

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/stokehq/stoke/providers/connect/ssh/sshtest"
)

// hostile starts a server that lets everybody in with a password and then does
// what it likes with the connection.
func hostile(t *testing.T, do func(<-chan ssh.NewChannel, *ssh.ServerConn)) Hop {
	t.Helper()
	key, _ := sshtest.NewKey(t)
	config := &ssh.ServerConfig{PasswordCallback: func(ssh.ConnMetadata, []byte) (*ssh.Permissions, error) { return nil, nil }}
	config.AddHostKey(key)
	return listening(t, key.PublicKey(), func(conn net.Conn) {
		server, channels, requests, err := ssh.NewServerConn(conn, config)
		if err != nil {
			return
		}
		defer server.Close()
		go func() { // ends with the connection; it answers keepalives
			for r := range requests {
				r.Reply(true, nil)
			}
		}()
		do(channels, server)
	})
}

func listening(t *testing.T, key ssh.PublicKey, serve func(net.Conn)) Hop {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			all.Go(func() { defer conn.Close(); serve(conn) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return Hop{Address: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, HostKey: sshtest.Line(key), Credential: Credential{User: "ops", Password: password}}
}

// accepting accepts the first session and its command.
func accepting(then func(ssh.Channel)) func(<-chan ssh.NewChannel, *ssh.ServerConn) {
	return func(channels <-chan ssh.NewChannel, server *ssh.ServerConn) {
		for ch := range channels {
			channel, requests, err := ch.Accept()
			if err != nil {
				return
			}
			if r, ok := <-requests; ok {
				r.Reply(true, nil)
			}
			go ssh.DiscardRequests(requests)
			then(channel)
		}
	}
}

// TestHostileServers has machines that do what none should. The client comes
// back in time, says something short, and keeps little.
func TestHostileServers(t *testing.T) {
	noise := bytes.Repeat([]byte("noise \x1b]0;\n"), 4096)
	for name, hop := range map[string]Hop{
		"answers no open":    hostile(t, func(_ <-chan ssh.NewChannel, s *ssh.ServerConn) { s.Wait() }),
		"answers no exec":    hostile(t, func(c <-chan ssh.NewChannel, s *ssh.ServerConn) { (<-c).Accept(); s.Wait() }),
		"says nothing":       hostile(t, accepting(func(ssh.Channel) {})),
		"chatters for ever":  hostile(t, accepting(func(c ssh.Channel) { write(c, noise); c.Close() })),
		"chatters on stderr": hostile(t, accepting(func(c ssh.Channel) { write(c.Stderr(), noise); c.Close() })),
		"sends odd statuses": hostile(t, accepting(func(c ssh.Channel) {
			c.SendRequest("exit-status", false, nil)
			c.SendRequest("exit-signal", false, []byte("x"))
		})),
		"sends many requests":  hostile(t, accepting(func(c ssh.Channel) { requests(c) })),
		"reports success only": hostile(t, accepting(func(c ssh.Channel) { c.SendRequest("exit-status", false, make([]byte, 4)); c.Close() })),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := Dial(t.Context(), Target{Hop: hop}, Timeouts{Begin: 300 * time.Millisecond, Grace: 100 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			out, err := c.Run(t.Context(), Command{Args: []string{"true"}})
			if err == nil || len(err.Error()) > 5000 || strings.Contains(err.Error(), "\x1b") || len(out.Stdout)+len(out.Stderr) > 4*maxBefore {
				t.Errorf("%d and %d bytes; %.500q", len(out.Stdout), len(out.Stderr), err)
			}
			ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("enough"))
			defer cancel()
			if _, err := c.Run(ctx, Command{Args: []string{"true"}}); err == nil {
				t.Error("no error")
			}
		})
	}
}

func write(w io.Writer, noise []byte) {
	for range 2000 { // more than anybody should keep
		if _, err := w.Write(noise); err != nil {
			return
		}
	}
}

func requests(c ssh.Channel) {
	for range 1 << 20 {
		if _, err := c.SendRequest("window-change", false, nil); err != nil {
			return
		}
	}
}

// TestHostileHandshakes has machines that misbehave before anybody is logged in.
func TestHostileHandshakes(t *testing.T) {
	key, _ := sshtest.NewKey(t)
	talk := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			for {
				if _, err := io.WriteString(conn, text); err != nil {
					return
				}
			}
		}
	}
	banners := &ssh.ServerConfig{NoClientAuth: true, BannerCallback: func(ssh.ConnMetadata) string { return strings.Repeat("\x1b[2Jbanner ", 20000) }}
	banners.AddHostKey(key)
	banners.NoClientAuthCallback = func(ssh.ConnMetadata) (*ssh.Permissions, error) { return nil, errors.New("no") }
	for name, serve := range map[string]func(net.Conn){
		"another protocol":   talk("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"a line without end": talk("xxxxxxxxxxxxxxxx"),
		"binary":             talk("SSH-2.0-x\r\n\xff\xff\xff\xff\xff\xff\xff\xff"),
		"long banner":        func(conn net.Conn) { ssh.NewServerConn(conn, banners) },
		"goes at once":       func(net.Conn) {},
	} {
		t.Run(name, func(t *testing.T) {
			hop := listening(t, key.PublicKey(), serve)
			c, err := Dial(t.Context(), Target{Hop: hop}, Timeouts{Dial: 2 * time.Second})
			c.Close()
			if err == nil || len(err.Error()) > 5000 || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%.500q", err)
			}
		})
	}
}
