package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers"
)

// Step reports the present step to the user.
func Step(ctx context.Context, format string, args ...any) {
	providers.CallFrom(ctx).Report(providers.Progress{Step: fmt.Sprintf(format, args...), Percent: -1})
}

// ErrStopped: the user asked to stop.
var ErrStopped = errors.New("stopped")

// Pause waits, unless the context ends or the user asks to stop.
func Pause(ctx context.Context, d time.Duration) error {
	stopping := providers.CallFrom(ctx).Stopping
	select {
	case <-stopping: // it is said at once, however short the pause is
		return ErrStopped
	default:
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-stopping:
		return ErrStopped
	}
}

// Disruption is what a change interrupts on a machine, from nothing upwards.
// The values are ordered: the disruption of several changes is the greatest.
type Disruption uint8

const (
	None              Disruption = iota
	ReloadsSystemd               // systemctl daemon-reload, which running GPU containers may lose their GPUs by
	RestartsKubelet              // pods go on, the node may be NotReady for a moment
	RestartsContainer            // containerd restarts: pods go on, exec and logs break off
	StopsAPI                     // the API server of this machine is not available for a while
	Drains                       // pods have to leave the machine
	Reboots
)

func (d Disruption) String() string {
	switch d {
	case None:
		return "none"
	case ReloadsSystemd:
		return "reloads systemd"
	case RestartsKubelet:
		return "restarts the kubelet"
	case RestartsContainer:
		return "restarts containerd"
	case StopsAPI:
		return "makes the API unavailable"
	case Drains:
		return "drains the node"
	case Reboots:
		return "reboots the machine"
	}
	return "unknown"
}

// Change is one fact that differs from the declaration.
type Change struct {
	Fact       string   // as people call it, such as "sysctl net.ipv4.ip_forward"
	Path       []string // its place in the resource, such as sysctl, net.ipv4.ip_forward
	Have, Want string   // "" where there is nothing
	Disruption Disruption
	// Reloads reports that it also reloads systemd, as the scripts of packages do
	// that restart a service.
	Reloads bool
	// Drains reports that pods have to leave for it, if the machine is a node.
	Drains bool
	Says   string // further text for people
}

// Greatest is the disruption of all changes together.
func Greatest(changes []Change) Disruption {
	d := None
	for _, c := range changes {
		d = max(d, c.Disruption)
	}
	return d
}

// Reloads reports whether one of the changes, if not the greatest, reloads
// systemd.
func Reloads(changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool { return c.Reloads || c.Disruption == ReloadsSystemd })
}

// Fate is the result for a fact when its resource is destroyed.
type Fate string

const (
	Restored Fate = "restored" // it is as it was before
	Removed  Fate = "removed"  // it was not there before and is gone again
	Left     Fate = "left"     // it stays, and Why says why
)

// Outcome is what destroying did to one fact.
type Outcome struct {
	Fact string
	Fate Fate
	Why  string // for Left
	// Expected marks a leftover that is normal and harmless: reported without a
	// warning.
	Expected bool
}

// ReportLeft reports facts that are no longer declared and stay. It is one line:
// of lines that come at the same time, only the last is shown.
func ReportLeft(ctx context.Context, outcomes []Outcome) {
	var left []string
	for _, o := range outcomes {
		if o.Fate == Left {
			left = append(left, o.Fact+": "+o.Why)
		}
	}
	if len(left) > 0 {
		providers.CallFrom(ctx).Report(providers.Progress{Line: "no longer declared, and left: " + strings.Join(left, "; "), Percent: -1})
	}
}
