package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/stokehq/stoke/plan/canvas"
	"github.com/stokehq/stoke/plan/series"
	"github.com/stokehq/stoke/providers"
)

const (
	comparePoints = 400
	compareRows   = 16
	compareWidth  = 80 // where the output is not a terminal
)

// compareFlags are the options of compare.
type compareFlags struct {
	lookFlags
	metric, goal, over string
	asJSON             bool
}

func compareCommand(s *session) *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "compare [options] ADDRESS ADDRESS...",
		Short: "Compare runs: configuration, status, curves",
		Long: `Compares runs behind objects of the state: the arguments that differ, the status
side by side, and one metric of all of them on one chart. With -goal it shows
when each run reached a value, in steps and in seconds since the run started.
"stoke metrics" shows the names of metrics; the loss of evaluations is
evaluation.loss.

  stoke compare train_experiment.a train_experiment.b
  stoke compare -metric=loss -over=time train_experiment.a train_experiment.b
  stoke compare -goal='accuracy>=0.9' train_experiment.a train_experiment.b`,
	}
	cmd.Flags().StringVar(&f.metric, "metric", "",
		"Draw the metric `NAME`. Default: the metric of the goal, else accuracy where all runs have it, else loss.")
	cmd.Flags().StringVar(&f.over, "over", "step", "Draw it over the `AXIS` step or time.")
	cmd.Flags().StringVar(&f.goal, "goal", "", "Show when each run reached a `GOAL` such as accuracy>=0.9 or loss<0.1.")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "Print a JSON object.")
	f.add(s, cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		goal, err := parseGoal(f.goal)
		switch {
		case len(args) < 2:
			err = errors.New("the addresses of two runs or more are needed")
		case f.over != "step" && f.over != "time":
			err = errors.New("-over is step or time")
		}
		if err != nil {
			return &usageError{path: cmd.CommandPath(), err: err}
		}
		s.looking.Store(true)
		r, err := s.openRuns(cmd.Context(), &f.lookFlags)
		if err != nil {
			return err
		}
		defer r.close()
		ctx, done := s.signals.untilStopped(cmd.Context())
		defer done()
		c := &comparison{runs: r, flags: &f, goal: goal}
		if err := c.read(ctx, args); err != nil {
			return r.failed("The runs cannot be compared", err)
		}
		if f.asJSON {
			return c.sayJSON()
		}
		return c.sayText(time.Now())
	}
	return cmd
}

// metricGoal is a value that a metric reaches; no name: none was given.
type metricGoal struct {
	name, sign string
	value      float64
}

func parseGoal(text string) (g metricGoal, err error) {
	if text == "" {
		return g, nil
	}
	for _, sign := range []string{">=", "<=", ">", "<"} {
		name, value, found := strings.Cut(text, sign)
		if !found {
			continue
		}
		g = metricGoal{name: strings.TrimSpace(name), sign: sign}
		if g.value, err = strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil && g.name != "" {
			return g, nil
		}
		break
	}
	return g, fmt.Errorf("%q is not a goal: it is a metric, one of >=, <=, > and <, and a number, such as accuracy>=0.9", text)
}

// isReached reports whether a value is as good as the goal.
func (g metricGoal) isReached(v float64) bool {
	switch g.sign {
	case ">=":
		return v >= g.value
	case "<=":
		return v <= g.value
	case ">":
		return v > g.value
	}
	return v < g.value
}

// isBetter reports whether a value is nearer to the goal than another one.
func (g metricGoal) isBetter(v, than float64) bool {
	if g.sign[0] == '>' {
		return v > than
	}
	return v < than
}

// goalResult is when a run reached a goal, or the best value that it has.
type goalResult struct {
	Reached bool      `json:"reached"`
	Step    int64     `json:"step"`
	Seconds float64   `json:"seconds"` // since the start of the run
	Value   float64   `json:"value"`   // there, or the best one
	at      time.Time //
	any     bool      // the run has the metric
}

// take takes the next event. After a step back the run must reach the goal again.
func (g metricGoal) take(into *goalResult, e providers.RunEvent) {
	if e.Type == "restore" && into.any && e.Step < into.Step {
		*into = goalResult{}
	}
	for name, v := range e.Values {
		if e.Role != "" || series.Name(e, name) != g.name || into.Reached {
			continue
		}
		if is := g.isReached(v); is || !into.any || g.isBetter(v, into.Value) {
			*into = goalResult{Reached: is, Step: e.Step, Value: v, at: e.Time, any: true}
		}
	}
}

// compared is one of the runs that are compared.
type compared struct {
	name   string
	config map[string]string
	is     providers.RunStatus
	set    *series.Set
	goal   goalResult
	first  time.Time // of the first event
}

// comparison compares runs.
type comparison struct {
	*runs
	flags *compareFlags
	goal  metricGoal
	all   []*compared
}

// read reads the runs at the same time.
func (c *comparison) read(ctx context.Context, args []string) error {
	readers, ctx := errgroup.WithContext(ctx)
	readers.SetLimit(runReaders)
	for _, arg := range args {
		run, err := c.run(ctx, arg)
		if err != nil {
			_ = readers.Wait()
			return err
		}
		at, err := parseRun(arg)
		if err != nil {
			return err
		}
		one := &compared{name: at.name, config: c.configurationAt(at), set: series.NewSet(comparePoints)}
		c.all = append(c.all, one)
		readers.Go(func() error { return c.readOne(ctx, one, run) })
	}
	return readers.Wait()
}

func (c *comparison) readOne(ctx context.Context, one *compared, run providers.Run) (err error) {
	if one.is, err = run.Status(ctx); err != nil {
		return fmt.Errorf("%s: %w", one.name, err)
	}
	one.is.Message = c.clean(one.is.Message)
	err = run.Metrics(ctx, providers.RunMetrics{Usage: providers.WithoutUsage, Brief: true}, func(e providers.RunEvent) error {
		if one.first.IsZero() {
			one.first = e.Time
		}
		one.set.Add(e)
		if c.goal.name != "" {
			c.goal.take(&one.goal, e)
		}
		return nil
	})
	if !one.goal.at.IsZero() {
		one.goal.Seconds = one.goal.at.Sub(one.firstTime()).Seconds()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", one.name, err)
	}
	return nil
}

// firstTime returns when the run was started first.
func (one *compared) firstTime() time.Time {
	if one.is.Started.IsZero() {
		return one.first
	}
	return one.is.Started
}

// differences returns the names of the arguments whose values differ, sorted.
func (c *comparison) differences() (names []string) {
	all := make(map[string]bool)
	for _, one := range c.all {
		for name := range one.config {
			all[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if slices.ContainsFunc(c.all, func(one *compared) bool { return one.config[name] != c.all[0].config[name] }) {
			names = append(names, name)
		}
	}
	return names
}

// metric returns the name of the metric to draw.
func (c *comparison) metric() string {
	has := func(name string) bool {
		return !slices.ContainsFunc(c.all, func(one *compared) bool { return one.set.Find("", name) == nil })
	}
	switch {
	case c.flags.metric != "":
		return c.flags.metric
	case c.goal.name != "":
		return c.goal.name
	case has("accuracy"):
		return "accuracy"
	}
	return "loss"
}

// sayText prints the comparison for people.
func (c *comparison) sayText(now time.Time) error {
	p := c.s.stdout()
	width := cmp.Or(p.Width, compareWidth)
	head := []string{""}
	for i, one := range c.all {
		head = append(head, string(rune('A'+i%26))+" "+one.name)
	}
	var lines []string
	table := [][]string{slices.Clone(head)}
	for _, name := range c.differences() {
		row := []string{name}
		for _, one := range c.all {
			row = append(row, cmp.Or(one.config[name], "-"))
		}
		table = append(table, row)
	}
	if len(table) == 1 {
		lines = append(lines, "The arguments do not differ.")
	} else {
		table[0][0] = "ARGUMENT"
		lines = append(lines, alignColumns(table, width)...)
	}
	head[0] = "STATUS"
	lines = append(append(lines, ""), alignColumns(append([][]string{head}, c.statusTable(now)...), width)...)
	lines = append(append(lines, ""), c.chart(width, p.Color)...)
	for _, line := range lines {
		if err := c.s.printOrStop("%s\n", line); err != nil {
			return err
		}
	}
	return nil
}

// statusTable returns one row for each fact of the status, the goal at the end.
func (c *comparison) statusTable(now time.Time) (table [][]string) {
	row := func(name string, text func(*compared) string) {
		cells := []string{name}
		for _, one := range c.all {
			cells = append(cells, cmp.Or(text(one), "-"))
		}
		table = append(table, cells)
	}
	row("phase", func(one *compared) string { return one.is.Phase })
	row("progress", func(one *compared) string { return strings.TrimSpace(progressText(one.is)) })
	row("workers", func(one *compared) string {
		if !one.is.Ended.IsZero() {
			return strconv.Itoa(one.is.Wanted)
		}
		return fmt.Sprintf("%d/%d", one.is.Workers, one.is.Wanted)
	})
	row("time", func(one *compared) string {
		switch {
		case one.is.Started.IsZero():
			return ""
		case one.is.Ended.IsZero():
			return age(now.Sub(one.is.Started))
		}
		return age(one.is.Ended.Sub(one.is.Started))
	})
	names := make(map[string]bool)
	for _, one := range c.all {
		for name := range one.is.Metrics {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		row(name, func(one *compared) string { return metricText(one.is, name) })
	}
	if c.goal.name != "" {
		row(fmt.Sprintf("%s%s%g", c.goal.name, c.goal.sign, c.goal.value), func(one *compared) string { return one.goal.text() })
	}
	return table
}

func (r goalResult) text() string {
	value := strconv.FormatFloat(r.Value, 'g', 4, 64)
	switch {
	case r.Reached:
		return fmt.Sprintf("step %d, %.1fs (%s)", r.Step, r.Seconds, value)
	case r.any:
		return "not reached: " + value
	}
	return "the run has no such metric"
}

// chart returns the curves of all runs on one chart, with a legend.
func (c *comparison) chart(width int, color bool) []string {
	name := c.metric()
	lines := []string{fmt.Sprintf("%s over %s", canvas.Clean(name), c.flags.over)}
	var curves []canvas.Curve
	for i, one := range c.all {
		curve := canvas.Curve{Name: one.name}
		last := "no such metric"
		if s := one.set.Find("", name); s != nil && len(s.Points) > 0 {
			curve.X, curve.Y = c.points(one, s)
			last = strconv.FormatFloat(s.Points[len(s.Points)-1].Mean, 'g', 5, 64)
		}
		curves = append(curves, curve)
		text := canvas.CutText(fmt.Sprintf("%c %s  %s", 'A'+i%26, one.name, last), width-2)
		if color {
			text = canvas.Colored("●", i) + " " + text
		}
		lines = append(lines, text)
	}
	o := canvas.Options{Columns: width, Rows: compareRows, Color: color}
	if c.flags.over == "time" {
		o.X = func(seconds float64) string { return age(time.Duration(seconds * float64(time.Second))) }
	}
	drawn := canvas.Chart(curves, o)
	if drawn[0] == "" {
		return append(lines, "No run has values of it. \"stoke metrics\" lists the metrics of a run.")
	}
	return append(lines, drawn...)
}

// points returns a series over steps, or over the seconds since the run started.
func (c *comparison) points(one *compared, s *series.Series) (x, y []float64) {
	for _, p := range s.Points {
		at := float64(p.Step)
		if c.flags.over == "time" {
			at = p.Time.Sub(one.firstTime()).Seconds()
		}
		x, y = append(x, at), append(y, p.Mean)
	}
	return x, y
}

func (c *comparison) sayJSON() error {
	type curve struct {
		Step  int64   `json:"step"`
		Time  string  `json:"time"`
		Value float64 `json:"value"`
		Min   float64 `json:"min"`
		Max   float64 `json:"max"`
		Count int64   `json:"count"`
	}
	type run struct {
		Status any         `json:"status"`
		Goal   *goalResult `json:"goal,omitempty"`
		Curve  []curve     `json:"curve"`
	}
	type difference struct {
		Argument string    `json:"argument"`
		Values   []*string `json:"values"` // null: not given
	}
	out := struct {
		Metric      string       `json:"metric"`
		Differences []difference `json:"differences"`
		Runs        []run        `json:"runs"`
	}{Metric: c.metric(), Differences: []difference{}}
	for _, name := range c.differences() {
		d := difference{Argument: name}
		for _, one := range c.all {
			var value *string
			if v, ok := one.config[name]; ok {
				value = &v
			}
			d.Values = append(d.Values, value)
		}
		out.Differences = append(out.Differences, d)
	}
	for _, one := range c.all {
		r := run{Status: statusJSON(one.name, one.is), Curve: []curve{}}
		if c.goal.name != "" {
			r.Goal = &one.goal
		}
		if s := one.set.Find("", out.Metric); s != nil {
			for _, p := range s.Points {
				r.Curve = append(r.Curve, curve{p.Step, p.Time.UTC().Format(time.RFC3339Nano), p.Mean, p.Min, p.Max, p.Count})
			}
		}
		out.Runs = append(out.Runs, r)
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return err
	}
	return c.s.printOrStop("%s\n", text)
}

// alignColumns returns a table as lines of at most width columns: those behind the
// first share the width that is left, and the ends of longer texts are cut.
// Names lose their beginning.
func alignColumns(table [][]string, width int) (lines []string) {
	widest := make([]int, len(table[0]))
	for _, row := range table {
		for i := range row {
			row[i] = canvas.Clean(row[i])
			widest[i] = max(widest[i], canvas.Width(row[i]))
		}
	}
	widest[0] = min(widest[0], max(30, width/3))
	share := max(6, (width-widest[0])/max(1, len(widest)-1)-2)
	for n, row := range table {
		var b strings.Builder
		for i, cell := range row {
			most := widest[i]
			if i > 0 {
				b.WriteString("  ")
				most = min(most, share)
			}
			switch isLong := canvas.Width(cell) > most; {
			case isLong && i == 0:
				cell = shortened(cell, most)
			case isLong && n == 0: // the ends of addresses differ
				cell = cell[:2] + shortened(cell[2:], most-2)
			}
			b.WriteString(canvas.Pad(cell, most))
		}
		lines = append(lines, canvas.CutText(strings.TrimRight(b.String(), " "), width))
	}
	return lines
}
