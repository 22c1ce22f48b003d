package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stokehq/stoke/providers/connect/ssh"
)

// maxTries is how often a command is run whose connection breaks each time.
const maxTries = 3

// lockScript does everything that is done to the lock, one process at a time:
// flock ends with the process that has it. $1 is the folder, $2 what to do, $3
// the holder's token, $4 what the holder says of itself, $5 after how many
// seconds a lock is dead, $6 which process the holder is, $7 the token of a
// holder that is known to be dead. Time is the machine's own since boot, which
// cannot be set.
const lockScript = `# lock the machine
set -eu
umask 077
mkdir -p -- "$1"
exec 9>"$1/lock.guard"
flock -w 5 9 || { echo "the lock is busy for more than 5 s" >&2; exit 1; }
read -r now rest </proc/uptime
now=${now%%.*}
token= beat= who= process=
if [ -f "$1/lock" ]; then { read -r token; read -r beat; read -r who; read -r process; } <"$1/lock" || :; fi
case $beat in ''|*[!0-9]*) beat=-1 ;; esac
age=$((now - beat))
case $2 in
take)
  if [ -n "$token" ] && [ "$token" != "$3" ] && [ "$token" != "$7" ] && [ "$beat" -ge 0 ] && [ "$age" -ge 0 ] && [ "$age" -lt "$5" ]; then
    printf 'busy\n%s\n%s\n%s\n' "$who" "$process" "$token"
    exit 0
  fi ;;
beat)
  if [ "$token" != "$3" ]; then printf 'lost\n%s\n' "$who"; exit 0; fi ;;
free)
  if [ "$token" = "$3" ]; then rm -f -- "$1/lock"; fi
  printf 'free\n\n'
  exit 0 ;;
esac
printf '%s\n%s\n%s\n%s\n' "$3" "$now" "$4" "$6" >"$1/lock.new"
mv -f -- "$1/lock.new" "$1/lock"
printf 'held\n%s\n' "$4"`

type lease struct {
	machine     Machine
	token, who  string
	process     string // see process
	dir         string
	lasts, beat time.Duration

	ctx   context.Context // cancelled when the lease is lost or over
	lose  context.CancelCauseFunc
	end   context.CancelFunc // of the heartbeat
	beats context.Context
	all   sync.WaitGroup

	mu     sync.Mutex
	seen   time.Time // when the machine last said that it is ours
	paused bool      // the machine reboots
}

type leaseKey struct{}

func leaseFrom(ctx context.Context) *lease {
	s, _ := ctx.Value(leaseKey{}).(*lease)
	return s
}

type answer struct {
	state          string // held, busy, lost or free
	who            string // has it, or has taken it
	process, token string // of whoever has it, where that is busy
}

// ask does something to the lock on the machine. dead is the token of a holder
// that is known to be dead.
func (s *lease) ask(ctx context.Context, what, dead string) (answer, error) {
	out, err := Script(ctx, s.machine, lockScript, s.dir, what, s.token, s.who, strconv.Itoa(int(s.lasts/time.Second)), s.process, dead)
	if err != nil {
		return answer{}, err
	}
	lines := append(strings.SplitN(string(out), "\n", 5), "", "", "", "")
	a := answer{state: lines[0], who: oneLine(lines[1]), process: lines[2], token: lines[3]}
	switch a.state {
	case "held", "busy", "lost", "free":
		return a, nil
	}
	return answer{}, fmt.Errorf("the machine's lock answers %q", oneLine(a.state))
}

func (s *lease) start(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	s.ctx, s.lose = context.WithCancelCause(ctx)
	s.beats, s.end = context.WithCancel(ctx)
	s.mu.Lock()
	s.seen = time.Now()
	s.mu.Unlock()
	s.all.Go(s.renew)
}

func (s *lease) renew() {
	ticker := time.NewTicker(s.beat)
	defer ticker.Stop()
	for {
		select {
		case <-s.beats.Done():
			return
		case <-s.ctx.Done():
			return
		case <-ticker.C:
		}
		s.mu.Lock()
		paused := s.paused
		s.mu.Unlock()
		if !paused {
			ctx, cancel := context.WithTimeoutCause(s.beats, s.lasts, errNotAnswered)
			s.check(ctx)
			cancel()
		}
	}
}

// check renews the lease. A failed request does not lose the lease: a slow line
// may be full of uploaded data. Only the machine knows who has it.
func (s *lease) check(ctx context.Context) error {
	began := time.Now()
	a, err := s.ask(ctx, "beat", "")
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.paused || s.beats.Err() != nil:
		return nil
	case err != nil:
		return fmt.Errorf("%s: renew the lock: %w", s.machine.Name(), err)
	case a.state == "held":
		s.seen = began
		return nil
	}
	why := "it is gone; it was removed, or the machine was restarted"
	if a.who != "" {
		why = "it was taken over by " + a.who + ", after this process had not been heard of for " + s.lasts.String()
	}
	lost := &LostLockError{Host: s.machine.Name(), Why: why}
	s.lose(lost)
	return lost
}

// doubt makes held ask the machine, whenever it was last heard of.
func (s *lease) doubt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = time.Time{}
}

// checkHeld asks the machine when the last answer is older than two heartbeats: this
// process may have been suspended, and then only the wall clock continued.
func (s *lease) checkHeld(ctx context.Context) error {
	if s.ctx.Err() != nil {
		return context.Cause(s.ctx)
	}
	s.mu.Lock()
	now := time.Now()
	age := max(now.Sub(s.seen), now.Round(0).Sub(s.seen.Round(0)))
	fresh := s.paused || age < 2*s.beat
	s.mu.Unlock()
	if fresh {
		return nil
	}
	return s.check(ctx)
}

// bind returns a context that also ends with the lease.
func (s *lease) bind(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return ctx, func() { stop(); cancel(nil) }
}

// pause stops the heartbeat while the machine reboots, which ends the lock.
func (s *lease) pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = true
}

// resume takes the lock again after a reboot. It fails if another process was
// quicker.
func (s *lease) resume(ctx context.Context) error {
	began := time.Now()
	a, err := s.ask(ctx, "take", "")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused = false
	if err == nil && a.state != "held" {
		err = &LostLockError{Host: s.machine.Name(), Why: "after the reboot it was taken by " + a.who}
	}
	if err != nil {
		s.lose(err)
		return err
	}
	s.seen = began
	return nil
}

func (s *lease) stop() {
	s.end()
	dead := time.AfterFunc(2*s.beat, func() { Forget(s.machine) }) // a connection that does not even end what is cancelled
	s.all.Wait()
	dead.Stop()
}

// free ends the lease on the machine, if that can be reached; if not, it
// expires.
func (s *lease) free(ctx context.Context) {
	s.stop()
	if s.ctx.Err() == nil {
		limited(ctx, s.machine, 2*s.beat, func(ctx context.Context) { s.ask(ctx, "free", "") })
	}
	s.lose(context.Canceled)
}

// guarded is a machine that runs nothing once the lease is lost.
type guarded struct {
	Machine
	lease *lease
}

// Run asks before each try whether the lease is still ours: a connection that
// broke may have been away for long.
func (g *guarded) Run(ctx context.Context, cmd Command) (ssh.Output, error) {
	ctx, done := g.lease.bind(ctx)
	defer done()
	once := cmd
	once.Once = true
	for try := 1; ; try++ {
		if err := g.lease.checkHeld(ctx); err != nil {
			return ssh.Output{}, err
		}
		out, err := g.Machine.Run(ctx, once)
		var lost *ssh.LostError
		if cmd.Once || !errors.As(err, &lost) || try == maxTries {
			return out, err
		}
		g.lease.doubt()
	}
}

func (g *guarded) Put(ctx context.Context, f ssh.File) error {
	if err := g.lease.checkHeld(ctx); err != nil {
		return err
	}
	ctx, done := g.lease.bind(ctx)
	defer done()
	return g.Machine.Put(ctx, f)
}

func (g *guarded) identity() string { return identity(g.Machine) }
func (g *guarded) Forget()          { Forget(g.Machine) }

func (g *guarded) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	return Dial(ctx, g.Machine, network, address)
}
