//go:build e2e && linux

package host_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/lab"
)

// reached is a machine by a connection of its own.
func reached(t *testing.T, target ssh.Target) *host.Remote {
	pool := &ssh.Pool{Patience: 30 * time.Second}
	t.Cleanup(pool.Close)
	return &host.Remote{Pool: pool, Target: target}
}

const holderTarget = "STOKE_TEST_HOLDER" // what a process that holds a lock reaches the machine by

// TestHolder is a process of its own, started by TestKilledHolders: it locks a
// machine and stays.
func TestHolder(t *testing.T) {
	text := os.Getenv(holderTarget)
	if text == "" {
		t.Skip("started by TestKilledHolders")
	}
	var target ssh.Target
	if err := json.Unmarshal([]byte(text), &target.Hop); err != nil {
		t.Fatal(err)
	}
	locks := &host.Locks{Holder: "the other process"}
	if _, err := locks.Lock(t.Context(), reached(t, target)); err != nil {
		t.Fatal(err)
	}
	fmt.Println("LOCKED")
	time.Sleep(10 * time.Minute)
}

// holder starts a process that holds the lock of a machine.
func holder(t *testing.T, target ssh.Target, wrap ...string) *exec.Cmd {
	t.Helper()
	text, err := json.Marshal(target.Hop)
	if err != nil {
		t.Fatal(err)
	}
	args := append(wrap, os.Args[0], "-test.run=^TestHolder$", "-test.v")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), holderTarget+"="+string(text))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "LOCKED") {
			return cmd
		}
	}
	t.Fatalf("the holder did not get the lock: %v", cmd.Wait())
	return nil
}

// TestKilledHolders: another process keeps the machine, and a killed one keeps
// it no longer than the lease, or not at all where it ran on this computer.
func TestKilledHolders(t *testing.T) {
	m := lab.New(t).Machine("a")
	remote := reached(t, m.Target())
	impatient := &host.Locks{Holder: "this process", Wait: time.Second}
	for _, test := range []struct {
		name string
		wrap []string
		most time.Duration
	}{
		{"here", nil, 15 * time.Second},
		// In another namespace of process numbers it cannot be seen, as on another computer.
		{"elsewhere", []string{"unshare", "--pid", "--fork", "--kill-child"}, 50 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := holder(t, m.Target(), test.wrap...)
			var locked *host.LockedError
			if _, err := impatient.Lock(t.Context(), remote); !errors.As(err, &locked) || locked.Who != "the other process" {
				t.Fatalf("beside another process: %v", err)
			}
			cmd.Process.Kill()
			cmd.Wait()
			began := time.Now()
			lock, err := (&host.Locks{Holder: "this process"}).Lock(t.Context(), remote)
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Unlock()
			took := time.Since(began)
			t.Logf("taken over after %s", took.Round(100*time.Millisecond))
			if took > test.most {
				t.Errorf("it took %s", took)
			}
			if err := lock.CheckHeld(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPowerCut ends a lock, and its holder learns it.
func TestPowerCut(t *testing.T) {
	m := lab.New(t).Machine("a")
	lock, err := (&host.Locks{Holder: "one"}).Lock(t.Context(), reached(t, m.Target()))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	m.Crash()
	m.PowerOn()
	select {
	case <-lock.Context().Done():
	case <-time.After(2 * time.Minute):
		t.Fatal("nobody noticed")
	}
	var lost *host.LostLockError
	if err := context.Cause(lock.Context()); !errors.As(err, &lost) {
		t.Error(err)
	} else {
		t.Log(err)
	}
	if _, err := lock.Machine().Run(t.Context(), host.Command{Args: []string{"touch", "/root/touched"}}); !errors.As(err, &lost) {
		t.Errorf("a step afterwards: %v", err)
	}
	if _, err := m.Try("test", "-e", "/root/touched"); err == nil {
		t.Error("it ran")
	}
	other, err := (&host.Locks{Holder: "two", Wait: time.Second}).Lock(t.Context(), reached(t, m.Target()))
	if err != nil {
		t.Fatal(err)
	}
	other.Unlock()
}

// TestRebootForReal goes on with the lock, as a user whom the machine does not
// let in while it starts, by key and by password.
func TestRebootForReal(t *testing.T) {
	m := lab.New(t).Machine("a")
	for name, target := range map[string]ssh.Target{"ops": m.Target(), "admin": m.AdminTarget()} {
		t.Run(name, func(t *testing.T) {
			remote := reached(t, target)
			lock, err := (&host.Locks{Holder: "one"}).Lock(t.Context(), remote)
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Unlock()
			before, err := host.ReadBoot(t.Context(), remote)
			if err != nil {
				t.Fatal(err)
			}
			boots := m.Boots()
			ctx := providers.WithCall(lock.Context(), &providers.Call{Progress: func(p providers.Progress) { t.Log(p.Step) }})
			began := time.Now()
			after, err := host.Reboot(ctx, lock.Machine(), host.RebootLimits{Up: 2 * time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %+v", time.Since(began).Round(100*time.Millisecond), after)
			if after.ID == before.ID && after.Start == before.Start || after.State != "running" && after.State != "degraded" || m.Boots() != boots+1 {
				t.Errorf("%+v after %+v, %d boots", after, before, m.Boots()-boots)
			}
			if err := lock.Context().Err(); err != nil {
				t.Errorf("the lock is lost: %v", context.Cause(lock.Context()))
			}
			if _, err := (&host.Locks{Holder: "two", Wait: time.Second}).Lock(t.Context(), reached(t, target)); err == nil {
				t.Error("another one is let in after the reboot")
			}
		})
	}
}

// TestDegraded tells which unit did not start.
func TestDegraded(t *testing.T) {
	m := lab.New(t).Machine("a")
	m.Script(`printf '[Unit]\n[Service]\nType=oneshot\nExecStart=/bin/false\n[Install]\nWantedBy=multi-user.target\n' >/etc/systemd/system/broken.service; systemctl enable -q broken`)
	b, err := host.Reboot(t.Context(), reached(t, m.Target()), host.RebootLimits{Up: 2 * time.Minute})
	if err != nil || b.State != "degraded" || strings.Join(b.Failed, " ") != "broken.service" {
		t.Errorf("%+v, %v", b, err)
	}
}
