package spec

import (
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/stokehq/stoke/runtime/gpu"
)

// Usage is what the processes of one role take from their machine.
type Usage struct {
	Role      string    `json:"role,omitempty"`               // worker-1
	At        time.Time `json:"at,omitzero"`                  // when the coordinator got it; an event has a time of its own
	CPU       float64   `json:"cpu,omitempty"`                // mean number of busy processors since the sample before
	Memory    int64     `json:"memory_bytes,omitempty"`       // resident, without the page cache; of several samples the largest
	Limit     int64     `json:"memory_limit_bytes,omitempty"` // 0: none is known
	Received  Flow      `json:"received,omitzero"`            // network; counted only in a container
	Sent      Flow      `json:"sent,omitzero"`                // likewise
	Read      Flow      `json:"read,omitzero"`                // from disks
	Written   Flow      `json:"written,omitzero"`             // to disks
	Processes int       `json:"processes,omitempty"`
	Partly    string    `json:"partly,omitempty"` // why numbers are missing
	Work      Work      `json:"work,omitzero"`    // of a worker of a built-in model
	// Waiting is the reason why the role does not work yet: "waits for a GPU: …"; "": it
	// works.
	Waiting string `json:"waiting,omitempty"`
	// GPUs has the newest readings of the GPUs of the role's machine; of an event
	// without names and processes.
	GPUs gpu.Snapshot `json:"gpus,omitzero"`
}

// HasNetwork reports whether the network of the role is counted: it is in containers only.
func (u *Usage) HasNetwork() bool { return u.Received != (Flow{}) || u.Sent != (Flow{}) }

// Work is the time that a worker spends, in seconds, or as shares of the time since the
// sample before. The rest of its time it waits for leases and parameters.
type Work struct {
	Compute     float64 `json:"compute,omitempty"`     // the engine computes
	Communicate float64 `json:"communicate,omitempty"` // parameters and gradients travel
	Data        float64 `json:"data,omitempty"`        // records are not read yet
}

// Shares returns the shares of each kind of work in so many seconds that came after
// another sum.
func (w Work) Shares(before Work, seconds float64) Work {
	share := func(now, before float64) float64 { return min(1, max(0, (now-before)/max(seconds, 1e-9))) }
	return Work{share(w.Compute, before.Compute), share(w.Communicate, before.Communicate), share(w.Data, before.Data)}
}

// Flow is a count of bytes.
type Flow struct {
	Bytes     int64   `json:"bytes,omitempty"`            // since the start of the role's process or container
	PerSecond float64 `json:"bytes_per_second,omitempty"` // mean since the sample before
}

// UsageReport is the usage that the process of a role sends to the coordinator.
type UsageReport struct {
	Role  string `json:"role"` // worker or ps
	Index int    `json:"index"`
	Usage Usage  `json:"usage"`
}

// Limits of a valid usage.
const (
	maxProcessors = 1 << 20
	maxFlow       = 1e15 // bytes per second
	maxPartly     = 1000 // bytes of text
	maxWaiting    = 1000 // likewise
)

// Validate checks numbers that another process has sent.
func (u *Usage) Validate() error {
	isIn := func(v, most float64) bool { return v >= 0 && v <= most } // false for NaN
	if !isIn(u.CPU, maxProcessors) {
		return errors.New("cpu is not a number of processors")
	}
	if !isIn(u.Work.Compute, 1) || !isIn(u.Work.Communicate, 1) || !isIn(u.Work.Data, 1) {
		return errors.New("work is not made of shares between 0 and 1")
	}
	if u.Memory < 0 || u.Limit < 0 || u.Processes < 0 || u.Processes > math.MaxInt32 {
		return errors.New("memory and processes must not be negative")
	}
	for _, f := range []Flow{u.Received, u.Sent, u.Read, u.Written} {
		if f.Bytes < 0 || !isIn(f.PerSecond, maxFlow) {
			return errors.New("bytes of network and disks must not be negative")
		}
	}
	if len(u.Partly) > maxPartly {
		return errors.New("partly is too long")
	}
	if len(u.Waiting) > maxWaiting {
		return errors.New("waiting is too long")
	}
	return u.GPUs.Validate()
}

// Waits returns the usage of a role that waits, with the reason, shortened to the length
// that Validate allows.
func (u Usage) Waits(text string) Usage {
	u.Waiting = first(text, maxWaiting)
	return u
}

// Waiting names the first role that waits before it works, with its reason; "": none does.
func (s *Status) Waiting() string {
	if s == nil { // nothing was published yet
		return ""
	}
	for _, role := range slices.Sorted(maps.Keys(s.Usage)) {
		if text := s.Usage[role].Waiting; text != "" {
			return role + " " + text
		}
	}
	return ""
}

// MergeUsage returns one usage for two of a role, which are the means of so many
// samples; the first one is older.
func MergeUsage(a Usage, samples int64, b Usage, more int64) Usage {
	share := float64(more) / float64(samples+more)
	mean := func(x, y float64) float64 { return x + (y-x)*share }
	both := b // it has the newest totals
	both.CPU = mean(a.CPU, b.CPU)
	both.Memory = max(a.Memory, b.Memory)
	both.Processes = max(a.Processes, b.Processes)
	both.Received.PerSecond = mean(a.Received.PerSecond, b.Received.PerSecond)
	both.Sent.PerSecond = mean(a.Sent.PerSecond, b.Sent.PerSecond)
	both.Read.PerSecond = mean(a.Read.PerSecond, b.Read.PerSecond)
	both.Written.PerSecond = mean(a.Written.PerSecond, b.Written.PerSecond)
	both.Work.Compute = mean(a.Work.Compute, b.Work.Compute)
	both.Work.Communicate = mean(a.Work.Communicate, b.Work.Communicate)
	both.Work.Data = mean(a.Work.Data, b.Work.Data)
	both.GPUs = mergeGPUs(a.GPUs, samples, b.GPUs, more)
	return both
}

// mergeGPUs merges the readings of each GPU of the newer snapshot.
func mergeGPUs(a gpu.Snapshot, samples int64, b gpu.Snapshot, more int64) gpu.Snapshot {
	older := a.GPUs
	b.GPUs = slices.Clone(b.GPUs)
	for i, r := range b.GPUs {
		at := slices.IndexFunc(older, func(o gpu.Reading) bool { return o.Index == r.Index && o.UUID == r.UUID })
		if at >= 0 {
			b.GPUs[i] = gpu.Merge(older[at], samples, r, more)
		}
	}
	return b
}
