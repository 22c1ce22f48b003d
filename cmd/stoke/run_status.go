package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/providers"
)

func statusCommand(s *session) *cobra.Command {
	var f lookFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [options] ADDRESS",
		Short: "Show how a run stands",
		Long: `Shows how the run behind an object of the state stands: an experiment's phase,
progress, newest checkpoint and metrics, and the processes that it consists of;
how the pods of Kubernetes objects are, and what they wait for. It only looks:
while an apply waits for the run, and after the run has ended, it works as well.`,
		Args: atMost(1, "; one run is shown at a time"),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print a JSON object.")
	f.add(s, cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return s.look(cmd.Context(), looked{cmd.CommandPath(), "The run cannot be looked at", &f}, args, func(ctx context.Context, r *runs, run providers.Run) error {
			is, err := run.Status(ctx)
			if err != nil {
				return err
			}
			is.Message = r.clean(is.Message)
			for i := range is.Roles {
				is.Roles[i].Reason = r.clean(is.Roles[i].Reason)
			}
			if asJSON {
				text, err := json.MarshalIndent(statusJSON(args[0], is), "", "  ")
				if err != nil {
					return err
				}
				return s.said("%s\n", text)
			}
			return s.said("%s", statusText(args[0], is, time.Now()))
		})
	}
	return cmd
}

// statusJSON is a run's status for programs; of one that trains nothing it has
// the fields that mean something.
func statusJSON(address string, is providers.RunStatus) any {
	type head struct {
		Address string `json:"address"`
	}
	if is.Trains {
		return struct {
			head
			providers.RunStatus
		}{head{address}, is}
	}
	return struct {
		head
		Run      string              `json:"run"`
		Phase    string              `json:"phase"`
		Message  string              `json:"message,omitempty"`
		Progress string              `json:"progress"`
		Ready    int                 `json:"ready"`
		Wanted   int                 `json:"wanted"`
		Started  time.Time           `json:"started_at,omitzero"`
		Ended    time.Time           `json:"finished_at,omitzero"`
		Roles    []providers.RunRole `json:"roles"`
	}{head{address}, is.Run, is.Phase, is.Message, is.Progress, is.Workers, is.Wanted, is.Started, is.Ended, is.Roles}
}

// statusText is a run's status for people.
func statusText(address string, is providers.RunStatus, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", address, is.Phase)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %s\t%s\n", name, strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", "\n  \t"))
	}
	row("run", "%s", is.Run)
	row("progress", "%s", is.Progress)
	if is.Message != "" {
		row("message", "%s", is.Message)
	}
	if !is.Started.IsZero() {
		row("started", "%s", moment(is.Started, now))
	}
	if !is.Ended.IsZero() {
		row("ended", "%s", moment(is.Ended, now))
	}
	switch {
	case is.Checkpoint >= 0:
		row("checkpoint", "step %d", is.Checkpoint)
	case is.Trains:
		row("checkpoint", "none")
	}
	if is.Version != "" {
		row("trainer", "%s", is.Version)
	}
	for _, name := range slices.Sorted(maps.Keys(is.Metrics)) {
		row(name, "%s", strconv.FormatFloat(is.Metrics[name], 'g', 6, 64))
	}
	_ = w.Flush() // a strings.Builder does not fail
	if len(is.Roles) == 0 {
		return b.String()
	}
	b.WriteString("\n")
	writeRoles(&b, is.Roles, now)
	lines := strings.Split(b.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

// writeRoles writes a table of roles. Whether they are ready is in it where that
// means something.
func writeRoles(b *strings.Builder, roles []providers.RunRole, now time.Time) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	ready := func(text string) string { return "" }
	if slices.ContainsFunc(roles, func(r providers.RunRole) bool { return r.Ready != "" }) {
		ready = func(text string) string { return text + "\t" }
	}
	fmt.Fprintf(w, "  ROLE\tSTATE\t%sRESTARTS\tSINCE\tNODE\tREASON\n", ready("READY"))
	for _, role := range roles {
		since := "-"
		if !role.Since.IsZero() {
			since = age(now.Sub(role.Since))
		}
		reason := strings.Join(strings.Fields(role.Reason), " ") // one row
		fmt.Fprintf(w, "  %s\t%s\t%s%d\t%s\t%s\t%s\n", role.Name, role.Phase, ready(role.Ready), role.Restarts, since, role.Node, reason)
	}
	_ = w.Flush() // a strings.Builder does not fail
}

func moment(t, now time.Time) string {
	return t.UTC().Format(time.RFC3339) + " (" + age(now.Sub(t)) + " ago)"
}

// age is a time in the two largest of its units.
func age(d time.Duration) string {
	d = max(0, d)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}
