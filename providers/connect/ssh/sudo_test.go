package ssh

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stokehq/stoke/providers/connect/ssh/sshtest"
)

// A wrong password is given once, however much runs at the same time and
// whatever the machine offers: it may lock the account after the third.
func TestWrongPasswordsAreGivenOnce(t *testing.T) {
	var ran atomic.Int64
	for name, c := range map[string]struct {
		server sshtest.Config
		c      Credential
		logins int64 // wrong ones
		sudo   int64 // commands that came as far as sudo
		want   string
	}{
		"to log in": {
			sshtest.Config{Interactive: []string{"Password: "}, BothWays: true},
			Credential{Password: "x"}, 1, 0, "does not let ops in: tried a password",
		},
		"to log in, by questions alone": {
			sshtest.Config{Interactive: []string{"Password: "}}, Credential{Password: "x"}, 1, 0, "does not let ops in",
		},
		"to sudo": {
			sshtest.Config{SudoPassword: "other"}, Credential{Password: password, Sudo: true, SudoPassword: "x"},
			0, 1, "sudo does not take the password",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ran.Store(0)
			c.server.Before = func(string) { ran.Add(1) }
			s := serverWith(t, c.server)
			target := Target{Hop: hop(s, c.c)}
			p := &Pool{}
			defer p.Close()
			var all sync.WaitGroup
			for range 12 {
				all.Go(func() {
					_, err := p.Run(t.Context(), target, func() Command { return Command{Args: []string{"true"}, Root: true} }, true)
					if err == nil || !IsPermanent(err) || !strings.Contains(err.Error(), c.want) {
						t.Errorf("got %v, want %q", err, c.want)
					}
					if err := p.Put(t.Context(), target, File{Path: "/nowhere/x", Root: true}); err == nil || !strings.Contains(err.Error(), c.want) {
						t.Errorf("a file: got %v, want %q", err, c.want)
					}
				})
			}
			all.Wait()
			if got := int64(s.WrongPasswords()); got != c.logins {
				t.Errorf("%d wrong passwords to log in, want %d", got, c.logins)
			}
			if got := ran.Load(); got != c.sudo {
				t.Errorf("%d commands, want %d", got, c.sudo)
			}
		})
	}
}

// A machine that says why it refuses has taken the password, and may be given it
// by the other method.
func TestPasswordThatIsTakenAndRefused(t *testing.T) {
	s := serverWith(t, sshtest.Config{Interactive: []string{"Password: "}, BothWays: true, NotYet: "System is booting up.\n", PreAuth: "Welcome\n"})
	dialled(t, Target{Hop: hop(s, byPassword)})
	_, err := Dial(t.Context(), Target{Hop: hop(s, Credential{Password: "x"})}, Timeouts{})
	tell(t, err, "does not let ops in: tried a password")
	if n := s.WrongPasswords(); n != 1 {
		t.Errorf("%d wrong passwords", n)
	}
}

// A password that sudo takes is tried once for a machine, not for each command.
func TestSudoPasswordIsTriedOnce(t *testing.T) {
	var ran atomic.Int64
	s := serverWith(t, sshtest.Config{SudoPassword: canary, Before: func(string) { ran.Add(1) }})
	target := Target{Hop: hop(s, Credential{Password: password, Sudo: true, SudoPassword: canary})}
	p := &Pool{}
	defer p.Close()
	for range 3 {
		if _, err := p.Run(t.Context(), target, func() Command { return Command{Args: []string{"true"}, Root: true} }, true); err != nil {
			t.Fatal(err)
		}
		s.Drop() // another connection, the same account
	}
	if got := ran.Load(); got != 4 {
		t.Errorf("%d commands, want 4", got)
	}
}
