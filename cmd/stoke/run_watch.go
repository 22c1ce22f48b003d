package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/cmd/stoke/watch"
	"github.com/stokehq/stoke/plan/canvas"
	"github.com/stokehq/stoke/providers"
)

func watchCommand(s *session) *cobra.Command {
	var f lookFlags
	var plain bool
	cmd := &cobra.Command{
		Use:   "watch [options] ADDRESS...",
		Short: "Watch runs live: curves, roles, events and logs",
		Long: `Shows runs behind objects of the state while they run: phase, progress and the
time that is left, curves of the loss and of the evaluation's metrics, the roles
with their usage, the newest events, and the end of the logs. It ends with the
runs, and prints their status then. "q" or Ctrl-C leaves them going; "?" lists
the other keys. A lost connection is opened again.

Where the standard output is not a terminal, or with -plain, it prints a line for
each event and for each change of the state.

  stoke watch train_experiment.digits
  stoke watch -plain train_experiment.a train_experiment.b`,
	}
	cmd.Flags().BoolVar(&plain, "plain", false, "Print lines, also on a terminal.")
	f.add(s, cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return &usageError{path: cmd.CommandPath(), err: errors.New("the address of a run is needed; \"stoke runs\" lists them")}
		}
		s.looking.Store(true)
		r, err := s.openRuns(cmd.Context(), &f)
		if err != nil {
			return err
		}
		defer r.close()
		ctx, done := s.signals.untilStopped(cmd.Context())
		defer done()
		sources, err := r.sources(ctx, args)
		if err != nil {
			return r.failed("The run cannot be watched", err)
		}
		o := watch.Options{Sources: sources, Clean: r.clean, Lines: s.results, Columns: s.stdout().Width, Color: s.stdout().Color}
		if !plain && s.stage.live() != nil && isTerminal(s.stage.in) {
			o.In, o.Out = s.stage.in, s.stage.out
		}
		return r.sayEnds(args, watch.Show(ctx, o))
	}
	return cmd
}

// sources returns the runs at addresses: each is found once, so that mistakes are
// reported before anything is shown.
func (r *runs) sources(ctx context.Context, args []string) (sources []watch.Source, err error) {
	for _, arg := range args {
		first, err := r.run(ctx, arg)
		if err != nil {
			return nil, err
		}
		at, err := parseRun(arg)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(sources, func(s watch.Source) bool { return s.Name == at.name }) {
			continue
		}
		sources = append(sources, watch.Source{Name: at.name, Open: func(ctx context.Context) (providers.Run, error) {
			if run := first; run != nil {
				first = nil
				return run, nil
			}
			return r.findNamed(ctx, at)
		}})
	}
	return sources, nil
}

// sayEnds prints the status of the runs as it was seen last.
func (r *runs) sayEnds(args []string, last map[string]providers.RunStatus) error {
	for i, arg := range args {
		at, err := parseRun(arg)
		if err != nil {
			return err
		}
		is, ok := last[at.name]
		if !ok || slices.Contains(args[:i], arg) {
			continue
		}
		if is.Phase == "gone" {
			is.Roles = nil
		}
		width := r.s.stdout().Width
		for line := range strings.Lines(statusText(at.name, is, time.Now(), width)) {
			if line = strings.TrimSuffix(line, "\n"); width > 0 {
				line = canvas.CutText(line, width)
			}
			if err := r.s.printOrStop("%s\n", line); err != nil {
				return err
			}
		}
	}
	return nil
}
