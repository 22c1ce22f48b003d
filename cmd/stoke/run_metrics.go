package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/plan/archive"
	"github.com/stokehq/stoke/providers"
)

// metricsFlags are the options of metrics.
type metricsFlags struct {
	lookFlags
	asJSON, asCSV, f, follow, force bool
	since, every, zip               string
}

func metricsCommand(s *session) *cobra.Command {
	var o metricsFlags
	cmd := &cobra.Command{
		Use:   "metrics [options] ADDRESS",
		Short: "Show the metrics of a run",
		Long: `Shows what was measured in the run behind an object of the state, the oldest
first: every update with its loss, every evaluation, and what else happened.
-csv gives one row per value: number, time, type, epoch, step, name, value. An
event without values is one row with an empty name and value. Usage of processors,
memory, network and disks is only in -json and -csv.
With -f it follows new entries until the run ends.
-zip writes a file with the metrics as JSON lines and as CSV, the arguments of the
object, the status, and the logs of every role.

  stoke metrics -since=10m -every=100 train_experiment.digits
  stoke metrics -csv -since=2026-01-31T12:00:00Z train_experiment.digits
  stoke metrics -zip=digits.zip train_experiment.digits`,
		Args: atMost(1, "; the metrics of one run are shown at a time"),
	}
	cmd.Flags().BoolVar(&o.f, "f", false, "Follow new entries until the run ends.")
	cmd.Flags().BoolVar(&o.follow, "follow", false, "The same as -f.")
	cmd.Flags().BoolVar(&o.asJSON, "json", false, "Print one JSON object per line.")
	cmd.Flags().BoolVar(&o.asCSV, "csv", false, "Print comma-separated values.")
	cmd.Flags().StringVar(&o.since, "since", "",
		"Leave out events before `START`: a step, a time such as 2026-01-31T12:00:00Z, or a duration before now such as 10m.")
	cmd.Flags().StringVar(&o.every, "every", "",
		"Show one update, and one sample of usage of each role, in `INTERVAL`: a number of steps, or a duration such as 30s.")
	cmd.Flags().StringVar(&o.zip, "zip", "", "Write `FILE`, such as run.zip, whole or not at all.")
	cmd.Flags().BoolVar(&o.force, "force", false, "Let -zip replace a file that exists.")
	o.add(s, cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		only, err := o.selection(time.Now())
		if err != nil {
			return &usageError{path: cmd.CommandPath(), err: err}
		}
		l := runCommand{cmd.CommandPath(), "The run cannot be read", &o.lookFlags}
		return s.look(cmd.Context(), l, args, func(ctx context.Context, r *runs, run providers.Run) error {
			if o.zip != "" {
				return r.saveRun(ctx, args[0], run, &o)
			}
			if o.asCSV {
				if err := s.printOrStop("%s", archive.Header()); err != nil {
					return err
				}
			}
			want := providers.RunMetrics{Follow: o.f || o.follow, Since: only.fromTime, Brief: !o.asJSON}
			if !o.asJSON && !o.asCSV {
				want.Usage = providers.WithoutUsage
			}
			return run.Metrics(ctx, want, func(e providers.RunEvent) error {
				switch {
				case !only.take(e):
					return nil
				case o.asJSON:
					return s.printOrStop("%s\n", r.secrets.Redact(string(e.JSON)))
				case o.asCSV:
					return s.printOrStop("%s", archive.Rows(e))
				}
				return s.printOrStop("%s\n", r.clean(metricsLine(e)))
			})
		})
	}
	return cmd
}

// saveRun writes a run as a zip file.
func (r *runs) saveRun(ctx context.Context, name string, run providers.Run, o *metricsFlags) error {
	at, err := parseRun(name)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(o.zip)
	if err != nil {
		return err
	}
	err = archive.Create(ctx, path, o.force, archive.Content{
		Name: at.name, Run: run, Configuration: r.configurationAt(at), Clean: r.secrets.Redact,
	})
	if errors.Is(err, os.ErrExist) {
		r.s.complain(problem("The file exists already", "%s was left as it is. Name another file, or replace it with -force.", o.zip))
		return failed
	}
	if err != nil {
		return err
	}
	return r.s.printOrStop("Wrote %s.\n", o.zip)
}

// selection chooses events.
type selection struct {
	fromTime  time.Time
	fromStep  int64 // 0: all
	steps     int64 // between two events of a kind at least; 0: all
	time      time.Duration
	lastSteps map[string]int64
	lastTimes map[string]time.Time
}

// selection reads -since and -every, and checks what excludes what.
func (o *metricsFlags) selection(now time.Time) (*selection, error) {
	only := &selection{lastSteps: make(map[string]int64), lastTimes: make(map[string]time.Time)}
	switch {
	case o.asJSON && o.asCSV:
		return nil, errors.New("-json and -csv exclude each other")
	case o.zip != "" && (o.asJSON || o.asCSV || o.f || o.follow || o.since != "" || o.every != ""):
		return nil, errors.New("-zip writes all of the run, and excludes options about what is printed")
	case o.force && o.zip == "":
		return nil, errors.New("-force is for -zip")
	}
	if err := only.setStart(o.since, now); err != nil {
		return nil, err
	}
	if o.every == "" {
		return only, nil
	}
	var err error
	if only.steps, err = strconv.ParseInt(o.every, 10, 64); err == nil && only.steps > 0 {
		return only, nil
	}
	only.steps = 0
	if only.time, err = time.ParseDuration(o.every); err == nil && only.time > 0 {
		return only, nil
	}
	return nil, fmt.Errorf("-every=%s is neither a number of steps nor a duration such as 30s", o.every)
}

func (l *selection) setStart(text string, now time.Time) (err error) {
	if text == "" {
		return nil
	}
	if l.fromStep, err = strconv.ParseInt(text, 10, 64); err == nil && l.fromStep >= 0 {
		return nil
	}
	l.fromStep = 0
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		l.fromTime = now.Add(-d)
		return nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, time.DateOnly} {
		if l.fromTime, err = time.ParseInLocation(layout, text, time.Local); err == nil {
			return nil
		}
	}
	return fmt.Errorf("-since=%s is not a step, a duration such as 10m, or a time such as 2026-01-31T12:00:00Z", text)
}

// take reports whether an event is shown. Only updates and samples of usage are
// thinned: of each role and each set of metrics apart.
func (l *selection) take(e providers.RunEvent) bool {
	if e.Time.Before(l.fromTime) || e.Step < l.fromStep {
		return false
	}
	if e.Type == "restore" { // the steps begin again
		clear(l.lastSteps)
		clear(l.lastTimes)
	}
	isMany := e.Type == "update" || e.Type == "updates" || e.Type == usageEvent
	if !isMany || l.steps == 0 && l.time == 0 {
		return true
	}
	key := strings.TrimSuffix(e.Type, "s") + "\x00" + strings.Join(slices.Sorted(maps.Keys(e.Values)), "\x00")
	if last, ok := l.lastTimes[key]; ok && (l.steps > 0 && e.Step < l.lastSteps[key]+l.steps || l.time > 0 && e.Time.Before(last.Add(l.time))) {
		return false
	}
	l.lastSteps[key], l.lastTimes[key] = e.Step, e.Time
	return true
}

// usageEvent is the type of events about usage. Each process has one every few
// seconds, more than a person reads.
const usageEvent = "usage"

// metricsLine is an event for people.
func metricsLine(e providers.RunEvent) string {
	parts := []string{fmt.Sprintf("%-10s  step %d", e.Type, e.Step)}
	if e.Epoch > 0 { // a program has none
		parts = append(parts, fmt.Sprintf("epoch %d", e.Epoch))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Values)) {
		parts = append(parts, name+" "+strconv.FormatFloat(e.Values[name], 'g', 6, 64))
	}
	if e.Message != "" {
		parts = append(parts, e.Message)
	}
	return strings.Join(parts, "  ")
}
