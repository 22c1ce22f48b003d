package kubernetes

import (
	"archive/tar"
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// collectTime bounds how long what a run leaves is fetched.
const collectTime = 10 * time.Minute

// conclude saves the results of an ended run: it fetches metrics, logs and
// model from the pods before they are deleted, and writes the status to the
// ConfigMap. Missing results are named in the status and do not stop the rest.
func (l *Launcher) conclude(ctx context.Context, c *cluster, s *sight, asked *session, state launch.State, durable bool) (launch.State, error) {
	within, cancel := context.WithTimeout(ctx, collectTime)
	defer cancel()
	state.Saved = -1
	if durable || asked != nil && state.Phase == spec.Succeeded {
		state.Saved = state.Status.Saved
	}
	if err := l.collect(within, c, s.config.Name, s, asked, state); err != nil {
		if ctx.Err() != nil {
			return state, context.Cause(ctx)
		}
		if state.Phase != spec.Succeeded || asked == nil {
			state.Message = strings.TrimSpace(state.Message + "; not all of it was collected: " + err.Error())
			state.Message = strings.TrimPrefix(state.Message, "; ")
		} else {
			return state, fmt.Errorf("collect what the run left: %w", err)
		}
	}
	if err := c.record(ctx, s, state); err != nil {
		return state, err
	}
	if asked != nil {
		asked.Collected(ctx) // it ends by itself, too
	}
	if s, err := c.look(ctx, s.config.Name); err == nil { // by now others may wait; the next to look sees to the rest
		return state, c.suspend(ctx, s)
	}
	return state, nil
}

// collect fills the run's folder on this machine: first a folder next to it,
// which takes its place if the collection is complete or there is none yet.
func (l *Launcher) collect(ctx context.Context, c *cluster, id string, s *sight, asked *session, state launch.State) error {
	folder := filepath.Join(l.folder, id)
	if err := os.MkdirAll(l.folder, 0o700); err != nil {
		return err
	}
	half, err := os.MkdirTemp(l.folder, ".collect-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(half)
	at := run.Folder(half)
	if err := os.MkdirAll(at.Logs(), 0o700); err != nil {
		return err
	}
	if err := run.WriteJSON(at.StatusFile(), state.Status); err != nil {
		return err
	}
	if of, err := s.spec(); err == nil {
		if err := at.WriteSpec(of); err != nil {
			return err
		}
	}
	errs := []error{c.collectLogs(ctx, s, at)}
	if asked != nil {
		errs = append(errs, collectMetrics(ctx, asked, at))
		if state.Phase == spec.Succeeded && !state.Program {
			errs = append(errs, collectModel(ctx, asked, at))
		}
	} else {
		errs = append(errs, errors.New("its coordinator's pod had ended, and its metrics and model with it"))
	}
	failed := errors.Join(errs...)
	if failed != nil && state.Phase == spec.Succeeded && asked != nil {
		return failed // it can be collected again
	}
	return settle(half, folder, failed)
}

// settle moves a collection to its place. A partial collection does not replace
// an earlier one.
func settle(half, folder string, failed error) error {
	_, err := os.Lstat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.Join(failed, os.Rename(half, folder))
	case err != nil:
		return errors.Join(failed, err)
	case failed != nil:
		return fmt.Errorf("%w; what was collected before is still in %s", failed, folder)
	}
	old := half + ".old"
	if err := os.Rename(folder, old); err != nil {
		return err
	}
	if err := os.Rename(half, folder); err != nil {
		return errors.Join(err, os.Rename(old, folder))
	}
	return os.RemoveAll(old)
}

// discard removes what was collected of a run.
func (l *Launcher) discard(id string) error {
	if !launch.ValidID(id) {
		return fmt.Errorf("%q is not the name of a run", id)
	}
	return os.RemoveAll(filepath.Join(l.folder, id))
}

func collectMetrics(ctx context.Context, asked *session, at run.Folder) error {
	file, err := os.OpenFile(at.Metrics(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	w := bufio.NewWriter(file)
	write := json.NewEncoder(w)
	for last := int64(0); ; {
		events, err := asked.Metrics(ctx, last, 0)
		if err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
		if len(events) == 0 {
			return w.Flush()
		}
		for _, e := range events {
			last = e.Number
			if err := write.Encode(e); err != nil {
				return err
			}
		}
	}
}

// maxModel bounds one file of a model.
const maxModel = 1 << 40

// collectModel unpacks the finished model. Nothing in it may lead out of the
// folder.
func collectModel(ctx context.Context, asked *session, at run.Folder) error {
	body, err := asked.Model(ctx)
	if err != nil {
		return fmt.Errorf("model: %w", err)
	}
	defer body.Close()
	root, err := os.OpenRoot(string(at))
	if err != nil {
		return err
	}
	defer root.Close()
	for from := tar.NewReader(body); ; {
		h, err := from.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("model: %w", err)
		}
		if h.Typeflag == tar.TypeDir {
			continue
		}
		if h.Typeflag != tar.TypeReg || h.Size > maxModel {
			return fmt.Errorf("model: %q is not a plain file", h.Name)
		}
		if err := root.MkdirAll(filepath.Dir(h.Name), 0o700); err != nil {
			return fmt.Errorf("model: %w", err)
		}
		file, err := root.OpenFile(h.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("model: %w", err)
		}
		_, err = io.Copy(file, from)
		if err = errors.Join(err, file.Close()); err != nil {
			return fmt.Errorf("model: %w", err)
		}
	}
}
