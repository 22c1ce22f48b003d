package ssh

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestPoolShares(t *testing.T) {
	m := newMachine(t, nil, "secret")
	p := &Pool{}
	defer p.Close()
	target := Target{Hop: m.hop(Credential{Password: "secret"})}
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			out, err := p.Run(t.Context(), target, func() Command { return Command{Args: []string{"echo", fmt.Sprint(i)}} }, false)
			if err != nil || string(out.Stdout) != fmt.Sprintln(i) {
				t.Errorf("%q, %v", out.Stdout, err)
			}
		})
	}
	all.Wait()
	n := 0
	m.open.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d connections", n)
	}
}

// TestPoolReconnects breaks every connection after some bytes: a command that
// may run twice gets through, any other says that it was lost.
func TestPoolReconnects(t *testing.T) {
	m := newMachine(t, nil, "secret")
	m.dropOnce = filepath.Join(m.home, "dropped")
	p := &Pool{Patience: 20 * time.Second, Pause: time.Millisecond}
	defer p.Close()
	target := Target{Hop: m.hop(Credential{Password: "secret"})}
	command := func() Command { return Command{Args: []string{"sh", "-c", "sleep 0.05; echo done"}} }
	out, err := p.Run(t.Context(), target, command, true)
	if err != nil || string(out.Stdout) != "done\n" {
		t.Errorf("%q, %v", out.Stdout, err)
	}
	if err := os.Remove(m.dropOnce); err != nil {
		t.Fatal(err)
	}
	_, err = p.Run(t.Context(), target, command, false)
	var lost *LostError
	if !errors.As(err, &lost) {
		t.Error(err)
	}
	if _, err := p.Run(t.Context(), target, command, false); err != nil {
		t.Errorf("after the connection was lost: %v", err)
	}
}

func TestPoolGivesUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	p := &Pool{Patience: 30 * time.Millisecond, Pause: 5 * time.Millisecond}
	defer p.Close()
	_, err = p.Run(t.Context(), Target{Hop: Hop{Address: "127.0.0.1", Port: port, Credential: Credential{User: "x", Password: "x"}}}, func() Command { return Command{} }, true)
	if err == nil || IsPermanent(err) || !strings.Contains(err.Error(), "(tried for 30ms)") {
		t.Error(err)
	}
	m := newMachine(t, nil, "secret")
	began := time.Now()
	_, err = (&Pool{Patience: time.Hour}).Run(t.Context(), Target{Hop: m.hop(Credential{Password: "wrong"})}, func() Command { return Command{} }, true)
	if !IsPermanent(err) || time.Since(began) > time.Minute {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}
