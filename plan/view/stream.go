package view

import (
	"encoding/json"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/stokehq/stoke/modules/address"
	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/run"
	"github.com/stokehq/stoke/plan/state"
)

// Stream writes what happens as JSON, one object per line, in Terraform's
// format 1.2 of machine-readable UI.
// https://developer.hashicorp.com/terraform/internals/machine-readable-ui
//
// It is safe for concurrent use.
type Stream struct {
	mu  sync.Mutex
	out io.Writer
	now func() time.Time
}

// NewStream begins a stream with the message that says which version speaks.
func NewStream(out io.Writer, now func() time.Time, version string) *Stream {
	s := &Stream{out: out, now: now}
	s.write("info", "Stoke "+version, "version", map[string]any{"terraform": TerraformVersion, "stoke": version, "ui": "1.2"})
	return s
}

func (s *Stream) write(level, message, kind string, more map[string]any) {
	line := map[string]any{
		"@level": level, "@message": message, "@module": "stoke.ui",
		"@timestamp": s.now().UTC().Format("2006-01-02T15:04:05.000000Z07:00"), "type": kind,
	}
	for k, v := range more {
		line[k] = v
	}
	text, err := json.Marshal(line)
	if err != nil {
		return // strings, numbers and values made of them always encode
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.out.Write(append(text, '\n')) // the reader is gone
}

// Log writes a message that is none of the others.
func (s *Stream) Log(text string) {
	s.write("info", strings.TrimSpace(text), "log", nil)
}

// Init writes what init says while it works.
func (s *Stream) Init(text string) {
	if code := initCode(text); code != "" {
		s.write("info", text, "init_output", map[string]any{"message_code": code})
		return
	}
	s.Log(text)
}

// initCode is Terraform's name for a message, for those that it has too.
func initCode(text string) string {
	for start, code := range map[string]string{
		"Initializing the backend":                      "initializing_backend_message",
		"Initializing modules":                          "initializing_modules_message",
		"Upgrading modules":                             "upgrading_modules_message",
		"Copying configuration from":                    "copying_configuration_message",
		"Initializing provider plugins":                 "initializing_provider_plugin_message",
		"Stoke has been successfully initialized":       "output_init_success_message",
		"Stoke initialized in an empty directory":       "output_init_empty_message",
		"Next, \"stoke plan\" shows what would be made": "output_init_success_cli_message",
	} {
		if strings.HasPrefix(text, start) {
			return code
		}
	}
	return ""
}

// Diagnostics writes errors and warnings.
func (s *Stream) Diagnostics(diags hcl.Diagnostics, src Sources) {
	for _, m := range merge(diags, func(*hcl.Diagnostic) bool { return false }) {
		j := diagnosticJSON(m.Diagnostic, src)
		level, word := "error", "Error: "
		if j.Severity == "warning" {
			level, word = "warn", "Warning: "
		}
		s.write(level, word+j.Summary, "diagnostic", map[string]any{"diagnostic": j})
	}
}

func streamResource(a address.Instance) map[string]any {
	local := address.Instance{Resource: a.Resource, Key: a.Key}
	local.Module = ""
	implied, _, _ := strings.Cut(a.Type, "_")
	return map[string]any{
		"addr": a.String(), "module": string(a.Module), "resource": local.String(), "implied_provider": implied,
		"resource_type": a.Type, "resource_name": a.Name, "resource_key": jsonKey(a.Key),
	}
}

// streamAction is an action in the words of the stream.
func streamAction(a plan.Action) string {
	switch {
	case a == plan.NoOp:
		return "noop"
	case a.Replaces():
		return "replace"
	case a == plan.Forget:
		return "remove"
	}
	return actionNames(a)[0]
}

// Plan writes drift, changes, the summary and outputs.
func (s *Stream) Plan(pl *plan.Plan) {
	for _, c := range pl.Drift {
		change := streamChange(c, driftActions(c)[0])
		s.write("info", c.Addr.String()+": Drift detected ("+change["action"].(string)+")", "resource_drift", map[string]any{"change": change})
	}
	s.planned(pl, (*plan.Change).Idle)
	for _, d := range pl.Deferred {
		change := map[string]any{"resource": streamResource(d.Change.Addr), "action": streamAction(d.Change.Action)}
		s.write("info", d.Change.Addr.String()+": Left for a later round: "+deferredBecause(d, bare), "deferred_change", map[string]any{"change": change, "reason": string(d.Reason)})
	}
	a, c, d := pl.Count()
	s.summary("Plan: "+importCount(pl)+decimal(a)+" to add, "+decimal(c)+" to change, "+decimal(d)+" to destroy.", "plan", pl.Imports(), a, c, d)
	outputs := make(map[string]any)
	for _, o := range pl.Outputs {
		outputs[o.Name] = map[string]any{"action": streamAction(o.Action), "sensitive": o.Sensitive || o.BeforeSensitive}
	}
	if len(outputs) > 0 {
		s.write("info", "Outputs: "+decimal(len(outputs)), "outputs", map[string]any{"outputs": outputs})
	}
}

// WriteSavedPlan writes the changes of a saved plan, without what is done in the state
// alone.
func (s *Stream) WriteSavedPlan(pl *plan.Plan) {
	s.planned(pl, func(c *plan.Change) bool { return c.Action == plan.NoOp })
}

// planned writes the changes that it is not told to pass over.
func (s *Stream) planned(pl *plan.Plan, pass func(*plan.Change) bool) {
	for _, c := range pl.Changes {
		if pass(c) {
			continue
		}
		change := streamChange(c, streamAction(c.Action))
		if c.Reason != plan.NoReason {
			change["reason"] = streamReason(c.Reason)
		}
		s.write("info", c.Addr.String()+": Plan to "+change["action"].(string), "planned_change", map[string]any{"change": change})
	}
}

// streamReason is a reason in the words of the stream.
func streamReason(r plan.Reason) string {
	switch r {
	case plan.ReplaceByRequest:
		return "requested"
	case plan.ReplaceByTriggers:
		return "replace_triggered_by"
	}
	return strings.TrimPrefix(string(r), "replace_because_")
}

func (s *Stream) summary(message, operation string, imported, add, change, remove int) {
	s.write("info", message, "change_summary", map[string]any{"changes": map[string]any{
		"add": add, "change": change, "import": imported, "remove": remove, "operation": operation,
	}})
}

// Applied writes the summary of an apply, or what was not done: readers take a
// summary for success.
func (s *Stream) Applied(r *run.Report, mode plan.Mode) {
	for _, o := range r.Outcomes {
		if o.Status == run.Skipped || o.Status == run.Interrupted {
			text := addressRow(o) + ": Not started"
			if o.Because != "" {
				text += ", because of " + o.Because
			}
			s.write("warn", text, "log", map[string]any{"resource": streamResource(o.Addr)})
		}
	}
	word, operation := "Apply", "apply"
	if mode == plan.Destroy {
		word, operation = "Destroy", "destroy"
	}
	if !r.Complete() {
		s.write("warn", word+" incomplete! "+resources(r, mode), "log", nil)
		return
	}
	s.summary(word+" complete! "+resources(r, mode), operation, r.Imported, r.Added, r.Changed, r.Destroyed)
}

// Round writes how one round of an apply ended that needs several. Of the last
// one, after which something is left, it writes the summary of all.
func (s *Stream) Round(n int, r *run.Report, more bool) {
	if more {
		s.write("info", "Round "+decimal(n)+" complete! "+resources(r, plan.Normal), "log", map[string]any{"round": n})
		return
	}
	s.summary("Apply ended after round "+decimal(n)+", with something left. "+resources(r, plan.Normal), "apply", r.Imported, r.Added, r.Changed, r.Destroyed)
}

// ReportDeferrals writes what a saved plan has left for later.
func (s *Stream) ReportDeferrals(pl *plan.Plan) {
	s.write("warn", counted(len(pl.Deferred), "change")+" left for a later round; make a new plan to go on", "log", map[string]any{"deferred": len(pl.Deferred)})
}

// Outputs writes the outputs, without the values of sensitive ones.
func (s *Stream) Outputs(outputs map[string]state.Output) {
	all := make(map[string]any, len(outputs))
	for name, o := range outputs {
		j, err := outputJSON(o.Value, o.Sensitive)
		if err != nil {
			continue
		}
		if o.Sensitive {
			j.Value = nil
		}
		all[name] = j
	}
	s.write("info", "Outputs: "+decimal(len(all)), "outputs", map[string]any{"outputs": all})
}

// Listen is a plan.Listener.
func (s *Stream) Listen(e plan.Event) {
	kinds := map[plan.EventKind]string{
		plan.RefreshStart: "refresh_start", plan.RefreshDone: "refresh_complete",
		plan.ReadStart: "apply_start", plan.ReadDone: "apply_complete",
		plan.ApplyStart: "apply_start", plan.ApplyProgress: "apply_progress",
		plan.ApplyDone: "apply_complete", plan.ApplyFailed: "apply_errored",
	}
	kind, ok := kinds[e.Kind]
	if e.Kind == plan.PlanSlow || e.Kind == plan.PlanDone {
		return // for people
	}
	if !ok {
		s.write("info", eventLabel(e)+": "+eventText(e), "log", nil)
		return
	}
	hook := map[string]any{"resource": streamResource(e.Addr)}
	if e.Kind == plan.ReadStart || e.Kind == plan.ReadDone {
		e.Action = plan.Read
	}
	if e.Kind != plan.RefreshStart && e.Kind != plan.RefreshDone {
		hook["action"] = streamAction(e.Action)
		if kind != "apply_start" {
			hook["elapsed_seconds"] = int(e.Elapsed.Seconds())
		}
	}
	if e.Kind == plan.ApplyProgress {
		hook["progress"] = map[string]any{"step": e.Progress.Step, "percent": e.Progress.Percent, "line": e.Progress.Line}
	}
	if id := plainID(e.ID); id != "" {
		hook["id_key"], hook["id_value"] = "id", id
	}
	s.write("info", eventLabel(e)+": "+eventText(e), kind, map[string]any{"hook": hook})
}

func plainID(id cty.Value) string {
	text, ok := strings.CutPrefix(idText(id), " [id=")
	if !ok {
		return ""
	}
	return strings.TrimSuffix(text, "]")
}
