package coordinator

import "time"

// clock adds up the times between run and pause. One measures the time that goes
// into training: not into evaluation, nor into waiting for workers or servers.
type clock struct {
	total   time.Duration
	since   time.Time
	running bool
}

func (c *clock) run() {
	if !c.running {
		c.running, c.since = true, time.Now()
	}
}

func (c *clock) pause() {
	if c.running {
		c.running = false
		c.total += time.Since(c.since)
	}
}

func (c *clock) set(running bool) {
	if running {
		c.run()
	} else {
		c.pause()
	}
}

func (c *clock) read() time.Duration {
	if c.running {
		return c.total + time.Since(c.since)
	}
	return c.total
}
