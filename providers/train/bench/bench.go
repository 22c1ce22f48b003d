package bench

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/certificate"
	"github.com/stokehq/stoke/runtime/code"
	"github.com/stokehq/stoke/runtime/spec"
)

// Result is the time of updates of vectors of one length.
type Result struct {
	Floats  int     `json:"floats"`
	Workers int     `json:"workers"`
	Updates int     `json:"updates"`
	Seconds float64 `json:"seconds"`         // median of the means of 5 updates in a row
	Fastest float64 `json:"fastest_seconds"` // the lowest of these means
}

// Files of the members, in the folder of the program's code: a launcher keeps that
// folder as secret as the run's own token.
const (
	tokenFile       = "token"
	certificateFile = "certificate.pem"
)

// removeTime is the time for the run to end and to be removed.
const removeTime = 2 * time.Minute

// Measure starts a run of so many workers, passes on its results, and removes the run,
// also where ctx has ended; a *providers.RunLeftError says that this failed. trainer is
// the path of stoke-trainer where the workers run.
func Measure(ctx context.Context, l launch.Launcher, trainer string, workers int, each func(Result) error) (err error) {
	s, c, err := prepare(ctx, trainer, workers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(c.Folder)) }()
	id, err := l.Start(ctx, "", s, c)
	if id != "" {
		defer func() {
			if removing := remove(ctx, l, id); removing != nil {
				err = errors.Join(err, &providers.RunLeftError{Run: id, Place: l.Location(id).Place, Err: removing})
			}
		}()
	}
	if err != nil {
		return err
	}
	return follow(ctx, l, id, each)
}

// prepare returns the run, and its code: a folder with the members' credentials.
func prepare(ctx context.Context, trainer string, workers int) (s spec.Spec, c launch.Code, err error) {
	folder, err := os.MkdirTemp("", "stoke-bench-*")
	if err != nil {
		return s, c, err
	}
	c.Folder = folder
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(folder))
		}
	}()
	var b [32]byte
	rand.Read(b[:]) // never fails
	made, err := certificate.Make("bench")
	if err != nil {
		return s, c, err
	}
	identity, err := made.PEM()
	if err != nil {
		return s, c, err
	}
	for name, text := range map[string][]byte{tokenFile: []byte(hex.EncodeToString(b[:])), certificateFile: identity} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return s, c, err
		}
	}
	if c.Snapshot, err = code.Read(ctx, folder); err != nil {
		return s, c, err
	}
	s = spec.DefaultProgram()
	s.Name = "bench-allreduce"
	s.Worker.Replicas, s.Worker.MinReplicas = workers, workers
	s.Program.Code, s.Program.MaxRestarts, s.Program.StopGrace = c.Snapshot.Hash(), 0, spec.Duration(time.Second)
	s.Program.Command, err = spec.JSONOf([]string{
		trainer, "bench", "allreduce", "--token-file", tokenFile, "--certificate-file", certificateFile,
	})
	return s, c, err
}

// follow reads the results until the run ends. Its failure is an error with the last
// lines of rank 0.
func follow(ctx context.Context, l launch.Launcher, id string, each func(Result) error) error {
	var last []string
	err := l.Logs(ctx, id, launch.LogOptions{Role: "rank-0", Follow: true}, func(line launch.Line) error {
		var r Result
		if json.Unmarshal([]byte(line.Text), &r) == nil && r.Floats > 0 {
			return each(r)
		}
		last = append(last[max(0, len(last)-9):], line.Text)
		return nil
	})
	if err != nil || ctx.Err() != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	for state, err := range l.Watch(ctx, id) {
		switch {
		case err != nil:
			return err
		case state.Phase == spec.Succeeded:
			return nil
		case state.Phase.Final() || launch.Idle(state.Phase):
			return fmt.Errorf("the run ended as %s: %s", state.Phase, strings.TrimSpace(state.Message+"\n"+strings.Join(last, "\n")))
		}
	}
	return context.Cause(ctx)
}

// remove ends the run, and removes what it leaves.
func remove(ctx context.Context, l launch.Launcher, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
	defer cancel()
	return errors.Join(l.Stop(ctx, id, 0), l.Remove(ctx, id))
}
