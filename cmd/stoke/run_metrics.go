package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/providers"
)

func metricsCommand(s *session) *cobra.Command {
	var look lookFlags
	var asJSON, asCSV, f, follow bool
	cmd := &cobra.Command{
		Use:   "metrics [options] ADDRESS",
		Short: "Show what was measured in a run",
		Long: `Shows what was measured in the run behind an object of the state, the oldest
first: every update with its loss, every evaluation, and what else happened.
-csv gives one row per value: number, time, type, epoch, step, name, value. An
event without values is one row with an empty name and value. Usage of processors,
memory, network and disks is only in -json and -csv.
With -f it goes on with what comes, until the run ends.`,
		Args: atMost(1, "; the metrics of one run are shown at a time"),
	}
	cmd.Flags().BoolVar(&f, "f", false, "Follow: go on with what comes, until the run ends.")
	cmd.Flags().BoolVar(&follow, "follow", false, "The same as -f.")
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print one JSON object per line.")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "Print comma-separated values.")
	look.add(s, cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if asJSON && asCSV {
			return &usageError{path: cmd.CommandPath(), err: errors.New("-json and -csv exclude each other")}
		}
		return s.look(cmd.Context(), looked{cmd.CommandPath(), "The run cannot be looked at", &look}, args, func(ctx context.Context, r *runs, run providers.Run) error {
			if asCSV {
				if err := s.said("%s", csvLine("number", "time", "type", "epoch", "step", "name", "value")); err != nil {
					return err
				}
			}
			return run.Metrics(ctx, f || follow, func(e providers.RunEvent) error {
				switch {
				case asJSON:
					return s.said("%s\n", r.secrets.Redact(string(e.JSON)))
				case asCSV:
					return s.said("%s", metricsRows(e))
				case e.Type == usageEvent:
					return nil
				}
				e.Message = r.clean(e.Message)
				return s.said("%s\n", metricsLine(e))
			})
		})
	}
	return cmd
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

// metricsRows is an event as rows, one per value; one without values is a row
// whose name and value are empty, so that the column of values stays numeric.
func metricsRows(e providers.RunEvent) string {
	var b strings.Builder
	row := func(name, value string) {
		b.WriteString(csvLine(strconv.FormatInt(e.Number, 10), e.Time.UTC().Format(time.RFC3339Nano), e.Type,
			strconv.Itoa(e.Epoch), strconv.FormatInt(e.Step, 10), name, value))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Values)) {
		row(name, strconv.FormatFloat(e.Values[name], 'g', -1, 64))
	}
	if len(e.Values) == 0 {
		row("", "")
	}
	return b.String()
}

func csvLine(fields ...string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(fields) // a strings.Builder does not fail
	w.Flush()
	return b.String()
}
