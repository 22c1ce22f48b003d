package train

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/providers"
	"github.com/stokehq/stoke/providers/connect"
	benchmark "github.com/stokehq/stoke/providers/train/bench"
	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/gpu"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// runs finds the runs of experiments: where they are is recorded with them.
type runs struct{}

func (runs) Types() []string { return []string{"train_experiment"} }

func (runs) Is(providers.RunObject) bool { return true }

func (runs) Run(ctx context.Context, o providers.RunObject) (providers.Run, error) {
	s, err := settingsFor(ctx, o)
	if err != nil {
		return nil, err
	}
	l, err := s.launcherOf(o.Value)
	if err != nil {
		return nil, asNoRun(err)
	}
	r := experimentRun{trainingRun{l, textAt(o.Value, "id")}, placeOf(o.Value),
		func(ctx context.Context) (trainer, error) { return findTrainerOf(ctx, o) }}
	if o.Operation != "" {
		r.id = l.ID(o.Operation)
	}
	_, err = r.Status(ctx)
	if errors.Is(err, providers.ErrNoRun) {
		return nil, err
	}
	// If the run cannot be reached, its status has the reason.
	if at, ok := l.(launch.Reachable); ok {
		if inside, err := at.OpenAccess(ctx, r.id); err == nil {
			return reachableRun{r, inside}, nil
		}
	}
	return r, nil
}

// placeOf returns where the run of a stored object is, for people.
func placeOf(v cty.Value) string {
	c, err := connectionAt(v)
	switch {
	case err != nil:
		return ""
	case c == nil:
		return "this machine"
	}
	name := strings.TrimPrefix(c.Endpoint, "https://")
	switch k := c.Credential.Kubeconfig; {
	case k != nil && k.Context != "":
		name = k.Context
	case name == "" && k != nil:
		name = k.Path
	case name == "":
		name = "its cluster"
	}
	return printable(name + "/" + textAt(v, "runs_dir"))
}

// reachableRun is one beside whose processes commands run.
type reachableRun struct {
	experimentRun
	launch.RunAccess
}

// settingsFor gives what is needed to find a run: the state says it all, but how
// to log in on machines that lead to its cluster.
func settingsFor(ctx context.Context, o providers.RunObject) (*settings, error) {
	if c, err := connectionAt(o.Value); err != nil || c == nil || c.Credential.SSH == nil || o.Configured == nil {
		return new(settings), err
	}
	return configuredSettings(ctx, o)
}

// findTrainerOf returns the trainer next to stoke or in $PATH, or else the trainer of the
// provider block.
func findTrainerOf(ctx context.Context, o providers.RunObject) (trainer, error) {
	t, err := findTrainer("")
	if err == nil || o.Configured == nil {
		return t, err
	}
	s, configuredErr := configuredSettings(ctx, o)
	if configuredErr != nil {
		return "", errors.Join(err, configuredErr)
	}
	return findTrainer(s.given)
}

// configuredSettings returns the settings of the provider block.
func configuredSettings(ctx context.Context, o providers.RunObject) (*settings, error) {
	p, err := o.Configured(ctx)
	if err != nil {
		return nil, err
	}
	served, ok := providers.ServerAs[pluginServer](p)
	if !ok || served.provider.settings == nil {
		return nil, fmt.Errorf("%T is not this provider", p)
	}
	return served.provider.settings, nil
}

// textAt is a string attribute; "" where there is none.
func textAt(v cty.Value, name string) string {
	if v.IsNull() || !v.IsKnown() || !v.Type().IsObjectType() || !v.Type().HasAttribute(name) {
		return ""
	}
	a, _ := v.GetAttr(name).Unmark()
	if a.Type() != cty.String || a.IsNull() || !a.IsKnown() {
		return ""
	}
	return a.AsString()
}

// experimentRun is one experiment's run.
type experimentRun struct {
	trainingRun
	place   string // for people
	trainer func(context.Context) (trainer, error)
}

func (r experimentRun) Status(ctx context.Context) (providers.RunStatus, error) {
	s, err := r.trainingRun.Status(ctx, r.id)
	if err != nil {
		return providers.RunStatus{}, asNoRun(err)
	}
	out := providers.RunStatus{
		Trains: true, Run: r.id, Where: r.place,
		Phase: string(s.Phase), Message: printable(messageOf(s)), Progress: step(s), Percent: percent(s.Status),
		Step: s.Step, Steps: s.Steps, Epoch: s.Epoch, Epochs: s.Epochs, Workers: s.Workers, Wanted: s.Wanted,
		Checkpoint: s.Saved, Version: printable(s.Version), Started: s.Started, Ended: s.Ended, Metrics: s.Metrics,
		Roles: []providers.RunRole{},
	}
	if c := s.Change; c != nil {
		out.Change = &providers.RunChange{At: c.At, Class: printable(c.Class)}
		for _, field := range c.Fields {
			out.Change.Fields = append(out.Change.Fields, printable(field))
		}
	}
	if s.GPUHealth != nil {
		out.GPUHealth = printable(s.GPUHealth.String())
	}
	if s.Phase == spec.Failed {
		out.Message += excerpt(s.Log)
	}
	for _, role := range s.Roles {
		usage := s.UsageOf(role)
		if usage != nil {
			role.Reason = cmp.Or(role.Reason, usage.Waiting)
		}
		out.Roles = append(out.Roles, providers.RunRole{
			Name: printable(role.Name), Phase: printable(role.Phase), Restarts: role.Restarts, Since: role.Since, Node: role.Node, Address: role.Address,
			Reason: printable(role.Reason), Usage: usageOf(usage),
		})
	}
	return out, nil
}

// usageOf translates the usage of a role; nil stays nil.
func usageOf(u *spec.Usage) *providers.RunUsage {
	if u == nil {
		return nil
	}
	return &providers.RunUsage{
		At: u.At, CPU: u.CPU, Memory: u.Memory, Limit: u.Limit, Processes: u.Processes, Partly: printable(u.Partly),
		Received: u.Received.PerSecond, Sent: u.Sent.PerSecond, Read: u.Read.PerSecond, Written: u.Written.PerSecond,
		Network: u.HasNetwork(), Compute: u.Work.Compute, Communicate: u.Work.Communicate, Data: u.Work.Data, GPUs: gpusOf(u.GPUs),
	}
}

// gpusOf translates the readings of the GPUs of a role.
func gpusOf(s gpu.Snapshot) (all []providers.RunGPU) {
	for _, r := range s.GPUs {
		h := gpu.Judge(gpu.Snapshot{GPUs: []gpu.Reading{r}}, gpu.Expectation{})
		is := providers.RunGPU{
			Index: r.Index, Name: printable(r.Name), UUID: printable(r.UUID), Values: r.Values, Health: string(h.Verdict),
		}
		for _, f := range h.Findings {
			if is.Reasons != "" {
				is.Reasons += "; "
			}
			is.Reasons += printable(f.Text)
		}
		all = append(all, is)
	}
	return all
}

// addGPUs adds the numbers of GPUs to the numbers of an event, such as
// worker-0.gpu3.power_watts.
func addGPUs(values map[string]float64, role string, s gpu.Snapshot) {
	for _, r := range s.GPUs {
		for name, v := range r.Values {
			values[fmt.Sprintf("%s.gpu%d.%s", role, r.Index, name)] = v
		}
	}
}

// messageOf is what a run says of itself, and what is wrong with it.
func messageOf(s launch.State) string {
	all := slices.DeleteFunc(append([]string{s.Message, s.RestartReason}, s.Warnings...), func(text string) bool { return text == "" })
	return strings.Join(all, "; ")
}

// Benchmark implements providers.RunBenchmarks.
func (runs) Benchmark(ctx context.Context, o providers.RunBenchmark, each func(providers.RunReduction) error) error {
	result := func(r benchmark.Result) error {
		bytes := 4 * r.Floats
		return each(providers.RunReduction{
			Floats: r.Floats, Bytes: bytes, Updates: r.Updates,
			Seconds: r.Seconds, Fastest: r.Fastest, Bandwidth: float64(bytes) / r.Seconds,
		})
	}
	if o.Cluster == nil {
		t, err := findTrainer("")
		if err != nil {
			return &providers.RunError{Summary: "There is no stoke-trainer",
				Detail: fmt.Sprintf("It is what is measured. Install it next to stoke or in $PATH: %s.", err), Err: err}
		}
		place, err := stateFolder("", "runs")
		if err != nil {
			return err
		}
		return benchmark.Measure(ctx, new(settings).launcherIn(place), string(t), o.Workers, result)
	}
	c, err := connectionAt(o.Cluster.Value)
	if err != nil {
		return err
	}
	if c == nil {
		return &providers.RunError{Summary: "No cluster", Detail: "The object has no connection to a cluster."}
	}
	s, err := settingsFor(ctx, *o.Cluster)
	if err != nil {
		return err
	}
	if c.Credential.SSH != nil && o.Cluster.Configured == nil {
		ssh, diags := connect.DefaultSSH(ctx)
		if diags.HasError() {
			return &providers.RunError{Summary: diags[0].Summary(), Detail: diags[0].Detail()}
		}
		s.clusters.SSH = ssh
	}
	defer s.clusters.Close()
	l, program, err := s.benchmarks(ctx, c, o)
	if err != nil {
		return err
	}
	return benchmark.Measure(ctx, l, program, o.Workers, result)
}

// asNoRun translates that nothing is left of a run.
func asNoRun(err error) error {
	if errors.Is(err, launch.ErrNoRun) {
		return providers.ErrNoRun
	}
	return err
}

func (r experimentRun) Logs(ctx context.Context, o providers.RunLogs, line func(providers.RunLine) error) error {
	return asNoRun(r.trainingRun.Logs(ctx, r.id, launch.LogOptions{Role: o.Role, Stream: o.Stream, Follow: o.Follow}, func(l launch.Line) error {
		return line(providers.RunLine{Role: l.Role, Stream: l.Stream, Time: l.Time, Text: l.Text})
	}))
}

func (r experimentRun) Metrics(ctx context.Context, o providers.RunMetrics, event func(providers.RunEvent) error) error {
	want := run.EventFilter{After: o.After, Since: o.Since, Role: o.Role, Brief: o.Brief}
	switch o.Usage {
	case providers.WithoutUsage:
		want.Usage = run.WithoutUsage
	case providers.OnlyUsage:
		want.Usage = run.OnlyUsage
	}
	return asNoRun(r.trainingRun.Metrics(ctx, r.id, want, o.Follow, func(e spec.Event) error {
		var text []byte
		if !o.Brief {
			var err error
			if text, err = json.Marshal(e); err != nil {
				return err
			}
		}
		return event(eventOf(e, text))
	}))
}

// eventOf translates an event; text is its JSON, or nil.
func eventOf(e spec.Event, text []byte) providers.RunEvent {
	out := providers.RunEvent{
		Number: e.Number, Time: e.Time, Type: string(e.Type), Step: e.Step, Epoch: e.Epoch, Values: measured(e),
		Message: printable(e.Message), Worker: e.Worker, JSON: text,
	}
	switch u := e.Usage; {
	case u != nil:
		out.Role, out.Count = printable(u.Role), e.Count
	case e.Type == spec.EventUpdates && len(e.Metrics) == 0:
		out.Count = e.Count - e.Skips
		if low, high := float64(e.LossMin), float64(e.LossMax); isFinite(low) && isFinite(high) {
			out.Ranges = map[string]providers.RunRange{"loss": {Min: low, Max: high}}
		}
	}
	return out
}

// measured gives the numbers of an event by name. Of several updates of a built-in
// model it gives means.
func measured(e spec.Event) map[string]float64 {
	values := make(map[string]float64)
	for name, v := range e.Metrics {
		values[name] = v
	}
	isUpdate := e.Type == spec.EventUpdate || e.Type == spec.EventUpdates
	if isUpdate && len(e.Metrics) == 0 { // of a built-in model
		values["records"] = float64(e.Records) / float64(max(1, e.Count))
		for name, v := range map[string]spec.Number{"loss": e.Loss, "norm": e.Norm} {
			if isFinite(float64(v)) && (e.Type == spec.EventUpdate || e.Count > e.Skips) {
				values[name] = float64(v)
			}
		}
	}
	if u := e.Usage; u != nil {
		for name, v := range map[string]float64{
			"cpu": u.CPU, "memory_bytes": float64(u.Memory), "processes": float64(u.Processes),
			"read_per_second": u.Read.PerSecond, "written_per_second": u.Written.PerSecond,
		} {
			values[printable(u.Role)+"."+name] = v
		}
		if u.HasNetwork() {
			values[printable(u.Role)+".received_per_second"] = u.Received.PerSecond
			values[printable(u.Role)+".sent_per_second"] = u.Sent.PerSecond
		}
		if u.Work != (spec.Work{}) {
			for name, v := range map[string]float64{
				"compute_share": u.Work.Compute, "communication_share": u.Work.Communicate, "data_share": u.Work.Data,
			} {
				values[printable(u.Role)+"."+name] = v
			}
		}
		addGPUs(values, printable(u.Role), u.GPUs)
	}
	return values
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Export lets the trainer write the model of the run. A run in pods has it on this
// machine once it was collected.
func (r experimentRun) Export(ctx context.Context, o providers.RunExport) (m providers.RunModel, err error) {
	at := r.location()
	if at.Logs == "" {
		return m, &providers.RunError{Summary: "There is no model yet", Detail: "The run is being launched."}
	}
	folder := run.Folder(filepath.Dir(at.Logs))
	finals, err := folder.Finals()
	if err != nil {
		return m, err
	}
	if of, err := r.Spec(ctx, r.id); err == nil && of.HasProgram() {
		return m, &providers.RunError{Summary: "A program has no model to export",
			Detail: "The checkpoints of a program have a format of its own. Let the program write the model."}
	}
	if inPods := at.Run != string(folder); inPods && len(finals) == 0 {
		return m, &providers.RunError{Summary: "The model is in the run's pods",
			Detail: "stoke fetches it to this machine once the run has succeeded. Run \"stoke apply\" then, and export again."}
	}
	t, err := r.trainer(ctx)
	if err != nil {
		return m, &providers.RunError{Summary: "There is no stoke-trainer",
			Detail: fmt.Sprintf("It writes the model. Install it next to stoke or in $PATH: %s.", err), Err: err}
	}
	args := []string{"model", "export", "--run", string(folder), "--out", o.Path, "--step", strconv.FormatInt(o.Step, 10)}
	if o.Replace {
		args = append(args, "--force")
	}
	out, err := t.run(ctx, nil, args...)
	var told api.Failure
	switch {
	case errors.As(err, &told):
		return m, &providers.RunError{Summary: told.Summary, Detail: sentence(told.Detail), Err: err}
	case err != nil:
		return m, fmt.Errorf("export the model: %w", err)
	}
	if err := json.Unmarshal(out, &m); err != nil {
		return m, fmt.Errorf("export the model: read the trainer's answer: %w", err)
	}
	return m, nil
}

// Ledger implements providers.RunAccountant.
func (r experimentRun) Ledger(ctx context.Context) (providers.RunLedger, error) {
	books, ok := r.Launcher.(launch.Bookkeeper)
	if !ok {
		return providers.RunLedger{}, providers.ErrNoLedger
	}
	is, err := books.Ledger(ctx, r.id)
	if err != nil {
		return providers.RunLedger{}, asNoRun(err)
	}
	out := providers.RunLedger{Records: is.Records, Step: is.Step, Whole: is.Whole}
	for _, e := range is.Epochs {
		part := providers.RunEpoch{Epoch: e.Epoch, Ranges: len(e.Ranges)}
		for _, of := range e.Ranges {
			part.Committed += of[1] - of[0]
		}
		out.Parts = append(out.Parts, part)
	}
	if isHere(r.Launcher) { // of a cluster all events would have to be sent
		err = r.addLeases(ctx, &out)
	}
	return out, err
}

// Bounds of the updates whose leases are counted.
const (
	leaseTime    = 30 * time.Second
	leaseUpdates = 1000
)

// addLeases counts the leases of the newest updates.
func (r experimentRun) addLeases(ctx context.Context, out *providers.RunLedger) error {
	s, err := r.trainingRun.Status(ctx, r.id)
	if err != nil {
		return asNoRun(err)
	}
	end := s.Updated
	if !s.Ended.IsZero() {
		end = s.Ended
	}
	var newest []spec.Event
	want := run.EventFilter{Since: end.Add(-leaseTime), Usage: run.WithoutUsage}
	err = r.trainingRun.Metrics(ctx, r.id, want, false, func(e spec.Event) error {
		if len(e.Taken) == 0 {
			return nil
		}
		if len(newest) == 2*leaseUpdates {
			newest = append(newest[:0], newest[leaseUpdates:]...)
		}
		newest = append(newest, spec.Event{Step: e.Step, Taken: slices.Clone(e.Taken)})
		return nil
	})
	countLeases(newest[max(0, len(newest)-leaseUpdates):], out)
	return asNoRun(err)
}

// countLeases counts the leases of updates by worker.
func countLeases(updates []spec.Event, out *providers.RunLedger) {
	byWorker := make(map[int]*providers.RunLeases)
	for _, e := range updates {
		if out.Updates++; out.Updates == 1 {
			out.First = e.Step
		}
		for _, c := range e.Taken {
			w := byWorker[c.Worker]
			if w == nil {
				w = &providers.RunLeases{Worker: c.Worker}
				byWorker[c.Worker] = w
			}
			w.Leases, w.Records = w.Leases+1, w.Records+c.End-c.Start
			if c.Attempt > 1 {
				w.Again++
			}
		}
	}
	for _, w := range byWorker {
		out.Leases = append(out.Leases, *w)
	}
	slices.SortFunc(out.Leases, func(a, b providers.RunLeases) int { return a.Worker - b.Worker })
}

// Survey implements providers.RunSurveyor.
func (r experimentRun) Survey(ctx context.Context) (providers.RunSurvey, error) {
	known, ok := r.Launcher.(launch.Surveyor)
	if !ok {
		return providers.RunSurvey{}, providers.ErrNoSurvey
	}
	return known.Survey(ctx)
}
