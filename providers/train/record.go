package train

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/train/launch/local"
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
func standing(f spec.Folder) (spec.Status, error) {
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

// resumable reports whether an idle run can go on: it has a checkpoint, or it
// was never let go, so that there is nothing to lose.
func resumable(m *experimentModel) bool {
	f, err := m.place().Find(m.ID.ValueString())
	if err != nil {
		return false
	}
	if s, err := standing(f); err != nil || s.Started.IsZero() {
		return err == nil
	}
	entries, err := os.ReadDir(f.Checkpoints())
	if err != nil {
		return false
	}
	for _, e := range entries {
		if e.Type() == fs.ModeDir && !strings.HasPrefix(e.Name(), ".") && filepath.Join(f.Checkpoints(), e.Name()) != f.Final() {
			return true
		}
	}
	return false
}

// reason says why a run failed, with the last lines of its log.
func reason(s spec.Status, f spec.Folder) string {
	text := printable(s.Message)
	if text == "" {
		text = "The run gave no reason"
	}
	text = strings.TrimRight(text, ".") + "."
	if log := printable(last(s.Log, 2000)); log != "" {
		text += "\n\nThe end of its log:\n" + log
	}
	return text + "\n\nIts logs are in " + f.Logs() + "."
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
