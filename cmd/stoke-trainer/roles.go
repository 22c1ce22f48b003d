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

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/runtime/coordinator"
	"github.com/stokehq/stoke/runtime/ps"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
	"github.com/stokehq/stoke/runtime/worker"
	"github.com/stokehq/stoke/runtime/workload"
)

// role is what every role of a run starts with.
type role struct {
	run        string
	index      int
	supervised bool

	folder    run.Folder
	spec      spec.Spec
	known     wire.Credentials
	endpoints spec.Endpoints
	log       *slog.Logger
}

// roleCommand makes the command of one role.
func roleCommand(use, short string, indexed bool, do func(ctx context.Context, r *role) error) *cobra.Command {
	r := new(role)
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := r.open(); err != nil {
				return err
			}
			if r.supervised {
				go exitWithSupervisor() // as long as the process
			}
			return do(cmd.Context(), r)
		},
	}
	runFlag(cmd, &r.run)
	if indexed {
		cmd.Flags().IntVar(&r.index, "index", 0, "which of its kind this is")
	}
	cmd.Flags().BoolVar(&r.supervised, "supervised", false, "started by supervise: end with it, use the ports it hands over")
	return cmd
}

// exitWithSupervisor ends the process when its standard input ends: only the
// supervisor holds the other end of that pipe.
func exitWithSupervisor() {
	io.Copy(io.Discard, os.Stdin) // whatever ends it, the supervisor is gone
	os.Exit(1)
}

func (r *role) open() error {
	r.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	var err error
	if r.folder, err = folder(r.run); err != nil {
		return err
	}
	if r.spec, err = r.folder.ReadSpec(); err != nil {
		return err
	}
	r.known.Version = version
	if r.known.Token, err = r.folder.ReadToken(); err != nil {
		return err
	}
	r.endpoints, err = r.folder.ReadEndpoints()
	return err
}

// listener takes over a port from the supervisor, or opens the one that is
// named in the run's folder.
func (r *role) listener(fd uintptr, address string) (net.Listener, error) {
	if !r.supervised {
		return net.Listen("tcp", address)
	}
	file := os.NewFile(fd, "port")
	if file == nil {
		return nil, fmt.Errorf("take port over: no file %d", fd)
	}
	defer file.Close()
	return net.FileListener(file)
}

func logTo(path string) (*slog.Logger, *os.File, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("open log: %w", err)
	}
	return slog.New(slog.NewTextHandler(file, nil)), file, nil
}

// The files that supervise hands to its roles, after the standard ones.
const (
	firstPort   = 3 // of a server; the coordinator's for workers
	apiPort     = 4
	controlPipe = 5
)

func coordinatorCommand() *cobra.Command {
	return roleCommand("coordinator --run DIR", "Hand out records, commit updates, keep the ledger", false, coordinate)
}

func coordinate(ctx context.Context, r *role) error {
	t, err := workload.Open(&r.spec)
	if err != nil {
		return r.hopeless(err)
	}
	defer t.Close()
	workers, err := r.listener(firstPort, r.endpoints.Coordinator)
	if err != nil {
		return err
	}
	defer workers.Close()
	api, err := r.listener(apiPort, "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer api.Close()
	o := coordinator.Options{
		Spec: r.spec, Folder: r.folder, Credentials: r.known, Workload: t, Workers: workers, API: api,
		Servers: r.endpoints.Servers, Stop: ctx.Done(), Log: r.log,
	}
	if r.supervised {
		control := os.NewFile(controlPipe, "control")
		defer control.Close()
		o.Control = control
	}
	// A signal stops the run in good order; only its own end ends the loop.
	outcome, err := coordinator.Run(context.WithoutCancel(ctx), o)
	if err != nil {
		return err
	}
	if outcome.Phase != spec.Succeeded {
		return reportedError{errors.New(outcome.Message)}
	}
	return nil
}

// hopeless reports an error that starting again cannot mend.
func (r *role) hopeless(err error) error {
	if r.supervised {
		control := os.NewFile(controlPipe, "control")
		defer control.Close()
		if tellErr := coordinator.Hopeless(control, r.folder, err); tellErr != nil {
			r.log.Error("cannot reach the supervisor", "error", tellErr)
		}
	}
	return err
}

func serverCommand() *cobra.Command {
	return roleCommand("ps --run DIR --index I", "Hold a part of the parameters", true, serve)
}

func serve(ctx context.Context, r *role) error {
	if r.index < 0 || r.index >= len(r.endpoints.Servers) {
		return fmt.Errorf("server %d of %d does not exist", r.index, len(r.endpoints.Servers))
	}
	l, err := r.listener(firstPort, r.endpoints.Servers[r.index])
	if err != nil {
		return err
	}
	applied, err := os.OpenFile(r.folder.Applied(r.index), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the log of updates: %w", err)
	}
	defer applied.Close()
	return ps.New(r.index, r.known, applied, r.log).Serve(ctx, l)
}

// accountsEnv names a folder in which workers note which records they read, so
// that tests can compare that with the ledger.
const accountsEnv = "STOKE_TRAINER_ACCOUNTS"

func workerCommand() *cobra.Command {
	return roleCommand("worker --run DIR --index I", "Compute gradients", true, work)
}

func work(ctx context.Context, r *role) error {
	o := worker.Options{
		Spec: r.spec, Index: r.index, Credentials: r.known, Coordinator: r.endpoints.Coordinator,
		Servers: r.endpoints.Servers, Log: r.log,
	}
	if dir := os.Getenv(accountsEnv); dir != "" {
		file, err := os.OpenFile(filepath.Join(dir, fmt.Sprintf("records-%d.jsonl", r.index)), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return fmt.Errorf("open the account of records: %w", err)
		}
		defer file.Close()
		o.Accounts = file
	}
	e, err := engineOf(&r.spec)
	if err == nil {
		o.Engine = e
		o.Workload, err = workload.Open(&r.spec)
	}
	if err != nil {
		worker.Fail(ctx, o, err)
		return err
	}
	defer o.Workload.Close()
	err = worker.Run(ctx, o)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
