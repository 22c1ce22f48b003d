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
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/providers"
)

func statusCommand(s *session) *cobra.Command {
	var f lookFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [options] ADDRESS",
		Short: "Show the status of a run",
		Long: `Shows the run behind an object of the state: an experiment's phase, progress,
newest checkpoint and metrics, its processes with their processors and memory, and
its GPUs with their health; the pods of Kubernetes objects, with the reasons why
they wait. It only looks:
while an apply waits for the run, and after the run has ended, it works as well.`,
		Args: atMost(1, "; one run is shown at a time"),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "Print a JSON object.")
	f.add(s, cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return s.look(cmd.Context(), runCommand{cmd.CommandPath(), "The run cannot be read", &f}, args, func(ctx context.Context, r *runs, run providers.Run) error {
			is, err := run.Status(ctx)
			if err != nil {
				return err
			}
			is.Message, is.GPUHealth = r.clean(is.Message), r.clean(is.GPUHealth)
			for i := range is.Roles {
				is.Roles[i].Reason = r.clean(is.Roles[i].Reason)
				if u := is.Roles[i].Usage; u != nil {
					u.Partly = r.clean(u.Partly)
					for j := range u.GPUs {
						u.GPUs[j].Reasons = r.clean(u.GPUs[j].Reasons)
					}
				}
			}
			if asJSON {
				text, err := json.MarshalIndent(statusJSON(args[0], is), "", "  ")
				if err != nil {
					return err
				}
				return s.printOrStop("%s\n", text)
			}
			return s.printOrStop("%s", statusText(args[0], is, time.Now(), s.stdout().Width))
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

// statusText is a run's status for people, on a terminal of so many columns; 0: any.
func statusText(address string, is providers.RunStatus, now time.Time, width int) string {
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
	if is.GPUHealth != "" {
		row("gpu health", "%s", is.GPUHealth)
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
	writeRoles(&b, is.Roles, now, width)
	writeGPUs(&b, is.Roles, width)
	lines := strings.Split(b.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return strings.Join(lines, "\n")
}

// leastNode is the number of columns that a node's name has at least.
const leastNode = 12

// writeRoles writes a table of roles, on a terminal of so many columns; 0: any.
// Columns that mean nothing for all roles are left out.
func writeRoles(b *strings.Builder, roles []providers.RunRole, now time.Time, width int) {
	hasReady := slices.ContainsFunc(roles, func(r providers.RunRole) bool { return r.Ready != "" })
	hasUsage := slices.ContainsFunc(roles, func(r providers.RunRole) bool { return r.Usage != nil })
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	row := func(name, phase, ready, restarts, since, processors, memory string) {
		cells := []string{name, phase}
		if hasReady {
			cells = append(cells, ready)
		}
		cells = append(cells, restarts, since)
		if hasUsage {
			cells = append(cells, processors, memory)
		}
		fmt.Fprintf(w, "  %s\t\n", strings.Join(cells, "\t"))
	}
	row("ROLE", "STATE", "READY", "RESTARTS", "SINCE", "CPU", "MEMORY")
	for _, r := range roles {
		since, processors, memory := "-", "-", "-"
		if !r.Since.IsZero() {
			since = age(now.Sub(r.Since))
		}
		if r.Usage != nil {
			processors, memory = strconv.FormatFloat(r.Usage.CPU, 'f', 2, 64), size(r.Usage.Memory)
		}
		row(r.Name, r.Phase, r.Ready, strconv.Itoa(r.Restarts), since, processors, memory)
	}
	_ = w.Flush() // a strings.Builder does not fail
	rows := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	nodes := []string{"NODE"}
	reasons := []string{"REASON"}
	for _, r := range roles {
		nodes = append(nodes, r.Node)
		reasons = append(reasons, strings.Join(strings.Fields(r.Reason), " ")) // one row
	}
	writeRows(b, rows, nodes, reasons, width)
}

// writeGPUs writes a table of the GPUs of all roles, on a terminal of so many
// columns; 0: any. Why a GPU is not fit follows below its row.
func writeGPUs(b *strings.Builder, roles []providers.RunRole, width int) {
	var text strings.Builder
	var below []string
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  ROLE\tGPU\tUSE\tMEMORY\tTEMP\tPOWER\tCLOCK\tHEALTH\t")
	for _, r := range roles {
		if r.Usage == nil {
			continue
		}
		for _, g := range r.Usage.GPUs {
			fmt.Fprintf(w, "  %s\t%d\t%s\t\n", r.Name, g.Index, strings.Join(gpuCells(g), "\t"))
			below = append(below, g.Reasons)
		}
	}
	_ = w.Flush() // a strings.Builder does not fail
	if len(below) == 0 {
		return
	}
	b.WriteString("\n")
	for i, line := range strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n") {
		b.WriteString(line + "\n")
		if i == 0 || below[i-1] == "" {
			continue
		}
		lines := []string{below[i-1]}
		if width > 0 {
			lines = folded(below[i-1], width-6)
		}
		b.WriteString("      " + strings.Join(lines, "\n      ") + "\n")
	}
}

// gpuCells returns the readings of a GPU for people; "-" where it has none.
func gpuCells(g providers.RunGPU) []string {
	number := func(format string, names ...string) string {
		var values []any
		for _, name := range names {
			v, ok := g.Values[name]
			if !ok {
				return "-"
			}
			values = append(values, v)
		}
		return fmt.Sprintf(format, values...)
	}
	memory := number("%.0f", "memory_used_bytes")
	if memory != "-" {
		memory = size(int64(g.Values["memory_used_bytes"]))
		if total, ok := g.Values["memory_total_bytes"]; ok {
			memory += " of " + size(int64(total))
		}
	}
	power := number("%.0f of %.0f W", "power_watts", "power_limit_watts")
	if power == "-" {
		power = number("%.0f W", "power_watts")
	}
	return []string{
		number("%.0f %%", "utilization_percent"), memory, number("%.0f °C", "temperature_celsius"), power,
		number("%.0f MHz", "sm_clock_mhz"), g.Health,
	}
}

// writeRows writes rows, each with its node and its reason. Where a row is wider
// than the terminal, the node's name loses its beginning, which many nodes share,
// and the reason follows below.
func writeRows(b *strings.Builder, rows, nodes, reasons []string, width int) {
	room := 0
	for _, node := range nodes {
		room = max(room, utf8.RuneCountInString(node))
	}
	if width > 0 {
		room = min(room, max(leastNode, width-utf8.RuneCountInString(rows[0])))
	}
	for i, row := range rows {
		line := row + fmt.Sprintf("%-*s", room, shortened(nodes[i], room))
		switch whole := line + "  " + reasons[i]; {
		case reasons[i] == "" || i == 0 && width > 0 && utf8.RuneCountInString(whole) > width:
		case width == 0 || utf8.RuneCountInString(whole) <= width:
			line = whole
		default:
			line += "\n      " + strings.Join(folded(reasons[i], width-6), "\n      ")
		}
		b.WriteString(line + "\n")
	}
}

// shortened returns the end of a name that is longer than so many characters.
func shortened(name string, most int) string {
	letters := []rune(name)
	if len(letters) <= most {
		return name
	}
	return "…" + string(letters[len(letters)-most+1:])
}

// size returns a number of bytes for people.
func size(n int64) string {
	const mib, gib = 1 << 20, 1 << 30
	switch {
	case n < mib:
		return fmt.Sprintf("%d KiB", n>>10)
	case n < gib:
		return fmt.Sprintf("%d MiB", n/mib)
	case n < 100*gib:
		return fmt.Sprintf("%.1f GiB", float64(n)/gib)
	}
	return fmt.Sprintf("%d GiB", n/gib)
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
