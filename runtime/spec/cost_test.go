package spec

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func sample() Spec {
	s := Default()
	s.Name, s.Model = "mnist", "mnist-cnn"
	s.Dataset = Dataset{Path: "/data/mnist", Hash: "sha256:1"}
	return s
}

func TestEveryFieldHasACost(t *testing.T) {
	for _, f := range Fields() {
		if _, ok := costs[f]; !ok {
			t.Errorf("field %s is not in the table of costs", f)
		}
	}
	if got, want := len(costs), len(Fields()); got != want {
		t.Errorf("the table has %d rows, Spec has %d fields", got, want)
	}
}

// change sets one field of s, given by its dotted name, to another value.
func change(t *testing.T, s *Spec, field string) {
	t.Helper()
	var walk func(prefix string, v reflect.Value) bool
	walk = func(prefix string, v reflect.Value) bool {
		for i := range v.NumField() {
			tag, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			name := prefix + tag
			f := v.Field(i)
			switch {
			case f.Kind() == reflect.Struct:
				if walk(name+".", f) {
					return true
				}
			case name != field:
			case f.Kind() == reflect.String:
				f.SetString(f.String() + "x")
				return true
			case f.Kind() == reflect.Bool:
				f.SetBool(!f.Bool())
				return true
			case f.CanInt():
				f.SetInt(f.Int() + 1)
				return true
			case f.CanUint():
				f.SetUint(f.Uint() + 1)
				return true
			case f.CanFloat():
				f.SetFloat(f.Float() / 2)
				f.SetFloat(f.Float() + 1e-9)
				return true
			}
		}
		return false
	}
	if !walk("", reflect.ValueOf(s).Elem()) {
		t.Fatalf("no field %s", field)
	}
}

func TestHashCoversExactlyNewRunFields(t *testing.T) {
	for _, f := range Fields() {
		t.Run(f, func(t *testing.T) {
			a, b := sample(), sample()
			a.MicroBatch, b.MicroBatch = 8, 8 // else batch_size changes it too
			a.Engine, b.Engine = EngineCPU, EngineCPU
			change(t, &b, f)
			if got, want := a.Hash() != b.Hash(), CostOf(f) == NewRun; got != want {
				t.Errorf("hash changed: %v, want %v", got, want)
			}
			got := Compare(a, b)
			if len(got) != 1 || got[0].Field != f || got[0].Cost != CostOf(f) {
				t.Errorf("Compare = %v", got)
			}
		})
	}
}

// Runs of the first version are known by this hash.
func TestHashOfEarlierVersions(t *testing.T) {
	s := sample()
	if got, want := s.Hash(), "sha256:fb1ddb80c9cc55b28db354ef728e7ce5f192619f21015842e89b63d3089eaf58"; got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
}

func TestWritingADefaultOutIsNoChange(t *testing.T) {
	a, b := sample(), sample()
	b.MicroBatch, b.Engine = 32, EngineCPU
	if diff := cmp.Diff([]Change(nil), Compare(a, b)); diff != "" || a.Hash() != b.Hash() {
		t.Errorf("changes: %s", diff)
	}
}

// A run that was started by an earlier version knows no newer setting: it is
// told what changed, and nothing else.
func TestOnlyChangedSettingsAreSent(t *testing.T) {
	a, b := sample(), sample()
	if diff := cmp.Diff(LiveChange{}, LiveBetween(a, b)); diff != "" {
		t.Error(diff)
	}
	b.Worker.Replicas, b.Checkpoint.EverySeconds, b.Deadline = 4, 7, Duration(5)
	s := LiveBetween(a, b)
	text, err := json.Marshal(s)
	if err != nil || string(text) != `{"workers":4,"checkpoint_seconds":7,"deadline":"5ns"}` {
		t.Errorf("%s, %v", text, err)
	}
	s.Apply(&a)
	if diff := cmp.Diff(b, a); diff != "" {
		t.Error(diff)
	}
}

func TestSpecSurvivesJSON(t *testing.T) {
	a := sample()
	a.Deadline = Duration(90e9)
	data, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var b Spec
	if err := json.Unmarshal(data, &b); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Error(diff)
	}
}

func TestValidate(t *testing.T) {
	good := sample()
	if p := good.Validate(); len(p) > 0 {
		t.Fatalf("a good spec is refused: %v", p)
	}
	tests := map[string]func(*Spec){
		"model":                     func(s *Spec) { s.Model = "" },
		"dataset.path":              func(s *Spec) { s.Dataset.Path = "relative" },
		"dataset.hash":              func(s *Spec) { s.Dataset.Hash = "" },
		"loss":                      func(s *Spec) { s.Loss = "hinge" },
		"strategy":                  func(s *Spec) { s.Strategy = "gossip" },
		"engine":                    func(s *Spec) { s.Engine, s.Worker.GPUs = EngineCPU, 1 },
		"compute_type":              func(s *Spec) { s.Worker.GPUs, s.ComputeType = 1, "f16" },
		"deadline":                  func(s *Spec) { s.Deadline = -1 },
		"batch_size":                func(s *Spec) { s.BatchSize = 0 },
		"batch_per":                 func(s *Spec) { s.BatchPer = "epoch" },
		"micro_batch":               func(s *Spec) { s.MicroBatch = s.BatchSize + 1 },
		"epochs":                    func(s *Spec) { s.Epochs = 0 },
		"init_from.path":            func(s *Spec) { s.InitFrom = InitFrom{Path: "base", Hash: "sha256:1"} },
		"init_from.hash":            func(s *Spec) { s.InitFrom.Path = "/base" },
		"init_from.skip":            func(s *Spec) { s.InitFrom = InitFrom{Path: "/base", Hash: "sha256:1", Skip: `["[a"]`} },
		"max_steps":                 func(s *Spec) { s.MaxSteps = -1 },
		"shuffle_block":             func(s *Spec) { s.ShuffleBlock = -1 },
		"learning_rate":             func(s *Spec) { s.LearningRate = 0 },
		"learning_rate_scaling":     func(s *Spec) { s.LearningRateScaling = ScalingLinear },
		"optimizer.name":            func(s *Spec) { s.Optimizer.Name = "lion" },
		"optimizer.momentum":        func(s *Spec) { s.Optimizer.Momentum = 1 },
		"optimizer.nesterov":        func(s *Spec) { s.Optimizer.Momentum, s.Optimizer.Nesterov = 0, true },
		"optimizer.weight_decay":    func(s *Spec) { s.Optimizer.WeightDecay = -1 },
		"evaluation.every_steps":    func(s *Spec) { s.Evaluation.EverySteps = -1 },
		"checkpoint.every_steps":    func(s *Spec) { s.Checkpoint.EverySteps = -1 },
		"checkpoint.every_seconds":  func(s *Spec) { s.Checkpoint.EverySeconds = -1 },
		"checkpoint.keep":           func(s *Spec) { s.Checkpoint.Keep = 0 },
		"worker.replicas":           func(s *Spec) { s.Worker.Replicas = 5000 },
		"worker.min_replicas":       func(s *Spec) { s.Worker.MinReplicas = 2 },
		"worker.gpus":               func(s *Spec) { s.Worker.GPUs = -1 },
		"worker.threads":            func(s *Spec) { s.Worker.Threads = -1 },
		"parameter_server.replicas": func(s *Spec) { s.ParameterServer.Replicas = 0 },
	}
	for field, spoil := range tests {
		s := sample()
		spoil(&s)
		problems := s.Validate()
		if len(problems) != 1 || problems[0].Field != field {
			t.Errorf("%s: problems %v", field, problems)
		}
	}
}

// A run that begins from another model may make no update.
func TestValidateEvaluatesOnly(t *testing.T) {
	s := sample()
	s.Epochs, s.InitFrom = 0, InitFrom{Path: "/base", Hash: "sha256:1", Skip: `["output/*"]`}
	if problems := s.Validate(); len(problems) > 0 || !s.EvaluatesOnly() || s.Updates(100) != 0 {
		t.Errorf("problems %v, %d updates", problems, s.Updates(100))
	}
	s.Epochs = -1
	if problems := s.Validate(); len(problems) != 1 || problems[0].Field != "epochs" {
		t.Errorf("problems %v", problems)
	}
	s.Epochs, s.InitFrom = 1, InitFrom{Skip: `["output/*"]`}
	if problems := s.Validate(); len(problems) != 1 || problems[0].Field != "init_from.skip" {
		t.Errorf("problems %v", problems)
	}
}

// A worker with several GPUs would use one of them.
func TestValidateGPUs(t *testing.T) {
	for gpus, want := range map[int]string{0: "", 1: "", 2: "replicas to 2 times as many", 8: "replicas to 8 times as many"} {
		s := sample()
		s.Worker.GPUs = gpus
		problems := s.Validate()
		if want == "" && len(problems) > 0 || want != "" && (len(problems) != 1 || !strings.Contains(problems[0].Detail, want)) {
			t.Errorf("%d GPUs of a worker: %v", gpus, problems)
		}
	}
}

// The compute type follows from the engine where it is left out. Only GPUs have
// others than f32, and only in runs that are not deterministic.
func TestComputeType(t *testing.T) {
	for _, test := range []struct {
		gpus          int
		deterministic bool
		given, want   string
		summary       string // of the problem
	}{
		{0, false, "", ComputeF32, ""},
		{0, true, ComputeF32, ComputeF32, ""},
		{0, false, ComputeTF32, ComputeTF32, "The cpu engine computes in f32"},
		{0, true, ComputeBF16, ComputeBF16, "The cpu engine computes in f32"},
		{1, false, "", ComputeTF32, ""},
		{1, false, ComputeF32, ComputeF32, ""},
		{1, false, ComputeBF16, ComputeBF16, ""},
		{1, true, "", ComputeF32, ""},
		{1, true, ComputeF32, ComputeF32, ""},
		{1, true, ComputeTF32, ComputeTF32, "Deterministic runs compute in f32"},
	} {
		s := sample()
		s.Worker.GPUs, s.Deterministic, s.ComputeType = test.gpus, test.deterministic, test.given
		if got := s.ComputeTypeName(); got != test.want {
			t.Errorf("%+v: computes in %q", test, got)
		}
		problems := s.Validate()
		switch {
		case test.summary == "" && len(problems) > 0,
			test.summary != "" && (len(problems) != 1 || problems[0].Field != "compute_type" || problems[0].Summary != test.summary):
			t.Errorf("%+v: problems %v", test, problems)
		}
		written := s
		written.ComputeType = test.want
		if changes := Compare(s, written); len(changes) > 0 || s.Hash() != written.Hash() {
			t.Errorf("%+v: the default written out changes %v", test, changes)
		}
	}
}

// Servers compute with 32 bits: what is 0 or 1 there is so here.
func TestValidateWith32Bits(t *testing.T) {
	for name, tt := range map[string]struct {
		field string
		spoil func(*Spec)
	}{
		"weight decay of 1":          {"optimizer.weight_decay", func(s *Spec) { s.Optimizer.WeightDecay = 1 }},
		"weight decay of 5":          {"optimizer.weight_decay", func(s *Spec) { s.Optimizer.WeightDecay = 5 }},
		"weight decay of nearly 1":   {"optimizer.weight_decay", func(s *Spec) { s.Optimizer.WeightDecay = 0.99999999 }},
		"weight decay of nearly 0":   {"optimizer.weight_decay", func(s *Spec) { s.Optimizer.WeightDecay = 1e-46 }},
		"momentum of nearly 1":       {"optimizer.momentum", func(s *Spec) { s.Optimizer.Momentum = 0.99999999 }},
		"momentum of nearly 0":       {"optimizer.momentum", func(s *Spec) { s.Optimizer.Momentum = 1e-50 }},
		"learning rate of nearly 0":  {"learning_rate", func(s *Spec) { s.LearningRate = 1e-46 }},
		"momentum that is no number": {"optimizer.momentum", func(s *Spec) { s.Optimizer.Momentum = math.NaN() }},
	} {
		s := sample()
		tt.spoil(&s)
		if problems := s.Validate(); len(problems) != 1 || problems[0].Field != tt.field {
			t.Errorf("%s: problems %v", name, problems)
		}
	}
}
