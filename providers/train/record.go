package train

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/train/launch/local"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
)

// place is where the run lies, as recorded: the provider block may name
// another folder by now.
func (m *experimentModel) place() local.Place { return local.Place(m.RunsDir.ValueString()) }

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
	m.RunsDir, m.RunDir, m.LogsDir, m.MetricsFile = prior.RunsDir, prior.RunDir, prior.LogsDir, prior.MetricsFile
	m.SpecHash, m.StartedAt, m.FinishedAt = prior.SpecHash, prior.StartedAt, prior.FinishedAt
}

// identify records which run it is and where its files are.
func (m *experimentModel) identify(p local.Place, id string, s *spec.Spec) {
	f := p.Folder(id)
	m.ID, m.RunsDir = types.StringValue(id), types.StringValue(string(p))
	m.RunDir, m.LogsDir, m.MetricsFile = types.StringValue(string(f)), types.StringValue(f.Logs()), types.StringValue(f.Metrics())
	m.SpecHash, m.DatasetHash = types.StringValue(s.Hash()), types.StringValue(s.Dataset.Hash)
}

// record takes down how the run stands.
func (m *experimentModel) record(s spec.Status) {
	m.Status = types.StringValue(string(s.Phase))
	m.StartedAt, m.FinishedAt = instant(s.Started), instant(s.Ended)
	values := make(map[string]attr.Value, len(s.Metrics)+1)
	for name, v := range s.Metrics {
		if n := decimal(v); !n.IsNull() {
			values[name] = n
		}
	}
	values["epochs"] = whole(int64(s.Epoch))
	m.Metrics = types.MapValueMust(types.NumberType, values)
}

func instant(t time.Time) types.String {
	if t.IsZero() {
		return types.StringNull()
	}
	return types.StringValue(t.UTC().Format(time.RFC3339))
}

// standing reads how the run stands. The file belongs to processes that may
// have died or gone wrong at any point: nothing in it is believed that a run
// could not say.
func standing(f run.Folder) (spec.Status, error) {
	// Looked at before the status is read: a supervisor that ends in between
	// has written its final status by then.
	alive := local.Alive(f)
	s, err := f.Status()
	if err != nil {
		return spec.Status{}, fmt.Errorf("read how the run stands: %w", err)
	}
	switch s.Phase {
	case spec.Pending, spec.Running, spec.Succeeded, spec.Failed, spec.Stopped, spec.Lost:
	default:
		return spec.Status{}, fmt.Errorf("read how the run stands: %s names no known phase: %.40q", f.StatusFile(), s.Phase)
	}
	if s.Run != f.Name() {
		return spec.Status{}, fmt.Errorf("read how the run stands: %s is about another run: %.40q", f.StatusFile(), s.Run)
	}
	if len(s.Metrics) > 1000 {
		return spec.Status{}, fmt.Errorf("read how the run stands: %s has %d metrics", f.StatusFile(), len(s.Metrics))
	}
	for name, v := range s.Metrics {
		if len(name) > 200 || math.IsNaN(v) || math.IsInf(v, 0) {
			return spec.Status{}, fmt.Errorf("read how the run stands: %s has a malformed metric %.40q", f.StatusFile(), name)
		}
	}
	// A supervisor that ended before it was let go leaves a pending run behind
	// that nobody will ever start.
	if s.Phase == spec.Pending && !alive {
		s.Phase = spec.Lost
	}
	return s, nil
}

// idle tells the phases of a run that is unfinished and that nobody runs.
func idle(p spec.Phase) bool { return p == spec.Lost || p == spec.Stopped }

// remains is what is left of a run that nobody runs any more.
type remains struct {
	status spec.Status
	saved  int64 // step of its newest checkpoint; -1: it has none
}

// remaining looks at the run's folder.
func remaining(m *experimentModel) (r remains, err error) {
	f, err := m.place().Find(m.ID.ValueString())
	if err != nil {
		return r, err
	}
	if r.status, err = standing(f); err != nil {
		return r, err
	}
	r.saved, err = newest(f)
	return r, err
}

// newest is the step of the run's newest checkpoint, -1 where there is none.
func newest(f run.Folder) (step int64, err error) {
	entries, err := os.ReadDir(f.Checkpoints())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return -1, err
	}
	step = -1
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), "step-")
		digits, _, _ = strings.Cut(digits, "-") // the term
		n, err := strconv.ParseInt(digits, 10, 64)
		if ok && err == nil && e.IsDir() {
			step = max(step, n)
		}
	}
	return step, nil
}

// resumable reports whether the run can go on: it has a checkpoint, or nothing
// that could be lost.
func (r remains) resumable() bool { return r.saved >= 0 || r.status.Step == 0 }

// loss says what is thrown away with the run; "" is nothing.
func (r remains) loss() string {
	switch {
	case r.status.Phase == spec.Succeeded:
		return ""
	case r.status.Phase == spec.Running || r.status.Phase == spec.Pending && !r.status.Started.IsZero():
		return fmt.Sprintf("stops the run that is training now, at step %s; what it has learned so far is lost", thousands(r.status.Step))
	case r.saved >= 0:
		return fmt.Sprintf("throws away its checkpoint of step %s", thousands(r.saved))
	}
	return ""
}

// overrun tells a run that has used up the deadline, so that it would be
// stopped again at once.
func (r remains) overrun(deadline spec.Duration) bool {
	return r.status.Cause == spec.CauseDeadline && deadline > 0 && r.status.Ran >= time.Duration(deadline).Seconds()
}

// reason says why a run failed, with the last lines of its log.
func reason(s spec.Status, f run.Folder) string {
	text := printable(s.Message)
	if text == "" {
		text = "The run gave no reason"
	}
	text = strings.TrimRight(text, ".") + "."
	return text + excerpt(s.Log) + "\n\nIts logs are in " + f.Logs() + "."
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
