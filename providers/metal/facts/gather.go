package facts

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
)

// Gather looks at a machine. It takes one round trip, and a second, short one
// where the first was so slow (it had to connect, say) that the clock could not
// be told to be right or wrong.
//
// Where root cannot be had, it looks as the user who logged in, and Sudo says
// so; only a machine that cannot be reached or looked at at all is an error.
func Gather(ctx context.Context, m host.Machine) (Facts, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("the machine did not answer within %s", within))
	defer cancel()
	return gather(ctx, m, time.Now)
}

// within is how long a look may take. The programs of the script have time
// limits; only the kernel may wait longer, for a failed disk or server.
const within = 3 * time.Minute

func gather(ctx context.Context, m host.Machine, now func() time.Time) (Facts, error) {
	look := host.Command{Args: []string{"sh", "-s"}, Stdin: []byte(script), Look: true}
	sent := now()
	out, err := m.Run(ctx, look)
	var denied error
	if err != nil && mayBeSudo(err) {
		denied, look.Unprivileged, sent = err, true, now()
		out, err = m.Run(ctx, look)
	}
	received := now()
	if err != nil {
		return Facts{}, fmt.Errorf("look at the machine: %w", err)
	}
	f, a, err := parse(out.Stdout)
	if err != nil {
		return Facts{}, fmt.Errorf("%s: %w", m.Name(), err)
	}
	if denied != nil {
		f.Sudo.Works, f.Sudo.Error = false, clean(oneLine(denied.Error()))
	}
	begin, end, err := a.span()
	if err != nil {
		f.Unread = append(f.Unread, "clock: "+err.Error())
		return f, nil
	}
	clock := clockOffset(sent, received, begin, end)
	if clock.doubtful() {
		if again, err := askClock(ctx, m, now); err == nil && again.error < clock.error {
			clock = again
		}
	}
	f.Clock.Offset, f.Clock.Resolution = clock.rounded()
	return f, nil
}

func oneLine(text string) string {
	var line strings.Builder
	for part := range strings.Lines(text) {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		switch before := line.String(); {
		case before == "":
		case strings.HasSuffix(before, ":"):
			line.WriteString(" ")
		default:
			line.WriteString("; ")
		}
		line.WriteString(part)
	}
	return line.String()
}

// mayBeSudo tells whether a command failed by how it was to become root rather
// than by the way to the machine. That is so where the machine was reached.
func mayBeSudo(err error) bool {
	var key *ssh.HostKeyError
	var command *ssh.CommandError
	return errors.As(err, &command) || (ssh.IsPermanent(err) && !errors.As(err, &key))
}

// MaxOffset is how far the clocks of two machines may be apart, in seconds:
// etcd warns from 1 s on, a certificate that was made just now is not valid yet
// on a machine that is behind (kubeadm dates its own back by 5 minutes, others
// do not), and logs and metrics of one run no longer line up. k0sctl refuses
// 30 s against the median.
const MaxOffset = 5.0

// reading is an offset, and how wrong it can be, in seconds.
type reading struct{ offset, error float64 }

// clockOffset is the offset of a clock that showed begin when the script began and
// end when it ended, from when ours sent it and received all of it: the
// midpoint, as NTP does it. The interval between them is the possible error.
func clockOffset(sent, received, begin, end time.Time) reading {
	most := begin.Sub(sent).Seconds()    // it began after it was sent
	least := end.Sub(received).Seconds() // it ended before it was received
	return reading{offset: (most + least) / 2, error: max((most-least)/2, 0)}
}

func (r reading) doubtful() bool { return r.error >= 0.5 }

func (r reading) rounded() (offset, resolution float64) {
	resolution = math.Ceil(r.error*10) / 10
	if o := math.Abs(r.offset); o >= 0.5 && o > r.error {
		offset = math.Round(r.offset*10) / 10
	}
	return offset, resolution
}

// askClock reads the clock alone, which is quicker than a look, and needs no sudo.
func askClock(ctx context.Context, m host.Machine, now func() time.Time) (reading, error) {
	sent := now()
	out, err := m.Run(ctx, host.Command{Args: []string{"date", "+%s.%N"}, Unprivileged: true})
	received := now()
	if err != nil {
		return reading{}, err
	}
	at, err := moment(string(out.Stdout))
	if err != nil {
		return reading{}, err
	}
	return clockOffset(sent, received, at, at), nil
}

// span reads when the script began and ended by the machine's clock.
func (a *answer) span() (begin, end time.Time, err error) {
	if begin, err = moment(a.first("begin")); err != nil {
		return begin, end, err
	}
	end, err = moment(a.first(closing))
	if err == nil && end.Before(begin) {
		err = errors.New("it was set back while it was read")
	}
	return begin, end, err
}

// moment reads what `date +%s.%N` prints.
func moment(s string) (time.Time, error) {
	whole, part, ok := strings.Cut(strings.TrimSpace(s), ".")
	sec, err := strconv.ParseInt(whole, 10, 64)
	nsec, err2 := strconv.ParseInt(part, 10, 64)
	if !ok || err != nil || err2 != nil || len(part) != 9 || nsec < 0 || sec < 0 || sec > math.MaxInt32*4 {
		return time.Time{}, fmt.Errorf("%q is no time", clean(s))
	}
	return time.Unix(sec, nsec), nil
}
