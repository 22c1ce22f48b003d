package supervisor

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// Options says what to supervise.
type Options struct {
	Folder  run.Folder
	Program string    // path of this program, which roles are started from
	Version string    // of it
	In      io.Reader // where "go" comes from
	Out     io.Writer // where the identity is written, once
	Log     *slog.Logger
}

// ErrNotStarted means that the launcher went away before it said "go".
var ErrNotStarted = errors.New("the launcher closed the pipe before \"go\": nothing was started")

// Run supervises the run from its start, or from its newest checkpoint, to its
// end. When ctx is done it stops the run. The returned status has been written
// as the run's final one, unless the error is ErrFolderGone.
func Run(ctx context.Context, o Options) (spec.Status, error) {
	lock := flock.New(o.Folder.Lock(), flock.SetPermissions(0o600))
	locked, err := takeLock(ctx, lock, o.Folder)
	if err != nil {
		return spec.Status{}, fmt.Errorf("lock run: %w", err)
	}
	if !locked {
		return spec.Status{}, fmt.Errorf("lock run: %s already has a supervisor", o.Folder.Name())
	}
	defer lock.Unlock()
	home, err := openHome(o.Folder)
	if err != nil {
		return spec.Status{}, fmt.Errorf("open run: %w", err)
	}
	defer home.close()
	s, err := o.Folder.ReadSpec()
	if err != nil {
		return spec.Status{}, err
	}
	before, err := o.Folder.Status()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return spec.Status{}, err
	}
	if before.Phase == spec.Succeeded {
		return before, fmt.Errorf("run %s has already succeeded", o.Folder.Name())
	}
	ports, err := listen(listeningServers(&s))
	if err != nil {
		return spec.Status{}, err
	}
	defer ports.close()
	room, err := keepRoom(o.Folder)
	if err != nil {
		return spec.Status{}, err
	}
	if err := announce(o, ports); err != nil {
		room.give()
		return spec.Status{}, err
	}
	if err := waitForGo(ctx, o.In); err != nil {
		room.give()
		os.Remove(o.Folder.Supervisor())
		return spec.Status{}, err
	}
	outcome := initialStatus(o, s, before)
	if err = run.WriteJSON(o.Folder.Endpoints(), ports.endpoints()); err == nil {
		err = run.WriteJSON(o.Folder.StatusFile(), outcome)
	}
	if err != nil {
		outcome = unwritten(outcome, err)
	} else {
		outcome, err = newProcesses(o, s, ports, home).run(ctx, outcome)
	}
	if errors.Is(err, ErrFolderGone) || home.isMissing() {
		return spec.Status{}, fmt.Errorf("run %s: %w", o.Folder.Name(), ErrFolderGone)
	}
	if outcome.Cause == spec.CauseSuperseded { // the status is another one's by now
		room.give()
		return outcome, nil
	}
	return room.conclude(o.Folder, outcome)
}

// lockTime is how long the lock of a supervisor that was killed may be kept: until
// the last of its threads has ended.
const lockTime = 10 * time.Second

// takeLock takes the run's lock. Where the supervisor that has it has ended, takeLock
// waits until the lock is free.
func takeLock(ctx context.Context, lock *flock.Flock, f run.Folder) (bool, error) {
	locked, err := lock.TryLock()
	if locked || err != nil {
		return locked, err
	}
	if before, err := f.ReadSupervisor(); err != nil || before.Alive() {
		return false, nil
	}
	waiting, cancel := context.WithTimeout(ctx, lockTime)
	defer cancel()
	locked, err = lock.TryLockContext(waiting, 10*time.Millisecond)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return locked, err
}

// initialStatus is the status from "go" to the coordinator's first.
func initialStatus(o Options, s spec.Spec, before spec.Status) spec.Status {
	st := before
	st.Run, st.Hash, st.Epochs, st.Wanted = o.Folder.Name(), s.Hash(), s.Epochs, s.Worker.Replicas
	st.Phase, st.Cause, st.Message, st.Log, st.Ended, st.Workers, st.Usage = spec.Running, "", "starting", "", time.Time{}, 0, nil
	st.Updated = time.Now()
	if st.Started.IsZero() {
		st.Started, st.Evaluated = st.Updated, -1
	}
	return st
}

// announce makes the supervisor known, on disk and to the launcher.
func announce(o Options, p *ports) error {
	self, err := run.Self()
	if err != nil {
		return fmt.Errorf("identify this process: %w", err)
	}
	record := run.Supervisor{
		Process: self, API: p.apiURL(), Token: o.Folder.Token(), Version: o.Version,
	}
	if err := run.WriteJSON(o.Folder.Supervisor(), record); err != nil {
		return err
	}
	line, err := json.Marshal(record)
	if err != nil {
		return err
	}
	if _, err := o.Out.Write(append(line, '\n')); err != nil {
		o.Log.Warn("the identity has no reader", "error", err)
	}
	return nil
}

// waitForGo returns nil once "go" has come.
func waitForGo(ctx context.Context, in io.Reader) error {
	said := make(chan error, 1)
	go func() { // ends with the pipe, at the latest with the process
		line, err := bufio.NewReader(io.LimitReader(in, 16)).ReadString('\n')
		if err == nil && strings.TrimRight(line, "\r\n") != run.Go {
			err = fmt.Errorf("expected %q, got %q: nothing was started", run.Go, line)
		}
		if err == io.EOF {
			err = ErrNotStarted
		}
		said <- err
	}()
	select {
	case err := <-said:
		return err
	case <-ctx.Done():
		return ErrNotStarted
	}
}
