package session

import "time"

// Stopwatch adds up the times between Run and Pause.
type Stopwatch struct {
	total   time.Duration
	since   time.Time
	running bool
}

// Run starts the time, unless it runs.
func (w *Stopwatch) Run() {
	if !w.running {
		w.running, w.since = true, time.Now()
	}
}

// Pause stops the time, unless it is stopped.
func (w *Stopwatch) Pause() {
	if w.running {
		w.running = false
		w.total += time.Since(w.since)
	}
}

// Set runs or pauses the time.
func (w *Stopwatch) Set(running bool) {
	if running {
		w.Run()
	} else {
		w.Pause()
	}
}

// Read returns the sum so far.
func (w *Stopwatch) Read() time.Duration {
	if w.running {
		return w.total + time.Since(w.since)
	}
	return w.total
}

// Start sets the sum of a stopwatch that has none yet.
func (w *Stopwatch) Start(from time.Duration) {
	if w.total == 0 {
		w.total = from
	}
}
