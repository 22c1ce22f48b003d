package firewall

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers/connect/ssh"
	"github.com/stokehq/stoke/providers/metal/host"
)

// RolledBackError says that new rules were taken back because the machine could
// not be reached by a new connection.
type RolledBackError struct {
	Host    string
	From    string   // the address that we come from, as the machine sees it; "" when it is not known
	Allowed bool     // the new rules let From in: something else is in the way
	Cause   error    // why there was no new connection
	Added   []string // lines that were taken back
	Removed []string // lines that are there again
	// Unseen is set if the machine could not be reached for the result: it rolls
	// back by itself after the time in the text.
	Unseen error
}

const maxLines = 20

const (
	ufwTime      = 3 * time.Second // that ufw has for each rule
	confirmPause = 500 * time.Millisecond
)

func (e *RolledBackError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: the new firewall rules were rolled back, because no new SSH connection could confirm them: %v.\n", e.Host, e.Cause)
	if e.Unseen != nil {
		fmt.Fprintf(&b, "stoke could not read whether it has rolled back already, but it does so by itself: %v.\n", e.Unseen)
	} else {
		b.WriteString("It has the rules again that it had before.\n")
	}
	switch {
	case e.Slow():
		b.WriteString("Apply again when it has less to do, or with a longer confirm_within.\n")
	case e.From == "":
		b.WriteString("Declare the address that stoke connects from in ssh_from.\n")
	case e.Allowed:
		fmt.Fprintf(&b, "The rules do let %s in: look for another firewall, a port that is redirected, or a bastion that is not in ssh_from.\n", e.From)
	default:
		fmt.Fprintf(&b, "stoke connects from %s, which the rules do not let in: declare it in ssh_from.\n", e.From)
	}
	list := func(what string, lines []string) {
		for i, l := range lines {
			if i == maxLines {
				fmt.Fprintf(&b, "  … and %d more\n", len(lines)-i)
				return
			}
			fmt.Fprintf(&b, "  %s %s\n", what, l)
		}
	}
	list("taken back:", e.Added)
	list("there again:", e.Removed)
	return strings.TrimSuffix(b.String(), "\n")
}

// Slow tells that the machine did not load the rules in time: they may be right.
func (e *RolledBackError) Slow() bool { return errors.Is(e.Cause, errSlow) }

func (e *RolledBackError) Unwrap() error { return e.Cause }

// commit loads rules and has them confirmed by a new connection, which it
// returns.
func commit(ctx context.Context, m host.Machine, want Spec, have Have, c change) (fresh host.Machine, done func(), err error) {
	redial, ok := m.(Redialer)
	if !ok {
		return nil, nil, fmt.Errorf("%s: rules cannot be confirmed without a second connection", m.Name())
	}
	window := cmp.Or(want.Confirm, defaultConfirm)
	window += time.Duration(len(c.ufw)) * ufwTime
	from := ownAddress(ctx, m)
	token := rand.Text() // names this attempt
	host.Step(ctx, "loading firewall rules, to be rolled back unless they are confirmed")
	deadline := time.Now().Add(window)
	confirming, cancel := context.WithDeadline(ctx, deadline.Add(-time.Second))
	defer cancel()
	loaded := make(chan error, 1)
	go func() { loaded <- load(ctx, confirming, m, token, window, c) }()
	select {
	case err := <-loaded:
		if err != nil {
			return nil, nil, err
		}
	case <-time.After(window / 2): // they may cut even the connection that stands
	}
	host.Step(ctx, "connecting again to confirm the firewall rules")
	fresh, done = redial.Fresh(time.Until(deadline) * 2 / 3)
	if err = confirm(confirming, fresh, token); err == nil {
		return fresh, done, nil
	}
	done()
	select {
	case failed := <-loaded:
		if failed != nil {
			return nil, nil, failed
		}
	default:
	}
	host.Step(ctx, "rolling the firewall rules back")
	confirmed, unseen := rollBack(ctx, m, token, deadline)
	if confirmed {
		return m, func() {}, nil
	}
	failed := &RolledBackError{Host: m.Name(), Cause: err}
	if from.IsValid() {
		failed.From = from.Addr().String()
		failed.Allowed = want.Allows(TCP, from.Port(), from.Addr())
	}
	failed.Added, failed.Removed = difference(c.lines, have.Lines)
	failed.Unseen = unseen
	return nil, nil, failed
}

// load runs loadScript. It may be that the rules cut even the connection that
// stands: then how it ended is not known, and confirming finds out.
func load(ctx, loading context.Context, m host.Machine, token string, window time.Duration, c change) error {
	_, err := m.Run(loading, host.Command{
		Args:  []string{"sh", "-c", loadScript, "sh", token, strconv.Itoa(int(window.Seconds()))},
		Stdin: c.input(), Once: true,
	})
	var lost *ssh.LostError
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("load firewall rules: %w; the machine rolls back to its former rules by itself within %s", err, window)
	case errors.As(err, &lost), loading.Err() != nil:
		return nil
	}
	return fmt.Errorf("load firewall rules: %w", err)
}

// errSlow is why rules are not confirmed that the machine could not load in time.
var errSlow = errors.New("the machine was too slow to load them")

// confirm confirms rules, as soon as all of them are loaded.
func confirm(ctx context.Context, m host.Machine, token string) error {
	for {
		said, err := host.Script(ctx, m, confirmScript, token)
		if err != nil {
			return err
		}
		switch strings.TrimSpace(string(said)) {
		case "confirmed":
			return nil
		case "loading":
		default:
			return errors.New("the confirmation came too late")
		}
		select {
		case <-time.After(confirmPause):
		case <-ctx.Done():
			return errSlow
		}
	}
}

// rollBack spares waiting for the timer where the connection that stood before
// still does, and otherwise waits for it. It may turn out that the rules were
// confirmed, and only the answer was lost.
func rollBack(ctx context.Context, m host.Machine, token string, deadline time.Time) (confirmed bool, err error) {
	limit := time.Until(deadline) + 20*time.Second
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		try, stop := context.WithTimeout(ctx, max(limit/4, 5*time.Second))
		said, err := host.Script(try, m, rollbackScript, token)
		stop()
		switch state := strings.TrimSpace(string(said)); {
		case err == nil && (state == "rolled-back" || state == "nothing"):
			return false, nil
		case err == nil && state == "confirmed":
			return true, nil
		case err == nil:
			err = fmt.Errorf("they are %s", state)
		}
		select {
		case <-ctx.Done():
			return false, err
		case <-time.After(time.Second):
		}
	}
}

// ownAddress is where our connection comes from, with the port that it goes to,
// as the machine sees it; invalid when it does not say. Root by sudo has no such
// variable.
func ownAddress(ctx context.Context, m host.Machine) netip.AddrPort {
	out, err := m.Run(ctx, host.Command{Args: []string{"sh", "-c", `printf %s "$SSH_CONNECTION"`}, Unprivileged: true})
	fields := strings.Fields(string(out.Stdout))
	if err != nil || len(fields) != 4 {
		return netip.AddrPort{}
	}
	a, errA := netip.ParseAddr(fields[0])
	port, errP := strconv.ParseUint(fields[3], 10, 16)
	if errA != nil || errP != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a.Unmap().WithZone(""), uint16(port))
}

// difference is what of want is missing in have, and what have has beside it,
// each in its order.
func difference(want, have []string) (missing, extra []string) {
	count := make(map[string]int, len(have))
	for _, l := range have {
		count[l]++
	}
	for _, l := range want {
		if count[l]--; count[l] < 0 {
			missing = append(missing, l)
		}
	}
	// Of equal lines the first ones are those that were wanted.
	for _, l := range slices.Backward(have) {
		if count[l] > 0 {
			count[l]--
			extra = append(extra, l)
		}
	}
	slices.Reverse(extra)
	return missing, extra
}
