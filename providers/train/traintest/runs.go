package traintest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/providers/train/launch/local"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// Runs are numbers of runs for Make.
type Runs struct {
	Ended, Live int
	Size        Size
	// Files is the number of different histories; the ended runs share them by hard
	// links, as 200 of them take 10 GB. 0: each has its own.
	Files int
}

// Make makes runs in a folder and returns their ids, the ended ones first. The live runs
// belong to the calling process: they are lost when it ends.
func Make(ctx context.Context, folder string, of Runs) (ids []string, err error) {
	folder, err = filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	place := local.Place(folder)
	var histories []string
	for i := range of.Ended + of.Live {
		operation := fmt.Sprintf("traintest %d", i)
		id := launch.ID(operation)
		s := specOf(of.Size, i)
		f, err := place.Create(ctx, id, operation, s, launch.Code{})
		if err != nil {
			return nil, err
		}
		isLive := i >= of.Ended
		if !isLive && of.Files > 0 && len(histories) == of.Files {
			err = os.Link(histories[i%of.Files], f.Metrics())
		} else {
			_, err = WriteHistory(f.Metrics(), of.Size, time.Now())
			histories = append(histories, f.Metrics())
		}
		if err == nil {
			err = writeAround(f, of.Size, s, isLive)
		}
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func specOf(s Size, i int) spec.Spec {
	of := spec.Default()
	of.Model, of.Dataset = "mlp", spec.Dataset{Path: "/data/digits", Hash: strings.Repeat("0a", 32)}
	of.LearningRate = 0.01 * float64(1+i%7)
	of.Worker.Replicas, of.Worker.MinReplicas = s.Workers, 1
	return of
}

// writeAround writes the other files of a run: status, roles, supervisor, logs.
func writeAround(f run.Folder, s Size, of spec.Spec, isLive bool) error {
	self, err := run.Self()
	if err != nil {
		return err
	}
	if !isLive {
		self.Start++ // of an ended process
	}
	if err := run.WriteJSON(f.Supervisor(), run.Supervisor{Process: self, API: "http://127.0.0.1:1", Token: f.Token(), Version: "test"}); err != nil {
		return err
	}
	if err := writeStatus(f, s, of, isLive, s.Updates); err != nil {
		return err
	}
	var roles []run.Role
	for _, name := range newWriter(nil, s, time.Now()).roles {
		phase := run.RoleEnded
		if isLive {
			phase = run.RoleRunning
		}
		roles = append(roles, run.Role{Name: name, Phase: phase, Since: time.Now().Add(-time.Hour)})
		var lines strings.Builder
		for n := range 2000 {
			fmt.Fprintf(&lines, "time=%s level=INFO msg=\"update committed\" role=%s step=%d\n",
				time.Now().Add(time.Duration(n-2000)*time.Second).Format(time.RFC3339Nano), name, n)
		}
		if err := os.WriteFile(filepath.Join(f.Logs(), logName(name)), []byte(lines.String()), 0o600); err != nil {
			return err
		}
	}
	return run.WriteJSON(f.Roles(), roles)
}

func logName(role string) string {
	if role == "coordinator" {
		role += "-0"
	}
	return role + ".log"
}

func writeStatus(f run.Folder, s Size, of spec.Spec, isLive bool, step int64) error {
	now := time.Now()
	is := spec.Status{
		Run: f.Name(), Hash: of.Hash(), Trainer: "test", Phase: spec.Running, Step: step, Steps: 2 * s.Updates, Epoch: int(step / updatesEpoch),
		Epochs: int(2 * s.Updates / updatesEpoch), Records: step * int64(s.Workers) * recordsEach, Loss: spec.Number(lossAt(step)),
		Saved: step - step%perEvent, Workers: s.Workers, Wanted: s.Workers, Term: 1, Generation: 33,
		Metrics: map[string]float64{"accuracy": 0.93, "loss": 0.12, "samples_per_second": 10240},
		Started: now.Add(-time.Duration(s.Updates) * perUpdate), Updated: now,
	}
	if !isLive {
		is.Phase, is.Ended, is.Steps = spec.Succeeded, now.Add(-time.Hour), step
	} else {
		is.Usage = make(map[string]spec.Usage)
		for i, role := range newWriter(nil, s, now).roles {
			u := usageOf(role, i, step)
			u.At = now
			is.Usage[role] = *u
		}
	}
	return run.WriteJSON(f.StatusFile(), is)
}

// Keep lets a live run go on until ctx is done: ten updates a second, the usage of all
// roles every five seconds, and a status twice a second, as its coordinator would.
func Keep(ctx context.Context, folder, id string, s Size) error {
	f := run.Folder(filepath.Join(folder, id))
	of, err := f.ReadSpec()
	if err != nil {
		return err
	}
	last, err := lastOf(f.Metrics())
	if err != nil {
		return err
	}
	file, err := os.OpenFile(f.Metrics(), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	w := newWriter(file, s, time.Now())
	w.number = last
	tick := time.NewTicker(perUpdate)
	defer tick.Stop()
	for step := s.Updates + 1; ; step++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if err := w.update(step); err != nil {
			return err
		}
		if step%perSample == 0 {
			for i, role := range w.roles {
				if err := w.add(step, 1, spec.Event{Type: spec.EventUsage, Usage: usageOf(role, i, step)}); err != nil {
					return err
				}
			}
		}
		if step%5 == 0 {
			if err := writeStatus(f, s, of, true, step); err != nil {
				return err
			}
		}
	}
}

// lastOf returns the number of the last event in a file.
func lastOf(path string) (int64, error) {
	events, err := run.OpenEvents(path, run.EventFilter{Since: time.Now().Add(-time.Minute), Brief: true})
	if err != nil {
		return 0, err
	}
	defer events.Close()
	for last := int64(0); ; {
		e, ok, err := events.Next()
		if err != nil || !ok {
			return last, err
		}
		last = e.Number
	}
}
