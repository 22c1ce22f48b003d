package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/ps"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/supervisor"
	"github.com/stokehq/stoke/runtime/wire"
	"github.com/stokehq/stoke/runtime/worker"
	"github.com/stokehq/stoke/runtime/workload"
)

// The files that supervise hands to its roles, after the standard ones.
const (
	firstPort   = 3 // of a server; the coordinator's for workers
	apiPort     = 4
	controlPipe = 5
)

// place opens where checkpoints lie.
func (r *role) place(ctx context.Context, address string) (*checkpoint.Place, error) {
	if scheme, _, ok := strings.Cut(address, ":"); ok && (scheme == "gs" || scheme == "s3") && !strings.HasPrefix(address, scheme+"://") {
		return nil, badUsage("checkpoints: %q: want %s://BUCKET/PREFIX", address, scheme)
	}
	if !strings.Contains(address, "://") {
		path, err := r.makeFolder(address)
		if err != nil {
			return nil, badUsage("folder for checkpoints: %w", err)
		}
		address = path
	}
	place, err := checkpoint.Open(ctx, address)
	if err != nil {
		return nil, usageError{err}
	}
	return place, nil
}

func serverCommand() *cobra.Command {
	return roleCommand("ps --spec FILE --index I", "Hold a part of the parameters, or run a program's server",
		func(r *role, f *pflag.FlagSet) {
			indexFlag(r, f)
			listenFlag(r, f)
			coordinatorFlag(r, f)
			programFlags(r, f)
			apiFlag(r, f)
			f.StringVar(&r.state, "state", "", "`FOLDER` for its log of applied updates; default: none is kept")
			f.StringVar(&r.checkpoints, "checkpoints", "", "`PLACE` of checkpoints, as the coordinator has it; default: none, the coordinator writes and reads this server's part")
			patienceFlag(r, f)
			f.StringVar(&r.accounts, "accounts", "", "`FOLDER` for its own account of the updates that it applies; default: none is kept")
		}, serve)
}

func serve(ctx context.Context, r *role) error {
	if r.spec.HasProgram() {
		return runAgent(ctx, r, wire.RoleServer)
	}
	if r.index < 0 || r.index >= r.spec.ParameterServer.Replicas {
		return badUsage("--index is %d: the run has %d servers, counted from 0", r.index, r.spec.ParameterServer.Replicas)
	}
	l, err := r.listener(firstPort, r.listen, "workers")
	if err != nil {
		return err
	}
	applied, err := r.openAccount("applied")
	if err != nil {
		return err
	}
	noted := io.Writer(nil)
	if applied != nil {
		defer applied.Close()
		noted = applied
	}
	var place *checkpoint.Place
	if r.checkpoints != "" {
		if place, err = r.place(context.WithoutCancel(ctx), r.checkpoints); err != nil {
			return err
		}
		defer place.Close()
	}
	server := ps.New(r.index, r.known, place, noted, r.log)
	server.Fit = r.limitProcs
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- server.Serve(serving, l); cancel() }()
	how := server.Await(ctx, r.patience)
	cancel()
	if err := <-served; err != nil {
		return err
	}
	r.log.Info("leaving", "reason", how.Reason)
	return leave(how)
}

func workerCommand() *cobra.Command {
	return roleCommand("worker --spec FILE --index I --coordinator ADDRESS --servers ADDRESSES", "Compute gradients, or run a program",
		func(r *role, f *pflag.FlagSet) {
			indexFlag(r, f)
			f.IntVar(&r.firstIndex, "first-index", 0, "what is added to --index, where these workers' numbers go on behind others'")
			coordinatorFlag(r, f)
			f.StringVar(&r.state, "state", "", "`FOLDER` of its own; of a program only")
			f.StringVar(&r.checkpoints, "checkpoints", "",
				"`PLACE` of checkpoints, of a program or of an all_reduce; default: none, the coordinator writes and reads them")
			listenFlag(r, f)
			f.StringVar(&r.address, "address", "",
				"`HOST` of --listen for the other workers of an all_reduce; default: that of --listen")
			programFlags(r, f)
			apiFlag(r, f)
			serversFlag(r, f)
			dataFlag(r, f)
			patienceFlag(r, f)
			f.StringVar(&r.accounts, "accounts", "", "`FOLDER` for a record of each lease's input, to compare with the ledger; default: none is kept")
		}, work)
}

// openAccount opens a role's own account of its work in the folder of --accounts;
// nil: none is kept.
func (r *role) openAccount(of string) (*os.File, error) {
	if r.accounts == "" {
		return nil, nil
	}
	file, err := os.OpenFile(filepath.Join(r.accounts, fmt.Sprintf("%s-%d.jsonl", of, r.index)), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, badUsage("--accounts: %w", err)
	}
	return file, nil
}

// dataPatience is how long a worker waits at its start for data that it cannot
// read, before it tells the coordinator and ends.
const dataPatience = 6 * time.Second

func work(ctx context.Context, r *role) error {
	// A worker of a built-in model on this machine has no GPU before it has a slot.
	if r.spec.HasProgram() || !r.supervised {
		if err := r.checkGPUs(ctx, visibleGPUs()); err != nil && r.coordinator != "" {
			return r.refuse(ctx, err)
		}
	}
	if r.spec.HasProgram() {
		return runAgent(ctx, r, wire.RoleWorker)
	}
	if r.coordinator == "" {
		return badUsage("no coordinator: give --coordinator ADDRESS")
	}
	if err := r.needServers(); err != nil {
		return err
	}
	if r.firstIndex < 0 {
		return badUsage("--first-index is %d: it must not be negative", r.firstIndex)
	}
	r.index += r.firstIndex
	if !r.supervised && r.spec.Worker.Threads == 0 { // nobody shares what it may use
		r.spec.Worker.Threads = runtime.GOMAXPROCS(0)
	} else if r.threads > 0 {
		r.spec.Worker.Threads = r.threads
	}
	tail := new(worker.Tail)
	r.log = slog.New(slog.NewTextHandler(io.MultiWriter(tail, os.Stderr), nil))
	o := worker.Options{
		Spec: r.spec, Index: r.index, Credentials: r.known, Coordinator: r.coordinator,
		Servers: r.servers, Log: r.log, Tail: tail, Patience: r.patience, Cores: r.cores, Fit: r.limitProcs,
		Crashed: os.Getenv(supervisor.CrashedVariable), Spent: &r.spent,
	}
	account, err := r.openAccount("records")
	if err != nil {
		return err
	}
	if account != nil {
		defer account.Close()
		o.Accounts = account
	}
	end, err := r.openEngine(ctx, &o)
	defer end()
	if err == nil {
		o.Workload, err = workload.OpenPatiently(ctx, &r.spec, dataPatience, true, r.log)
	}
	asked := wire.Leave{End: spec.EndAsked, Reason: "asked to leave"}
	switch {
	case err != nil && ctx.Err() != nil:
		return leave(asked)
	case err != nil:
		return worker.Fail(ctx, o, err)
	}
	defer o.Workload.Close()
	if r.spec.Strategy == spec.StrategyAllReduce {
		end, err := r.hold(ctx, &o)
		if err != nil {
			return err
		}
		defer end()
	}
	err = worker.Run(ctx, o)
	how := asked
	if !errors.As(err, &how) && ctx.Err() == nil {
		return err
	}
	return leave(how)
}

// announced returns the address of a member's port for the other members. Tests put a
// proxy there.
var announced = func(l net.Listener, _ int) string { return l.Addr().String() }

// hold serves the parameters of a worker that is a member of an all-reduce, until end
// is called.
func (r *role) hold(ctx context.Context, o *worker.Options) (end func(), err error) {
	if r.supervised {
		r.listen = "127.0.0.1:0"
	}
	l, err := r.openPort(r.listen, "the other workers")
	if err != nil {
		return nil, err
	}
	var place *checkpoint.Place
	if r.checkpoints != "" {
		if place, err = r.place(context.WithoutCancel(ctx), r.checkpoints); err != nil {
			l.Close() //nolint:errcheck // nothing was read
			return nil, err
		}
	}
	applied, err := r.openAccount("applied")
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	noted := io.Writer(nil)
	if applied != nil {
		noted = applied
	}
	server := ps.New(r.index, r.known, place, noted, r.log)
	o.Holder, o.Address = ps.Member{Server: server}, announced(l, r.index)
	if _, port, err := net.SplitHostPort(o.Address); err == nil && r.address != "" {
		o.Address = net.JoinHostPort(r.address, port)
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(serving, l); err != nil {
			r.log.Error("other workers cannot connect", "error", err)
		}
	}()
	return func() {
		cancel()
		<-served
		if applied != nil {
			applied.Close()
		}
		if place != nil {
			place.Close()
		}
	}, nil
}

// leave returns the error that a process ends with after a Leave; nil when the
// run is finished.
func leave(how wire.Leave) error {
	if how.End == spec.EndFinished {
		return nil
	}
	return reportedError{how} // the log has it
}
