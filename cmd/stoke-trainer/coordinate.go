package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stokehq/stoke/runtime/coordinator"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/supervisor"
)

func coordinatorCommand() *cobra.Command {
	return roleCommand("coordinator --spec FILE --state FOLDER --servers ADDRESSES", "Hand out records, commit updates, keep the ledger",
		func(r *role, f *pflag.FlagSet) {
			listenFlag(r, f)
			f.StringVar(&r.listenAPI, "listen-api", "127.0.0.1:0", "`ADDRESS` for the HTTP API, host:port")
			serversFlag(r, f)
			dataFlag(r, f)
			f.StringVar(&r.name, "run", "", "`NAME` of the run, as its status has it; default: the name of its folder")
			f.StringVar(&r.state, "state", "", "`FOLDER` of its own, for ledger, metrics and status; it outlives the process")
			f.StringVar(&r.checkpoints, "checkpoints", "", "`PLACE` of checkpoints: a folder, gs://BUCKET/PREFIX or s3://BUCKET/PREFIX; default: checkpoints in the folder of its own")
			f.DurationVar(&r.leaseTimeout, "lease-timeout", time.Minute, "how long a worker may get nowhere with the records of a lease before others get them; twice as long with each time that they were too long for it")
			f.StringVar(&r.metrics, "metrics", "", "\"-\": print every event of metrics.jsonl on standard output as well, one JSON object per line")
			f.StringVar(&r.outcome, "outcome", "", "`FILE` that gets the run's final status as JSON, cut to 4,096 bytes; an existing file is written in place, such as /dev/termination-log. The exit status is 0 once it was written")
			f.StringVar(&r.code, "code", "",
				"`FOLDER` with the snapshot of a program's code, in parts; default: the folder of its own has it")
			f.DurationVar(&r.linger, "linger", 0, "how long to answer the API after the run's end, until stoke has collected the results (POST /v1/collected)")
		}, declare)
}

// declare coordinates, and ends well where the run's end has been declared in
// the file of --outcome: what starts processes again would train once more, or
// tell the same end over and over.
func declare(ctx context.Context, r *role) error {
	err := coordinate(ctx, r)
	if err != nil && r.declared {
		r.log.Info("the outcome says how the run ended", "outcome", r.outcome, "end", endOf(err))
		return nil
	}
	return err
}

func coordinate(ctx context.Context, r *role) error {
	if r.supervised {
		file := os.NewFile(controlPipe, "control")
		defer file.Close()
		r.control = &line{to: file}
		go r.life.beat(r.control) // until file is closed
	}
	if err := r.mayCoordinate(); err != nil {
		return err
	}
	o := session.Options{
		Spec: r.spec, Name: r.name, Folder: r.folder, Credentials: r.known, Servers: r.servers, Log: r.log, Linger: r.linger, Turn: r.life.turn,
	}
	if r.metrics != "" {
		o.Events = os.Stdout
	}
	own, stop := r.measureOwn(ctx)
	defer stop()
	o.Usage = own
	before, over := r.concluded()
	work := conductorOf(r)
	defer work.close()
	var hopeless error
	if err := work.open(ctx, r, over); err != nil {
		if hopeless = r.reportHopeless(ctx, err); r.supervised || r.linger <= 0 {
			return hopeless
		}
		before = r.unstartableStatus(ctx, err)
	}
	closeAll, err := r.openPorts(&o)
	defer closeAll()
	if err == nil {
		err = work.openPlace(ctx, r)
	}
	if err != nil {
		return err
	}
	if over || hopeless != nil {
		return r.conclude(ctx, work, o, before, hopeless)
	}
	var unwritten error
	if r.supervised {
		leave, stop := signal.NotifyContext(context.Background(), supervisor.LeaveSignal)
		defer stop()
		o.Control, o.Stop, o.Leave = r.control, ctx.Done(), leave.Done()
	} else {
		o.Leave = ctx.Done() // whoever owns the run starts the next one, or stops the run by its API
		o.Ended = func(s spec.Status) { unwritten = r.writeEnd(s) }
	}
	// A signal stops the run in good order; only its own end ends the loop.
	r.limitProcs(1)
	outcome, err := work.run(context.WithoutCancel(ctx), o)
	if err = errors.Join(err, unwritten); err != nil {
		return err
	}
	// One that another coordinator has followed does not speak for the run. One
	// without a supervisor that is asked to leave does not end the run.
	return endError(outcome.Phase, outcome.Message, r.supervised && ctx.Err() != nil || outcome.Cause == spec.CauseSuperseded)
}

// mayCoordinate checks the coordinator's own flags.
func (r *role) mayCoordinate() error {
	if r.state == "" {
		return badUsage("no folder of its own: give --state FOLDER")
	}
	if err := r.needServers(); err != nil {
		return err
	}
	switch {
	case r.leaseTimeout <= 0:
		return badUsage("--lease-timeout is %v: it must be above 0", r.leaseTimeout)
	case r.linger < 0:
		return badUsage("--linger is %v: it must not be negative", r.linger)
	case r.metrics != "" && r.metrics != "-":
		return badUsage("--metrics is %q: \"-\" is for standard output, nothing else is known; metrics.jsonl in the folder of its own is always written", r.metrics)
	}
	if r.outcome != "" {
		file, err := os.OpenFile(r.outcome, os.O_WRONLY|os.O_CREATE, 0o600) // now, and not first after hours of training
		if err != nil {
			return badUsage("--outcome: %w", err)
		}
		file.Close()
	}
	return nil
}

// openPorts opens where the coordinator listens. All that was opened is for the
// function to close, error or not.
func (r *role) openPorts(o *session.Options) (closeAll func(), err error) {
	var opened []io.Closer
	closeAll = func() {
		for _, c := range opened {
			c.Close()
		}
	}
	for _, port := range []struct {
		to      *net.Listener
		fd      uintptr
		address string
		of      string
	}{{&o.Workers, firstPort, r.listen, "workers"}, {&o.API, apiPort, r.listenAPI, "api"}} {
		if *port.to, err = r.listener(port.fd, port.address, port.of); err != nil {
			return closeAll, err
		}
		opened = append(opened, *port.to)
	}
	return closeAll, nil
}

// checkpointsAt is where the run's checkpoints lie.
func (r *role) checkpointsAt() string {
	if r.checkpoints != "" {
		return r.checkpoints
	}
	return r.folder.Checkpoints()
}

// reportHopeless reports an error that starting again cannot mend.
func (r *role) reportHopeless(ctx context.Context, err error) error {
	if r.supervised {
		if tellErr := coordinator.ReportHopeless(r.control, r.folder, err); tellErr != nil {
			r.log.Error("cannot reach the supervisor", "error", tellErr)
		}
	} else {
		r.writeOutcome(r.unstartableStatus(ctx, err))
	}
	return usageError{err}
}

// unstartableStatus is the status of a run that cannot begin as it was started. It is not
// kept: with other arguments it can.
func (r *role) unstartableStatus(ctx context.Context, why error) spec.Status {
	now := time.Now()
	s := spec.Status{Hash: r.spec.Hash(), Epochs: r.spec.Epochs, Wanted: r.spec.Worker.Replicas, Evaluated: -1, Started: now, Updated: now}
	if err := run.ReadJSON(r.folder.StatusFile(), &s); err != nil {
		r.log.Info("the run has no status yet", "error", err)
	}
	if s.Run = r.name; s.Run == "" {
		s.Run = r.folder.Name()
	}
	saved, err := r.savedIn(ctx)
	s.Saved = max(s.Saved, saved)
	if s = coordinator.Unable(s, why); err != nil && s.Phase == spec.Failed {
		s.Phase, s.Cause = spec.Stopped, spec.CauseTrainer // for all one knows it has learned something
		s.Message += fmt.Sprintf("; and its checkpoints cannot be looked for: %v", err)
	}
	return s
}

// savedIn is the step of the newest checkpoint in the run's place, which outlives
// the folder of the coordinator's own; 0: there is none.
func (r *role) savedIn(ctx context.Context) (int64, error) {
	place, err := r.place(ctx, r.checkpointsAt())
	if err != nil {
		return 0, err
	}
	defer place.Close()
	names, err := place.Names(ctx, spec.StepPrefix)
	newest := int64(0)
	for _, name := range names {
		if step, ok := spec.StepOf(name); ok {
			newest = max(newest, step)
		}
	}
	return newest, err
}

// hasBegun reports whether the run has made an update before.
func (r *role) hasBegun() bool {
	var s spec.Status
	return run.ReadJSON(r.folder.StatusFile(), &s) == nil && s.Step > 0
}

// concluded gives the end of a run that is over, as a coordinator before this
// one wrote it. A supervisor knows by itself.
func (r *role) concluded() (s spec.Status, over bool) {
	if r.supervised || run.ReadJSON(r.folder.StatusFile(), &s) != nil {
		return s, false
	}
	return s, s.Hash == r.spec.Hash() && (s.Phase == spec.Succeeded || s.Phase == spec.Failed)
}

// conclude tells a run's end once more. why is set where it cannot begin.
func (r *role) conclude(ctx context.Context, work conductor, o session.Options, outcome spec.Status, why error) error {
	if why == nil {
		r.writeOutcome(outcome)
	}
	o.Leave = ctx.Done()
	if err := work.conclude(context.WithoutCancel(ctx), o, outcome); err != nil {
		return err
	}
	if why != nil {
		return why
	}
	return endError(outcome.Phase, outcome.Message, false)
}

// writeEnd makes the run's end known to whoever comes later.
func (r *role) writeEnd(s spec.Status) error {
	r.writeOutcome(s)
	return run.WriteJSON(r.folder.StatusFile(), s)
}

// writeOutcome writes the final status where --outcome says. The file may be a
// mount: it is written in place. The run has ended as it has, written or not.
func (r *role) writeOutcome(s spec.Status) {
	if r.outcome == "" {
		return
	}
	data, err := s.Outcome(spec.OutcomeBytes)
	if err == nil {
		err = os.WriteFile(r.outcome, data, 0o600)
	}
	if err != nil {
		r.log.Error("cannot write the outcome", "error", err)
		return
	}
	r.declared = true
}
