package sshtest

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/crypto/ssh"
)

func (s *Server) serve(conn net.Conn) {
	server, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return
	}
	s.logins.Add(1)
	defer server.Close()
	s.all.Go(func() { ssh.DiscardRequests(requests) })
	most := int64(s.given.MaxSessions)
	if most == 0 {
		most = 10
	}
	var sessions atomic.Int64
	for ch := range channels {
		switch {
		case ch.ChannelType() == "session" && sessions.Add(1) > most:
			sessions.Add(-1)
			ch.Reject(ssh.ConnectionFailed, "open failed")
		case ch.ChannelType() == "session":
			s.all.Go(func() {
				defer sessions.Add(-1)
				s.session(ch)
			})
		case ch.ChannelType() == "direct-tcpip" && s.given.NoForwarding:
			ch.Reject(ssh.Prohibited, "administratively prohibited: open failed")
		case ch.ChannelType() == "direct-tcpip":
			s.all.Go(func() { s.forward(ch) })
		default:
			ch.Reject(ssh.UnknownChannelType, "unknown channel type")
		}
	}
}

// forward does what a bastion does.
func (s *Server) forward(ch ssh.NewChannel) {
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
		ch.Reject(ssh.ConnectionFailed, "Connection refused")
		return
	}
	channel, requests, err := ch.Accept()
	if err != nil {
		conn.Close()
		return
	}
	s.all.Go(func() {
		ssh.DiscardRequests(requests) // until the channel is closed: whoever is dialled may never close
		conn.Close()
	})
	var both sync.WaitGroup
	both.Go(func() { io.Copy(channel, conn); channel.CloseWrite() })
	both.Go(func() { io.Copy(conn, channel); conn.(*net.TCPConn).CloseWrite() })
	both.Wait()
	channel.Close()
	conn.Close()
}

func (s *Server) session(ch ssh.NewChannel) {
	channel, requests, err := ch.Accept()
	if err != nil {
		return
	}
	defer channel.Close()
	for req := range requests {
		if req.Type != "exec" || s.given.NoCommands {
			req.Reply(false, nil)
			continue
		}
		n := binary.BigEndian.Uint32(req.Payload)
		line := string(req.Payload[4 : 4+n])
		req.Reply(true, nil)
		ctx, cancel := context.WithCancel(context.Background())
		s.all.Go(func() { // a signal or the channel's end
			for range requests {
				cancel()
			}
			cancel()
		})
		if s.given.Before != nil {
			s.given.Before(line)
		}
		if s.given.ForceCommand != "" {
			line = s.given.ForceCommand
		}
		var status int
		if s.given.Answer != nil {
			status = s.answer(line, channel)
		} else {
			status = s.exec(ctx, line, channel)
		}
		channel.SendRequest("exit-status", false, binary.BigEndian.AppendUint32(nil, uint32(status)))
		return
	}
}

func (s *Server) exec(ctx context.Context, line string, channel ssh.Channel) int {
	if s.given.Profile != "" {
		io.WriteString(channel, s.given.Profile)
		io.WriteString(channel.Stderr(), s.given.Profile)
	}
	shell := s.given.Shell
	if shell == "" {
		shell = "sh"
	}
	cmd := exec.CommandContext(ctx, shell, "-c", line)
	cmd.Dir = s.Home
	cmd.Env = append(os.Environ(), "HOME="+s.Home, "PATH="+filepath.Join(s.Home, "bin")+":"+os.Getenv("PATH"))
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
	s.all.Go(func() { io.Copy(stdin, channel); stdin.Close() }) // ends with the channel
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode() & 0xff
	}
	return 0
}

// sudo is a program that asks as the real one does: on standard error, and only
// where it has to. The texts are sudo 1.9's.
func (s *Server) sudo() []byte {
	program := `#!/bin/sh
ask=; prompt=Password:
while :; do case $1 in
-n) ask=never; shift;; -S) shift;; -p) prompt=$2; shift 2;; --) shift; break;; *) break;; esac; done
`
	if s.given.SudoWaits != "" {
		program += "while [ ! -e " + quoted(s.given.SudoWaits) + " ]; do sleep 0.1; done\n"
	}
	switch s.given.Sudo {
	case SudoTTY:
		return []byte(program + "echo 'sudo: sorry, you must have a tty to run sudo' >&2\nexit 1\n")
	case SudoAbsent:
		return []byte("#!/bin/sh\necho 'sh: 1: sudo: not found' >&2\nexit 127\n")
	}
	if s.given.SudoPassword != "" {
		program += `[ "$ask" != never ] || { echo "sudo: a password is required" >&2; exit 1; }
for try in 1 2 3; do
  printf '%s' "$prompt" >&2
  IFS= read -r p || { echo "sudo: no password was provided" >&2; exit 1; }
  [ "$p" = ` + quoted(s.given.SudoPassword) + ` ] && break
  echo "Sorry, try again." >&2
  [ "$try" != 3 ] || exit 1
done
`
	}
	if s.given.Sudo == SudoUnlisted {
		return []byte(program + "echo '" + User + " is not in the sudoers file.' >&2\nexit 1\n")
	}
	return []byte(program + "AS_ROOT=yes exec \"$@\"\n")
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
