package train

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/train/launch"
	"github.com/stokehq/stoke/runtime/spec"
)

// forget makes everything that a run yields unknown.
func (m *experimentModel) forget() {
	for _, s := range []*types.String{&m.ID, &m.Status, &m.RunDir, &m.LogsDir, &m.MetricsFile, &m.SpecHash, &m.StartedAt, &m.FinishedAt} {
		*s = types.StringUnknown()
	}
	m.Metrics = types.MapUnknown(types.NumberType)
}

// keep takes everything that a run yields from the prior value.
func (m *experimentModel) keep(prior *experimentModel) {
	m.ID, m.Status, m.Metrics = prior.ID, prior.Status, prior.Metrics
	m.ClusterID, m.ModelSummary = prior.ClusterID, prior.ModelSummary
	m.RunsDir, m.RunDir, m.LogsDir, m.MetricsFile = prior.RunsDir, prior.RunDir, prior.LogsDir, prior.MetricsFile
	m.SpecHash, m.StartedAt, m.FinishedAt = prior.SpecHash, prior.StartedAt, prior.FinishedAt
}

// identify records which run it is and where its files are.
func (m *experimentModel) identify(r trainingRun, s *spec.Spec) {
	at := r.location()
	m.ID, m.RunsDir = types.StringValue(r.id), types.StringValue(at.Place)
	m.RunDir, m.LogsDir, m.MetricsFile = types.StringValue(at.Run), types.StringValue(at.Logs), types.StringValue(at.Metrics)
	m.SpecHash, m.DatasetHash = types.StringValue(s.Hash()), optionalText(s.Dataset.Hash)
	m.CodeHash, m.InitHash = optionalText(s.Program.Code), optionalText(s.InitFrom.Hash)
}

// record takes down how the run stands.
func (m *experimentModel) record(s spec.Status) {
	m.Status = types.StringValue(string(s.Phase))
	m.recordGPUs(s.GPUHealth)
	m.StartedAt, m.FinishedAt = instant(s.Started), instant(s.Ended)
	values := make(map[string]attr.Value, len(s.Metrics)+1)
	for name, v := range s.Metrics {
		if n := decimal(v); !n.IsNull() {
			values[name] = n
		}
	}
	if !m.hasProgram() {
		values["epochs"] = wholeNumber(int64(s.Epoch))
	}
	m.Metrics = types.MapValueMust(types.NumberType, values)
}

func instant(t time.Time) types.String {
	if t.IsZero() {
		return types.StringNull()
	}
	return types.StringValue(t.UTC().Format(time.RFC3339))
}

// remains is the state of a run without running processes.
type remains struct{ launch.State }

// resumable reports whether the run can go on: it has a checkpoint, or nothing
// that could be lost.
func (r remains) resumable() bool { return r.Saved >= 0 || r.Step == 0 && !r.CheckpointsLost }

// resumePoint words where a resumed run goes on.
func (r remains) resumePoint() string {
	if r.Saved < 0 {
		return "it starts over, for it has saved nothing"
	}
	return "it continues from its newest checkpoint"
}

// loss describes the data that a removal of the run deletes; "": none.
func (r remains) loss() string {
	switch {
	case r.Phase == spec.Succeeded:
		return ""
	case r.Program && (r.Phase == spec.Running || r.Phase == spec.Pending && !r.Started.IsZero()):
		return "stops the program that is running now" + atStep(r.State) + "; its progress is lost"
	case r.Program && r.Saved >= 0:
		return "throws away its checkpoints"
	case r.Phase == spec.Running || r.Phase == spec.Pending && !r.Started.IsZero():
		return fmt.Sprintf("stops the run that is training now, at step %s; what it has learned so far is lost", thousands(r.Step))
	case r.Saved >= 0:
		return fmt.Sprintf("throws away its checkpoint of step %s", thousands(r.Saved))
	}
	return ""
}

// unusable reports whether this version of the trainer found that it can use none
// of the run's checkpoints. Another version may.
func (r remains) unusable(version string) bool {
	return r.Cause == spec.CauseCheckpoints && (r.Trainer == version || r.Trainer == undated)
}

// overrun tells a run that has used up the deadline, so that it would be
// stopped again at once.
func (r remains) overrun(deadline spec.Duration) bool {
	return r.Cause == spec.CauseDeadline && deadline > 0 && r.Ran >= time.Duration(deadline).Seconds()
}

// reason says why a run failed, with the last lines of its log.
func reason(s spec.Status, logs string) string {
	text := printable(s.Message)
	if text == "" {
		text = "The run gave no reason"
	}
	text = strings.TrimRight(text, ".") + "."
	return text + excerpt(s.Log) + whereLogs(logs)
}

// whereLogs ends a message with the place of the logs.
func whereLogs(logs string) string {
	if logs == "" {
		return ""
	}
	return "\n\nIts logs are in " + logs + "."
}

// excerpt is the end of a log, for a message.
func excerpt(log string) string {
	if log = printable(last(log, 2000)); log == "" {
		return ""
	}
	return "\n\nThe end of its log:\n" + log
}

// last gives the end of a text, from a line's beginning where there is one.
func last(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	if _, rest, ok := strings.Cut(s, "\n"); ok {
		return rest
	}
	return s
}

// printable drops what would move a terminal's cursor or change its colours.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, s)
	return strings.TrimSpace(s)
}

// recordGPUs records the worst health of the GPUs of a run.
func (m *experimentModel) recordGPUs(h *spec.GPUHealth) {
	m.GPUHealthWorst = types.StringNull()
	if h != nil {
		m.GPUHealthWorst = types.StringValue(printable(h.String()))
	}
}

// planGPUs plans the worst health: it stays null without GPUs.
func (p *planning) planGPUs() {
	p.plan.GPUHealthWorst = types.StringUnknown()
	if p.draft.spec.Worker.GPUs == 0 && !p.draft.unknown["worker.gpus"] {
		p.plan.GPUHealthWorst = types.StringNull()
	}
}
