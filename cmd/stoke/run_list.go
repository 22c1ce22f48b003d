package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/stokehq/stoke/plan/canvas"
	"github.com/stokehq/stoke/plan/redact"
	"github.com/stokehq/stoke/providers"
)

const (
	// runReaders is how many runs are read at the same time.
	runReaders = 16
	// runPatience is how long stoke waits for the status of one run.
	runPatience = 10 * time.Second
)

func runsCommand(s *session) *cobra.Command {
	var f lookFlags
	var asJSON, machine bool
	cmd := &cobra.Command{
		Use:   "runs [options] [FOLDER]",
		Short: "List the runs of the state or of this machine",
		Long: `Lists the runs behind the objects of the state: phase, progress, newest accuracy
and loss, age, and place. With -machine it lists the runs of this machine in
FOLDER, whatever state they belong to. Default of FOLDER: the default of
runs_dir. Runs are read at the same time, each for at most 10 seconds: the row
of a run that cannot be read has the reason, and the exit code is 1 then.

  stoke runs
  stoke runs -json
  stoke runs -machine ~/.local/state/stoke/runs`,
		Args: atMost(1, "; one folder is listed at a time"),
	}
	cmd.Flags().BoolVar(&machine, "machine", false, "List the runs of this machine, not of the state.")
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print a JSON array.")
	f.add(s, cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 && !machine {
			return &usageError{path: cmd.CommandPath(), err: errors.New("a folder is listed with -machine only")}
		}
		s.looking.Store(true)
		ctx, done := s.signals.untilStopped(cmd.Context())
		defer done()
		r, places, err := openPlaces(ctx, s, &f, machine, args)
		if err != nil {
			return err
		}
		defer r.close()
		rows := r.readRows(ctx, places)
		if asJSON {
			err = r.sayRowsJSON(rows)
		} else {
			err = r.sayRows(rows, time.Now())
		}
		if err == nil && slices.ContainsFunc(rows, func(row runRow) bool { return row.problem != "" }) {
			return failed
		}
		return err
	}
	return cmd
}

// runPlace is a run that is not read yet.
type runPlace struct {
	name string // its address, or its id
	open func(context.Context) (providers.Run, error)
}

// openPlaces returns the runs of the state, or the runs of this machine.
func openPlaces(ctx context.Context, s *session, f *lookFlags, machine bool, args []string) (*runs, []runPlace, error) {
	if machine {
		folder := ""
		if len(args) > 0 {
			folder = args[0]
		}
		r := &runs{s: s, secrets: new(redact.Secrets), flags: f}
		places, err := r.ofMachine(folder)
		return r, places, r.failed("The folder cannot be read", err)
	}
	r, err := s.openRuns(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	var places []runPlace
	for _, a := range r.addresses() {
		places = append(places, runPlace{a.String(), func(ctx context.Context) (providers.Run, error) { return r.findRun(ctx, a) }})
	}
	return r, places, nil
}

// ofMachine returns the runs in a folder of this machine, whichever provider has them.
func (r *runs) ofMachine(folder string) (places []runPlace, err error) {
	for _, source := range sources(r.s.built) {
		known := r.s.built[source].Runs
		on, ok := known.(providers.MachineRuns)
		if !ok {
			continue
		}
		all, err := on.OnMachine(folder)
		if err != nil {
			return nil, err
		}
		for _, one := range all {
			open := func(ctx context.Context) (providers.Run, error) { return known.Run(ctx, one.Object) }
			places = append(places, runPlace{one.ID, open})
		}
	}
	return places, nil
}

// runRow is one run with its status, or the reason that it has none.
type runRow struct {
	name    string
	is      providers.RunStatus
	gone    bool
	problem string
}

// readRows reads the status of all runs, several at the same time, and sorts them by
// name. A run that does not answer delays no other one.
func (r *runs) readRows(ctx context.Context, places []runPlace) []runRow {
	rows := make([]runRow, len(places))
	var readers errgroup.Group
	readers.SetLimit(runReaders)
	for i, place := range places {
		readers.Go(func() error {
			rows[i] = r.readRow(ctx, place)
			return nil
		})
	}
	_ = readers.Wait() // no reader returns an error
	slices.SortFunc(rows, func(a, b runRow) int { return cmp.Compare(a.name, b.name) })
	return rows
}

func (r *runs) readRow(ctx context.Context, place runPlace) runRow {
	ctx, cancel := context.WithTimeout(ctx, runPatience)
	defer cancel()
	got := make(chan runRow, 1)
	go func() { // a plugin for credentials may ignore ctx
		row := runRow{name: place.name}
		run, err := place.open(ctx)
		if err == nil {
			row.is, err = run.Status(ctx)
		}
		row.gone = errors.Is(err, providers.ErrNoRun)
		if err != nil && !row.gone {
			row.problem = r.clean(err.Error())
		}
		row.is.Message = r.clean(row.is.Message)
		got <- row
	}()
	select {
	case row := <-got:
		if row.problem != "" && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			row.problem = fmt.Sprintf("no answer within %s: %s", runPatience, row.problem)
		}
		return row
	case <-ctx.Done():
		return runRow{name: place.name, problem: fmt.Sprintf("no answer within %s", runPatience)}
	}
}

func (r *runs) sayRowsJSON(rows []runRow) error {
	all := make([]any, 0, len(rows))
	for _, row := range rows {
		switch {
		case row.gone:
			all = append(all, map[string]any{"address": row.name, "phase": "gone"})
		case row.problem != "":
			all = append(all, map[string]any{"address": row.name, "phase": "unknown", "error": row.problem})
		default:
			all = append(all, statusJSON(row.name, row.is))
		}
	}
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return r.s.printOrStop("%s\n", text)
}

// sayRows prints a table, no wider than the terminal.
func (r *runs) sayRows(rows []runRow, now time.Time) error {
	if len(rows) == 0 {
		return r.s.printOrStop("There are no runs.\n")
	}
	table := [][]string{{"RUN", "PHASE", "PROGRESS", "ACCURACY", "LOSS", "AGE", "WHERE"}}
	for _, row := range rows {
		table = append(table, row.cells(now))
	}
	for _, line := range alignRows(table, r.s.stdout().Width) {
		if err := r.s.printOrStop("%s\n", line); err != nil {
			return err
		}
	}
	return nil
}

func (row runRow) cells(now time.Time) []string {
	is := row.is
	switch {
	case row.gone:
		return []string{row.name, "gone", "-", "-", "-", "-", "nothing is left of it"}
	case row.problem != "":
		return []string{row.name, "unknown", "-", "-", "-", "-", row.problem}
	}
	since := "-"
	if !is.Started.IsZero() {
		since = age(now.Sub(is.Started))
	}
	where := cmp.Or(is.Where, strings.Join(nodesOf(is), ", "), "-")
	return []string{row.name, is.Phase, progressText(is), metricText(is, "accuracy"), metricText(is, "loss"), since, where}
}

// progressText returns the progress of a run in few columns.
func progressText(is providers.RunStatus) string {
	switch {
	case !is.Trains:
		return fmt.Sprintf("%d/%d ready", is.Workers, is.Wanted)
	case is.Percent >= 0:
		return fmt.Sprintf("%3.0f%% %d/%d", is.Percent, is.Step, is.Steps)
	case is.Step > 0:
		return fmt.Sprintf("step %d", is.Step)
	}
	return "-"
}

func metricText(is providers.RunStatus, name string) string {
	v, ok := is.Metrics[name]
	switch {
	case !ok:
		return "-"
	case v >= 1e4 && v < 1e15:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

func nodesOf(is providers.RunStatus) (nodes []string) {
	for _, role := range is.Roles {
		if role.Node != "" && !slices.Contains(nodes, role.Node) {
			nodes = append(nodes, role.Node)
		}
	}
	return nodes
}

// alignRows returns a table as lines without control characters, each of at most
// width columns; 0: any. A name that takes more than a third of them loses its beginning.
func alignRows(table [][]string, width int) (lines []string) {
	widest := make([]int, len(table[0]))
	for _, row := range table {
		for i := range row {
			row[i] = canvas.Clean(row[i])
			widest[i] = max(widest[i], canvas.Width(row[i]))
		}
	}
	if width > 0 {
		widest[0] = min(widest[0], max(20, width/3))
	}
	for _, row := range table {
		row[0] = shortened(row[0], widest[0])
		var b strings.Builder
		for i, cell := range row[:len(row)-1] {
			b.WriteString(canvas.Pad(cell, widest[i]) + "  ")
		}
		b.WriteString(row[len(row)-1])
		line := strings.TrimRight(b.String(), " ")
		if width > 0 {
			line = canvas.CutText(line, width)
		}
		lines = append(lines, line)
	}
	return lines
}
