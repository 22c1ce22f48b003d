package main

import (
	"context"
	"time"

	"github.com/stokehq/stoke/runtime/checkpoint"
	"github.com/stokehq/stoke/runtime/code"
	"github.com/stokehq/stoke/runtime/coordinator"
	"github.com/stokehq/stoke/runtime/rendezvous"
	"github.com/stokehq/stoke/runtime/session"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/workload"
)

// conductor is the work of a run that the coordinator's process conducts.
type conductor interface {
	// open opens the data of the work, except of a run that is over. The error is
	// for a run that cannot begin with these arguments.
	open(ctx context.Context, r *role, over bool) error
	// openPlace opens the place of checkpoints.
	openPlace(ctx context.Context, r *role) error
	run(ctx context.Context, o session.Options) (spec.Status, error)
	// conclude reports the end of a run that is over.
	conclude(ctx context.Context, o session.Options, outcome spec.Status) error
	close()
}

// conductorOf returns the conductor of a run.
func conductorOf(r *role) conductor {
	if r.spec.HasProgram() {
		return rendezvousConductor{}
	}
	return &training{leaseTimeout: r.leaseTimeout}
}

// training trains a built-in model.
type training struct {
	leaseTimeout time.Duration
	data         *workload.Workload
	place        *checkpoint.Place
}

func (t *training) open(ctx context.Context, r *role, over bool) (err error) {
	if !over {
		t.data, err = workload.OpenPatiently(ctx, &r.spec, 10*dataPatience, r.hasBegun(), r.log)
	}
	return err
}

func (t *training) openPlace(ctx context.Context, r *role) (err error) {
	t.place, err = r.place(context.WithoutCancel(ctx), r.checkpointsAt())
	return err
}

func (t *training) options(o session.Options) coordinator.Options {
	return coordinator.Options{Options: o, Checkpoints: t.place, Workload: t.data, LeaseTimeout: t.leaseTimeout}
}

func (t *training) run(ctx context.Context, o session.Options) (spec.Status, error) {
	return coordinator.Run(ctx, t.options(o))
}

func (t *training) conclude(ctx context.Context, o session.Options, outcome spec.Status) error {
	return coordinator.Conclude(ctx, t.options(o), outcome)
}

func (t *training) close() {
	if t.data != nil {
		t.data.Close()
	}
	if t.place != nil {
		t.place.Close()
	}
}

// rendezvousConductor has agents run the user's program.
type rendezvousConductor struct{}

// open puts the program's code into the coordinator's folder, where that is given in
// parts.
func (rendezvousConductor) open(ctx context.Context, r *role, over bool) error {
	hash := r.spec.Program.Code
	if over || hash == "" || r.code == "" {
		return nil
	}
	return code.Join(ctx, r.code, hash, r.folder.Code(hash))
}

// openPlace has nothing to open: the program writes its checkpoints itself.
func (rendezvousConductor) openPlace(context.Context, *role) error { return nil }

func (rendezvousConductor) run(ctx context.Context, o session.Options) (spec.Status, error) {
	return rendezvous.Run(ctx, rendezvous.Options{Options: o})
}

func (rendezvousConductor) conclude(ctx context.Context, o session.Options, outcome spec.Status) error {
	return rendezvous.Conclude(ctx, rendezvous.Options{Options: o}, outcome)
}

func (rendezvousConductor) close() {}
