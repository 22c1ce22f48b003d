package host

import (
	"time"

	"github.com/stokehq/stoke/providers/connect/ssh"
)

// Fresh is the same machine by connections of its own, made anew over the same
// hops and tried for as long as patience says. It answers whether the machine
// can still be reached, which a connection that stands already cannot. done
// closes them.
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
