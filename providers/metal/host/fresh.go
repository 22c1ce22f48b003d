package host

import (
	"time"

	"github.com/stokehq/stoke/providers/connect/ssh"
)

// Fresh is the same machine by new connections over the same hops, tried for as
// long as patience says. It proves that the machine can still be reached, which
// an open connection does not. done closes them.
func (r *Remote) Fresh(patience time.Duration) (m Machine, done func()) {
	pool := &ssh.Pool{Patience: patience}
	if r.Pool != nil {
		pool.Timeouts = r.Pool.Timeouts
	}
	// One try must not use up all the patience there is.
	if most := patience / 3; most > 0 && (pool.Timeouts.Dial == 0 || pool.Timeouts.Dial > most) {
		pool.Timeouts.Dial = most
	}
	return &Remote{Pool: pool, Target: r.Target}, pool.Close
}
