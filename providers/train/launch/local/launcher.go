package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"time"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/program"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// poll is how often a run's status is looked at; it is rewritten about twice a
// second.
const poll = 100 * time.Millisecond

// Launcher runs experiments on this machine, each in a folder of its own.
type Launcher struct {
	place   Place
	trainer func(*spec.Spec) (string, error) // path of the trainer of a run; called when a run is started
}

var _ launch.Launcher = (*Launcher)(nil)

// New makes the launcher of the runs in a folder, whose path is absolute. trainer
// returns the path of the trainer of a run.
func New(folder string, trainer func(*spec.Spec) (string, error)) *Launcher {
	return &Launcher{Place(folder), trainer}
}

// Locate finds out which run people mean: by its id, within a folder of runs,
// or by the path of its own folder.
func Locate(given, folder string) (place, id string, err error) {
	if launch.ValidID(given) {
		return folder, given, nil
	}
	full, err := filepath.Abs(given)
	return filepath.Dir(full), filepath.Base(full), err
}

func (l *Launcher) find(id string) (run.Folder, error) {
	f, err := l.place.Find(id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("%w: %s", launch.ErrNoRun, l.place.Folder(id))
	case errors.Is(err, ErrNotOurs):
		return "", fmt.Errorf("%s: %w", l.place.Folder(id), launch.ErrForeign)
	}
	return f, err
}

// Start makes the run's folder and starts its supervisor, or leaves nothing.
func (l *Launcher) Start(ctx context.Context, operation string, s spec.Spec, c launch.Code) (string, error) {
	trainer, err := l.trainer(&s)
	if err != nil {
		return "", err
	}
	id := launch.ID(operation)
	f, err := l.place.Create(ctx, id, operation, s, c)
	if err != nil {
		return "", err
	}
	if _, err := Launch(ctx, trainer, f); err != nil {
		return "", errors.Join(err, l.place.Remove(id))
	}
	return id, nil
}

// Settle removes a run that was never let go: it has trained nothing, and its
// supervisor ends by itself.
func (l *Launcher) Settle(ctx context.Context, operation string) (string, error) {
	id := launch.ID(operation)
	if operation == "" {
		return "", launch.ErrNoRun
	}
	_, err := l.place.Settle(ctx, id)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrNotOurs):
		return "", fmt.Errorf("%w: %w", launch.ErrNoRun, err)
	case err != nil:
		return "", fmt.Errorf("%w. Look at %s, or remove it", err, l.place.Folder(id))
	}
	return id, nil
}

// ID follows from the operation.
func (l *Launcher) ID(operation string) string { return launch.ID(operation) }

// Location gives paths on this machine.
func (l *Launcher) Location(id string) launch.Location {
	f := l.place.Folder(id)
	return launch.Location{Place: string(l.place), Run: string(f), Logs: f.Logs(), Metrics: f.Metrics()}
}

// Spec reads the run's specification as it is now.
func (l *Launcher) Spec(_ context.Context, id string) (spec.Spec, error) {
	f, err := l.find(id)
	if err != nil {
		return spec.Spec{}, err
	}
	return f.ReadSpec()
}

// Status reads how the run stands from its folder.
func (l *Launcher) Status(_ context.Context, id string) (launch.State, error) {
	f, err := l.find(id)
	if err != nil {
		return launch.State{}, err
	}
	return standing(f)
}

// staleTime is the age of a status that Status reports as old. The coordinator
// renews it twice a second. The supervisor replaces a hung coordinator within 30 s.
const staleTime = 10 * time.Second

func standing(f run.Folder) (launch.State, error) {
	fail := func(err error) (launch.State, error) {
		return launch.State{}, fmt.Errorf("read the run's status: %s: %w", f.StatusFile(), err)
	}
	// Looked at before the status is read: a supervisor that ends in between
	// has written its final status by then.
	alive := Alive(f)
	s, err := f.Status()
	if err == nil {
		err = launch.Check(s, f.Name())
	}
	if err != nil {
		return fail(err)
	}
	// A supervisor that ended before its run was released leaves a pending run
	// that will never start.
	if s.Phase == spec.Pending && !alive {
		s.Phase = spec.Lost
	}
	st := launch.State{Status: s, Roles: roles(f, alive)}
	if age := time.Since(s.Updated); alive && s.Phase == spec.Running && age > staleTime {
		why := fmt.Sprintf("its status is %.0f s old: the coordinator hangs, or loads a checkpoint", age.Seconds())
		st.Warnings = append(st.Warnings, why)
	}
	is, err := f.ReadSpec()
	if st.Program = err == nil && is.HasProgram(); st.Program {
		st.Saved, err = newestOfProgram(f, s)
	} else {
		st.Saved, err = newest(f)
	}
	if err != nil {
		return fail(err)
	}
	if sup, err := f.ReadSupervisor(); err == nil {
		st.Version = sup.Version
	}
	return st, nil
}

// newestOfProgram is newest for a program, whose checkpoints have no step in their
// names: the status has it.
func newestOfProgram(f run.Folder, s spec.Status) (int64, error) {
	complete, err := program.Checkpoints(f.Checkpoints())
	if err != nil || len(complete) == 0 {
		return -1, err
	}
	return max(s.Saved, 0), nil
}

// newest is the step of the run's newest checkpoint, the finished model
// included; -1 where there is none.
func newest(f run.Folder) (step int64, err error) {
	if step, err = finished(f); err != nil {
		return -1, err
	}
	saved, err := f.SavedSteps()
	if err != nil {
		return -1, err
	}
	for _, n := range saved {
		step = max(step, n)
	}
	return step, nil
}

// finished is the step of the finished model, -1 where there is none. It is
// there without a final status where the supervisor died in between. A damaged
// manifest is none: no coordinator takes it either.
func finished(f run.Folder) (step int64, err error) {
	finals, err := f.Finals()
	if err != nil {
		return -1, err
	}
	for _, final := range finals {
		var m struct {
			Step *int64 `json:"step"`
		}
		err = run.ReadJSON(filepath.Join(final, spec.ManifestFile), &m)
		if unreadable := new(fs.PathError); errors.As(err, &unreadable) && !errors.Is(err, fs.ErrNotExist) {
			return -1, err
		}
		if err == nil && m.Step != nil && *m.Step >= 0 {
			return *m.Step, nil
		}
	}
	return -1, nil
}

// roles tells of the processes; runs of the first version did not record them.
func roles(f run.Folder, alive bool) (out []launch.Role) {
	recorded, err := f.ReadRoles()
	if err != nil {
		return nil
	}
	node, _ := os.Hostname() // "": it has none
	for _, r := range recorded {
		if !alive && r.Phase != run.RoleGivenUp {
			r.Phase = run.RoleEnded
		}
		out = append(out, launch.Role{Name: r.Name, Phase: r.Phase, Restarts: r.Restarts, Since: r.Since, Node: node, Reason: r.Reason})
	}
	return out
}

// Watch looks at the run's status ten times a second.
func (l *Launcher) Watch(ctx context.Context, id string) iter.Seq2[launch.State, error] {
	return func(yield func(launch.State, error) bool) {
		tick := time.NewTicker(poll)
		defer tick.Stop()
		for {
			s, err := l.Status(ctx, id)
			if !yield(s, err) || err != nil {
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}
}

// changeTime is how long a running run may take to take a change on.
const changeTime = 30 * time.Second

// Change goes to the run's own API.
func (l *Launcher) Change(ctx context.Context, id string, s spec.Spec) error {
	f, err := l.find(id)
	if err != nil {
		return err
	}
	is, err := f.ReadSpec()
	if err != nil {
		return err
	}
	client, err := f.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	return client.Change(ctx, spec.LiveBetween(is, s))
}

// Resume starts a supervisor on the run's folder again, then removes earlier code.
func (l *Launcher) Resume(ctx context.Context, id string, s spec.Spec, c launch.Code) error {
	trainer, err := l.trainer(&s)
	if err != nil {
		return err
	}
	f, err := l.find(id)
	if err != nil {
		return err
	}
	if err := awaitEnding(ctx, f); err != nil { // it may still write
		return fmt.Errorf("resume run: %w", err)
	}
	if !Alive(f) { // or else the lock says no
		if err := endProgram(ctx, f); err != nil {
			return fmt.Errorf("resume run: %w", err)
		}
	}
	is, err := f.ReadSpec()
	if err != nil {
		return err
	}
	st, err := standing(f)
	if err != nil {
		return err
	}
	s.Layers = is.Layers // it stays the same run
	if err := writeCode(ctx, f, c); err != nil {
		return err
	}
	if err := f.WriteSpec(s); err != nil {
		return err
	}
	// Nobody else writes to an idle run. Its status must not look like an end
	// until the new supervisor writes one.
	st.Phase, st.Cause, st.Message, st.Hash = spec.Pending, "", "", s.Hash()
	if err := run.WriteJSON(f.StatusFile(), st.Status); err != nil {
		return err
	}
	if _, err = Launch(ctx, trainer, f); err != nil {
		return err
	}
	f.RemoveCode(s.Program.Code) //nolint:errcheck // the next resume removes what is left
	return nil
}

// Stop ends the run's supervisor, and with it all processes.
func (l *Launcher) Stop(ctx context.Context, id string, patience time.Duration) error {
	f, err := l.find(id)
	if errors.Is(err, launch.ErrNoRun) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := end(ctx, f, patience); err != nil {
		return err
	}
	return endProgram(ctx, f)
}

// Remove removes the run's folder.
func (l *Launcher) Remove(_ context.Context, id string) error { return l.place.Remove(id) }
