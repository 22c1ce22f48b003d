//go:build e2e && linux

package system_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/lab"
	"github.com/stokehq/stoke/providers/metal/system"
)

// A power cut in the middle of applying or restoring: the next apply goes on
// from what it finds, and what was there before is still known.
func TestPowerCut(t *testing.T) {
	m := lab.New(t).Machine("a", lab.With("/etc/systemd/system/chrony.service", chronyUnit), lab.With("/etc/systemd/system/extra.swap", swapUnit),
		lab.With("/etc/fstab", "# mine\n/swapfile none swap sw,nofail 0 0\n"), lab.With("/etc/motd", "Debian\n"))
	m.Script("systemctl daemon-reload; systemctl enable extra.swap; mkdir -p /etc/chrony/sources.d")
	before := m.Snapshot()
	w := world{T: t, m: m, remote: patient(t, m)}
	random := rand.New(rand.NewPCG(1, 2))
	var within time.Duration
	const cuts = 4
	cut := 0
	for round := range cuts {
		rec, err := host.OpenRecord(t.Context(), w.remote, "host")
		if errors.Is(err, host.ErrNoRecord) {
			rec, err = host.NewRecord(t.Context(), w.remote, "host", "id-1", "metal_host.a")
		}
		if err != nil {
			t.Fatal(err)
		}
		w.rec = rec
		if round == 0 {
			began := time.Now()
			w.apply(declared())
			within = time.Since(began)
		}
		ctx, cancel := context.WithCancel(t.Context())
		over := make(chan error, 1)
		go func() {
			if round%2 == 0 { // what was applied is restored
				_, err := system.Restore(ctx, w.remote, rec)
				over <- err
				return
			}
			have, err := system.Observe(ctx, w.remote, declared())
			if err == nil {
				err = system.Apply(ctx, w.remote, rec, declared(), have)
			}
			over <- err
		}()
		time.Sleep(time.Duration(random.Int64N(int64(within))))
		m.Crash()
		cancel()
		if err := <-over; err != nil {
			cut++
		} else {
			within /= 4 // it was quicker than the first one
		}
		m.PowerOn()
	}
	rec, err := host.OpenRecord(t.Context(), w.remote, "host")
	if err != nil {
		t.Fatal(err)
	}
	w.rec = rec
	w.apply(declared())
	m.Reboot()
	if left := w.observe(declared()); len(left) > 0 {
		t.Errorf("after a reboot there is: %v", left)
	}
	if _, err := system.Restore(t.Context(), w.remote, rec); err != nil {
		t.Fatal(err)
	}
	if err := rec.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
	if t.Logf("%d of %d were cut off", cut, cuts); cut == 0 {
		t.Error("none was cut off")
	}
	// names of files that were being written are mktemp's
	if diff := lab.Diff(before, m.Snapshot(), "* /etc/*.????????", "* /etc/*/*.????????", "* /etc/*/*/*.????????", "* /var/lib/stoke/..."); len(diff) > 0 {
		t.Errorf("not as before:\n%s", strings.Join(diff, "\n"))
	}
}
