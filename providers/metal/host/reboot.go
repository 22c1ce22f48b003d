package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/runtime/pattern"
)

// Boot is one life of a machine, from power on to power off.
type Boot struct {
	ID    string // the kernel's boot id
	Start string // of the first process, in clock ticks since the kernel's start: what tells two lives of a container
	State string // of systemd: "starting", "running", "degraded" and so on
	// Failed are the units that did not start, where the state is degraded.
	Failed []string
}

func (b Boot) equal(other Boot) bool { return b.ID == other.ID && b.Start == other.Start }

// RebootLimits are how long to wait; zero values are the defaults.
type RebootLimits struct {
	// Up is from the reboot to the first command that runs: 20 minutes, which
	// servers with much memory and many devices take.
	Up time.Duration
	// Settle is from there until systemd has started everything: 5 minutes.
	Settle time.Duration
	// Refused is for how long a booting machine may refuse logins, which it does
	// while /run/nologin exists: 3 minutes.
	Refused time.Duration
	// Ask is for one question: 15 seconds.
	Ask time.Duration
	// Pause is between two questions: a second.
	Pause time.Duration
}

func (l RebootLimits) orDefaults() RebootLimits {
	return RebootLimits{
		Up: cmp.Or(l.Up, 20*time.Minute), Settle: cmp.Or(l.Settle, 5*time.Minute), Refused: cmp.Or(l.Refused, 3*time.Minute),
		Ask: cmp.Or(l.Ask, 15*time.Second), Pause: cmp.Or(l.Pause, time.Second),
	}
}

// lifeScript prints the boot id of the machine, and how far it has started.
const lifeScript = `# ask which boot it is
set -eu
cat /proc/sys/kernel/random/boot_id
sed 's/.*) //' /proc/1/stat | cut -d ' ' -f 20
systemctl is-system-running 2>/dev/null || :
LC_ALL=C systemctl list-units --failed --plain --no-legend --no-pager 2>/dev/null | cut -d ' ' -f 1 || :`

var bootID = pattern.New(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// ReadBoot asks the machine which life it is in.
func ReadBoot(ctx context.Context, m Machine) (Boot, error) {
	out, err := Script(ctx, m, lifeScript)
	if err != nil {
		return Boot{}, err
	}
	b, err := parseBoot(string(out))
	if err != nil {
		return Boot{}, fmt.Errorf("%s: %w", m.Name(), err)
	}
	return b, nil
}

func parseBoot(out string) (Boot, error) {
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) < 2 || !bootID.MatchString(lines[0]) || lines[1] == "" || strings.Trim(lines[1], "0123456789") != "" {
		return Boot{}, fmt.Errorf("read the boot id: the machine says %q", oneLine(out))
	}
	b := Boot{ID: lines[0], Start: lines[1], State: "unknown"}
	if len(lines) > 2 && lines[2] != "" {
		b.State = oneLine(lines[2])
	}
	for _, unit := range lines[min(3, len(lines)):] {
		if unit = oneLine(unit); unit != "" && len(b.Failed) < 20 {
			b.Failed = append(b.Failed, unit)
		}
	}
	return b, nil
}

// Reboot restarts the machine and waits until it is up again: until it shows
// another boot id, and systemd has started what it starts. A machine that boots
// degraded is up; Boot says which units failed. If the context belongs to a
// Lock, the lock continues after the reboot.
func Reboot(ctx context.Context, m Machine, limits RebootLimits) (Boot, error) {
	limits = limits.orDefaults()
	before, err := ReadBoot(ctx, m)
	if err != nil {
		return Boot{}, fmt.Errorf("reboot: %w", err)
	}
	Step(ctx, "rebooting")
	lease := leaseFrom(ctx)
	direct := m
	if lease != nil {
		if err := lease.checkHeld(ctx); err != nil {
			return Boot{}, err
		}
		lease.pause()
		direct = lease.machine // for requests while the lock is away
	}
	w := &rebooting{machine: direct, limits: limits, before: before}
	after, err := w.run(ctx)
	if lease != nil {
		if kept := lease.resume(context.WithoutCancel(ctx)); err == nil {
			err = kept
		}
	}
	if err != nil {
		return after, fmt.Errorf("reboot: %w", err)
	}
	return after, nil
}

type rebooting struct {
	machine Machine
	limits  RebootLimits
	before  Boot
	refused time.Time // since when the machine refuses logins
}

func (w *rebooting) run(ctx context.Context) (Boot, error) {
	sure, err := w.send(ctx)
	if err != nil {
		return Boot{}, err
	}
	Forget(w.machine)
	began := time.Now()
	for {
		b, err := w.ask(ctx)
		switch {
		case err != nil:
			if err := w.patience(ctx, err, began); err != nil {
				return Boot{}, err
			}
		case !b.equal(w.before):
			Step(ctx, "restarted after %s", time.Since(began).Round(time.Second))
			return w.settle(ctx, b)
		case time.Since(began) > w.limits.Up:
			return b, fmt.Errorf("%s got the command, and still runs after %s; `systemctl list-jobs` there shows the "+
				"reason", w.machine.Name(), w.limits.Up)
		case !sure && b.State != "stopping" && time.Since(began) > w.limits.Ask:
			// The connection broke as the command was sent: it may never have arrived.
			if sure, err = w.send(ctx); err != nil {
				return b, err
			}
		}
		if err := w.wait(ctx); err != nil {
			return Boot{}, err
		}
	}
}

// send starts the reboot of the machine. sure is false if the machine may not
// have received it.
func (w *rebooting) send(ctx context.Context) (sure bool, err error) {
	_, err = w.machine.Run(ctx, Command{Args: []string{"systemctl", "--no-block", "reboot"}, Once: true})
	var lost *ssh.LostError
	if errors.As(err, &lost) {
		return false, nil
	}
	return err == nil, err
}

// ask asks with a limit: a connection into a machine that was switched off
// would say nothing for minutes.
func (w *rebooting) ask(ctx context.Context) (b Boot, err error) {
	limited(ctx, w.machine, w.limits.Ask, func(ctx context.Context) { b, err = ReadBoot(ctx, w.machine) })
	if err != nil {
		Forget(w.machine)
	}
	return b, err
}

// patience reports whether to continue after an unanswered question.
func (w *rebooting) patience(ctx context.Context, err error, began time.Time) error {
	var key *ssh.HostKeyError
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &key):
		return fmt.Errorf("another machine answers: %w", err)
	case !ssh.IsPermanent(err):
		w.refused = time.Time{}
	case w.refused.IsZero():
		w.refused = time.Now()
	case time.Since(w.refused) > w.limits.Refused:
		return err
	}
	if time.Since(began) > w.limits.Up {
		return fmt.Errorf("%s did not come back within %s: look at its console (%w)", w.machine.Name(), w.limits.Up, err)
	}
	return nil
}

func (w *rebooting) settle(ctx context.Context, b Boot) (Boot, error) {
	up, began := b, time.Now()
	for {
		switch b.State {
		case "running":
			return b, nil
		case "degraded":
			Step(ctx, "up, without %s", strings.Join(b.Failed, ", "))
			return b, nil
		}
		if time.Since(began) > w.limits.Settle {
			return b, fmt.Errorf("%s is up, but after %s still %q; `systemctl list-jobs` there shows the reason", w.machine.Name(), w.limits.Settle, b.State)
		}
		if err := w.wait(ctx); err != nil {
			return b, err
		}
		next, err := w.ask(ctx)
		switch {
		case err == nil && !next.equal(up):
			return next, fmt.Errorf("%s restarted once more by itself: look at its console", w.machine.Name())
		case err == nil:
			b = next
		default:
			if err := w.patience(ctx, err, began); err != nil {
				return b, err
			}
		}
	}
}

func (w *rebooting) wait(ctx context.Context) error {
	err := Pause(ctx, w.limits.Pause)
	if errors.Is(err, ErrStopped) {
		return fmt.Errorf("stopped while %s restarts", w.machine.Name())
	}
	return err
}
