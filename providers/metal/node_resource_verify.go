package metal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers/metal/host"
	"github.com/stokehq/stoke/providers/metal/member"
	"github.com/stokehq/stoke/providers/metal/nvidia"
	"github.com/stokehq/stoke/runtime/gpu"
)

const (
	// nodeVerified is the record's note of the GPUs that were tried.
	nodeVerified = "node GPUs tried"
	// verifyLimit is until pods that try GPUs have begun: their image may be still to
	// come.
	verifyLimit = 8 * time.Minute
)

// cutOff tells whether a record is of a node that has not been finished.
func cutOff(rec *host.Record) (bool, error) {
	if rec == nil {
		return false, nil
	}
	for key, expected := range map[string]bool{nodeJoining: false, nodeLeaving: false, nodeReady: true} {
		if there, err := rec.ReadNote(key, new(any)); err != nil || there != expected {
			return true, err
		}
	}
	return false, nil
}

// checkVerified finds out whether the node's GPUs must still be tested, and which pods
// use some of them. Lost GPUs are reported and not tested.
func (l *nodeLook) checkVerified(ctx context.Context) error {
	l.untried = false
	if !l.verify || len(l.lost) > 0 || !l.hasGPUs() {
		return nil
	}
	var was map[string]int64
	if _, err := l.rec.ReadNote(nodeVerified, &was); err != nil || maps.Equal(was, l.want.GPUs) {
		return err
	}
	l.untried = true
	var err error
	if l.users, _, err = member.Users(ctx, l.client, l.have, l.want.GPUs); err != nil {
		return &clusterError{l.client.Endpoint, err}
	}
	return nil
}

func (l *nodeLook) hasGPUs() bool {
	for _, n := range l.want.GPUs {
		if n > 0 {
			return true
		}
	}
	return false
}

// try has pods try the GPUs of a node that is ready. GPUs in use are left out,
// with a note: the next apply that finds them free tests all.
func (l *nodeLook) try(ctx context.Context) error {
	have, err := member.Observe(ctx, l.client, l.want.Name)
	if err != nil || have == nil {
		return err
	}
	l.have = have
	if err := l.checkVerified(ctx); err != nil || !l.untried || len(have.Shortages(l.want)) > 0 {
		return err
	}
	if err := l.judgeGPUs(ctx); err != nil {
		return err
	}
	reload := func(ctx context.Context) error {
		_, err := host.Run(ctx, l.on, "systemctl", "daemon-reload")
		return err
	}
	v, err := member.Verify(ctx, l.client, l.want, l.probeImage, reload, verifyLimit)
	if err != nil {
		return err
	}
	if l.users = v.Users; len(v.Users) > 0 {
		l.untriedNote = fmt.Sprintf("%s: pods have GPUs of node %s (%s), so that not all of them could be opened, and systemd was not reloaded under them. Apply tries the rest once they have ended.", l.on.Name(), l.want.Name, strings.Join(v.Users, ", "))
		return nil
	}
	l.untried = false
	return l.rec.Set(ctx, nodeVerified, l.want.GPUs)
}

// judgeGPUs returns an error where a GPU of the machine is unfit.
func (l *nodeLook) judgeGPUs(ctx context.Context) error {
	s, err := nvidia.Readings(ctx, l.on)
	if err != nil && !errors.Is(err, nvidia.ErrNoReadings) { // the probe's pod tells whether the driver works
		return err
	}
	h := gpu.Judge(s, gpu.Expectation{})
	if h.Verdict != gpu.Unfit {
		return nil
	}
	return &member.UnverifiedError{Node: l.want.Name, Why: h.Reasons()}
}

// unverified is an error of try that says what a pod found out.
func unverified(err error) bool { return errors.As(err, new(*member.UnverifiedError)) }
