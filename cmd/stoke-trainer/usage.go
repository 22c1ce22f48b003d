package main

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/usage"
	"github.com/stokehq/stoke/runtime/wire"
)

// Times of usage.
const (
	sampleTime = 5 * time.Second // between two samples
	reportTime = 5 * time.Second // that one report may take
)

// reporter reports what this process and its descendants take from the machine.
// A sample that cannot be taken or sent is left out: the role neither ends nor waits
// for that.
type reporter struct {
	sample func(now time.Time) (usage.Sample, error)
	send   func(ctx context.Context, u spec.Usage) error
	spent  func() spec.Work // seconds since the start; nil: the role has none
	now    func() time.Time
	log    *slog.Logger
	warned bool
}

// run takes a sample at each tick, until the context ends.
func (r *reporter) run(ctx context.Context, ticks <-chan time.Time) {
	before, err := r.sample(r.now())
	var spentBefore spec.Work
	for {
		if err != nil {
			r.warn("the usage of this process cannot be measured", err)
		}
		select {
		case <-ticks:
		case <-ctx.Done():
			return
		}
		var sample usage.Sample
		if sample, err = r.sample(r.now()); err != nil {
			continue
		}
		if !before.At.IsZero() {
			u := usageSince(before, sample)
			if r.spent != nil {
				spent := r.spent()
				u.Work = spent.Shares(spentBefore, sample.At.Sub(before.At).Seconds())
				spentBefore = spent
			}
			if err := r.send(ctx, u); err != nil && ctx.Err() == nil {
				r.warn("the usage of this process cannot be reported", err)
			}
		}
		before = sample
	}
}

// warn logs the first failure only.
func (r *reporter) warn(text string, err error) {
	if !r.warned {
		r.log.Warn(text, "error", err)
	}
	r.warned = true
}

// usageSince returns the usage between two samples.
func usageSince(before, now usage.Sample) spec.Usage {
	seconds := now.At.Sub(before.At).Seconds()
	flow := func(before, now int64) spec.Flow {
		f := spec.Flow{Bytes: now}
		if seconds > 0 {
			f.PerSecond = float64(max(0, now-before)) / seconds
		}
		return f
	}
	return spec.Usage{
		CPU: now.CPUSince(before), Memory: now.Memory, Limit: now.Limit, Processes: now.Processes, Partly: now.Partly,
		Received: flow(before.Received, now.Received), Sent: flow(before.Sent, now.Sent),
		Read: flow(before.Read, now.Read), Written: flow(before.Written, now.Written),
	}
}

// newMeter returns the meter of this process and its descendants. The first process
// of a container has a network to itself, and a control group where that is of
// version 2; on a machine, others share them.
func newMeter() *usage.Meter {
	m := usage.NewProcesses(func() []int { return []int{os.Getpid()} })
	if os.Getpid() != 1 {
		return m
	}
	if group, ok := usage.OwnGroup(); ok {
		m = usage.NewGroup(group)
	}
	m.Network = true
	return m
}

// measure measures this process until the caller stops it.
func (r *role) measure(ctx context.Context, name string, send func(context.Context, spec.Usage) error) (stop func()) {
	r.watchGPUs(name)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // after SIGTERM a role works on
	report := &reporter{sample: newMeter().Sample, send: r.attachGPUs(send), now: time.Now, log: r.log}
	if name == wire.RoleWorker {
		report.spent = r.spent.Read
	}
	tick := time.NewTicker(r.usageInterval)
	var measuring sync.WaitGroup
	measuring.Go(func() { report.run(ctx, tick.C) })
	return func() {
		cancel()
		measuring.Wait()
		tick.Stop()
		if r.gpus != nil {
			r.gpus.Close()
		}
	}
}

// reportUsage sends the usage of a worker or server to the coordinator, where the
// role has its API, until the caller stops it.
func (r *role) reportUsage(ctx context.Context, name string) (stop func()) {
	if r.api == "" || name == wire.RoleCoordinator {
		return func() {}
	}
	client := api.New(r.api, r.known.Token, r.known.Certificate)
	report := spec.UsageReport{Role: name, Index: r.index + r.firstIndex}
	end := r.measure(ctx, name, func(ctx context.Context, u spec.Usage) error {
		ctx, cancel := context.WithTimeout(ctx, reportTime)
		defer cancel()
		report.Usage = u
		return client.Usage(ctx, report)
	})
	return func() {
		end()
		client.Close()
	}
}

// measureOwn returns the usage of the coordinator's own process. A sample that the
// session does not take is replaced by the next one.
func (r *role) measureOwn(ctx context.Context) (samples <-chan spec.Usage, stop func()) {
	newest := make(chan spec.Usage, 1)
	return newest, r.measure(ctx, wire.RoleCoordinator, func(_ context.Context, u spec.Usage) error {
		select {
		case <-newest:
		default:
		}
		newest <- u // the only sender
		return nil
	})
}
