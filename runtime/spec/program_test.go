package spec

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func programSample(t *testing.T) Spec {
	t.Helper()
	s := DefaultProgram()
	s.Name = "mine"
	for to, v := range map[*JSON]any{
		&s.Program.Command:     []string{"python3", "train.py", "--rate={{rate}}"},
		&s.Program.Environment: map[string]string{"B": "2", "A": "1"},
		&s.Program.Parameters:  map[string]any{"rate": 0.5, "name": "x", "fast": true},
	} {
		var err error
		if *to, err = JSONOf(v); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func TestProgramSpecSurvivesJSON(t *testing.T) {
	s := programSample(t)
	if problems := s.Validate(); len(problems) > 0 {
		t.Fatal(problems)
	}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	read := Default()
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	if read != s || read.Hash() != s.Hash() {
		t.Errorf("read back: %s", cmp.Diff(s, read))
	}
	if got := read.Program.Arguments(); !cmp.Equal(got, []string{"python3", "train.py", "--rate={{rate}}"}) {
		t.Errorf("command %q", got)
	}
	if got := read.Program.Variables(); !cmp.Equal(got, []string{"A=1", "B=2"}) {
		t.Errorf("environment %q", got)
	}
	if got := read.Program.Values(); !cmp.Equal(got, map[string]any{"rate": json.Number("0.5"), "name": "x", "fast": true}) {
		t.Errorf("parameters %v", got)
	}
}

// Equal values in another order or spacing are no change.
func TestJSONIsCanonical(t *testing.T) {
	var a, b JSON
	if err := json.Unmarshal([]byte(`{"b": 1, "a": [1.50, "x"]}`), &a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"a":[1.50,"x"],"b":1}`), &b); err != nil {
		t.Fatal(err)
	}
	if a != b {
		t.Errorf("%s and %s differ", a, b)
	}
}

func TestProgramMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Spec)
		field  string // of the only problem; "" is none
	}{
		"valid":                      {func(s *Spec) {}, ""},
		"both":                       {func(s *Spec) { s.Model = "mlp" }, "model"},
		"without a command":          {func(s *Spec) { s.Program.Command = "" }, "program.command"},
		"an empty command":           {func(s *Spec) { s.Program.Command = "[]" }, "program.command"},
		"a command of numbers":       {func(s *Spec) { s.Program.Command = "[1]" }, "program.command"},
		"a list as environment":      {func(s *Spec) { s.Program.Environment = `["A"]` }, "program.environment"},
		"a name with =":              {func(s *Spec) { s.Program.Environment = `{"A=B":"1"}` }, "program.environment"},
		"a parameter with parts":     {func(s *Spec) { s.Program.Parameters = `{"a":[1]}` }, "program.parameters"},
		"an unknown framework":       {func(s *Spec) { s.Program.Framework = "mxnet" }, "program.framework"},
		"gpu without GPUs":           {func(s *Spec) { s.Program.Processes = 0 }, "program.processes"},
		"gpu with GPUs":              {func(s *Spec) { s.Program.Processes, s.Worker.GPUs = 0, 4 }, ""},
		"GPUs that do not divide":    {func(s *Spec) { s.Program.Processes, s.Worker.GPUs = 2, 3 }, "program.processes"},
		"servers with torch":         {func(s *Spec) { s.Program.Framework, s.ParameterServer.Replicas = "torch", 1 }, "parameter_server.replicas"},
		"servers with tensorflow":    {func(s *Spec) { s.Program.Framework, s.ParameterServer.Replicas = "tensorflow", 2 }, ""},
		"a chief of no framework":    {func(s *Spec) { s.Program.Chief = true }, "program.framework"},
		"an evaluator alone":         {func(s *Spec) { s.Program.Framework, s.Program.Evaluator = "tensorflow", true }, "worker.min_replicas"},
		"no time to join":            {func(s *Spec) { s.Program.JoinTimeout = 0 }, "program.join_timeout"},
		"a long grace":               {func(s *Spec) { s.Program.StopGrace = Duration(2 * time.Hour) }, "program.stop_grace"},
		"negative restarts":          {func(s *Spec) { s.Program.MaxRestarts = -1 }, "program.max_restarts"},
		"a relative dataset":         {func(s *Spec) { s.Dataset.Path = "data" }, "dataset.path"},
		"more needed than there are": {func(s *Spec) { s.Worker.MinReplicas = 2 }, "worker.min_replicas"},
	} {
		s := programSample(t)
		c.change(&s)
		problems := s.Validate()
		switch {
		case c.field == "" && len(problems) > 0:
			t.Errorf("%s: %v", name, problems)
		case c.field != "" && (len(problems) != 1 || problems[0].Field != c.field):
			t.Errorf("%s: %v, want one of %s", name, problems, c.field)
		}
	}
}

func TestProgramsLiveChanges(t *testing.T) {
	before, after := programSample(t), programSample(t)
	after.Program.MaxRestarts, after.Program.StopGrace, after.Worker.Replicas = 7, Duration(time.Minute), 4
	for _, c := range Compare(before, after) {
		if c.Cost != Live {
			t.Errorf("%s costs %s", c.Field, c.Cost)
		}
	}
	got := before
	LiveBetween(before, after).Apply(&got)
	if got != after {
		t.Error(cmp.Diff(after, got))
	}
	if l := LiveOf(sample()); l.MaxRestarts != nil || l.JoinTimeout != nil || l.StopGrace != nil {
		t.Errorf("a model's live fields have a program's: %+v", l)
	}
}
