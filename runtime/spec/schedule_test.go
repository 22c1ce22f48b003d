package spec

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// scheduled is a run of 10 epochs of 1000 records with a learning rate of 0.4.
func scheduled(d Schedule) Spec {
	s := sample()
	s.Epochs, s.LearningRate, s.BatchSize, s.Schedule = 10, 0.4, 100, d
	return s
}

func TestRateAt(t *testing.T) {
	for name, tt := range map[string]struct {
		schedule Schedule
		at       map[int64]float64 // by records committed
	}{
		"none":     {Schedule{}, map[int64]float64{0: 0.4, 5000: 0.4, 9900: 0.4}},
		"constant": {Schedule{Name: ScheduleConstant, WarmupEpochs: 0.5}, map[int64]float64{0: 0.08, 100: 0.16, 399: 0.4 * 499 / 500, 400: 0.4, 9900: 0.4}},
		"step": {Schedule{Name: ScheduleStep, DecayEpochs: "[2.5,8]", WarmupEpochs: 1},
			map[int64]float64{0: 0.04, 1000: 0.4, 2499: 0.4, 2500: 0.04, 7999: 0.04, 8000: 0.004}},
		"every": {Schedule{Name: ScheduleStep, DecayEvery: 3, DecayFactor: 0.5},
			map[int64]float64{0: 0.4, 2999: 0.4, 3000: 0.2, 6000: 0.1, 9000: 0.05, 9999: 0.05}},
		"cosine": {Schedule{Name: ScheduleCosine, MinimumRate: 0.1},
			map[int64]float64{0: 0.4, 2500: 0.25 + 0.15*math.Sqrt2/2, 5000: 0.25, 10000: 0.1, 20000: 0.1}},
		"cosine behind a warm-up": {Schedule{Name: ScheduleCosine, WarmupEpochs: 2}, map[int64]float64{0: 0.02, 1900: 0.4, 2000: 0.4, 6000: 0.2}},
		"linear":                  {Schedule{Name: ScheduleLinear, MinimumRate: 0.2}, map[int64]float64{0: 0.4, 2500: 0.35, 9000: 0.22, 10000: 0.2}},
	} {
		s := scheduled(tt.schedule)
		if p := s.Validate(); len(p) > 0 {
			t.Errorf("%s: %v", name, p)
		}
		for committed, want := range tt.at {
			if got := s.RateAt(1, committed, 100, 1000); math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: rate %g behind %d records, want %g", name, got, committed, want)
			}
		}
	}
}

// A schedule that ends, ends with the run: also where max_steps ends it. Servers
// refuse a rate of 0.
func TestRateAtTheEnd(t *testing.T) {
	s := scheduled(Schedule{Name: ScheduleLinear})
	s.BatchSize, s.MaxSteps = 300, 6 // of which 4 make an epoch: 1600 records
	for committed, want := range map[int64]float64{0: 0.4, 1200: 0.1, 1300: 0.075} {
		if got := s.RateAt(1, committed, 300, 1000); math.Abs(got-want) > 1e-12 {
			t.Errorf("rate %g behind %d records, want %g", got, committed, want)
		}
	}
	for _, name := range []string{ScheduleLinear, ScheduleCosine, ScheduleStep} {
		s.Schedule = Schedule{Name: name, DecayEvery: 0.01}
		if got := float32(s.RateAt(1, 1<<40, 1, 1000)); !(got > 0 && got < 1e-20) {
			t.Errorf("%s: rate %g", name, got)
		}
	}
	if s = scheduled(Schedule{}); s.RateAt(1, 0, 1, 0) != 0.4 {
		t.Error("an empty training set has another rate")
	}
	s.BatchPer, s.LearningRateScaling, s.Schedule = BatchPerWorker, ScalingLinear, Schedule{Name: ScheduleLinear, MinimumRate: 0.2}
	if got := s.RateAt(4, 5000, 400, 1000); math.Abs(got-(0.2+1.4/2)) > 1e-12 {
		t.Errorf("4 workers: rate %g", got)
	}
}

func TestValidateOptimizerAndSchedule(t *testing.T) {
	for name, tt := range map[string]struct {
		field string // "": it is accepted
		set   func(*Spec)
	}{
		"adam": {"", func(s *Spec) {
			s.Optimizer = Optimizer{Name: OptimizerAdam, Beta1: 0.8, Beta2: 0.99, Epsilon: 1e-6, WeightDecay: 0.1}
		}},
		"adagrad":        {"", func(s *Spec) { s.Optimizer = Optimizer{Name: OptimizerAdagrad, Epsilon: 1e-6} }},
		"clip":           {"", func(s *Spec) { s.ClipNorm, s.ParameterServer.Replicas = 1, 2 }},
		"adam momentum":  {"optimizer.momentum", func(s *Spec) { s.Optimizer = Optimizer{Name: OptimizerAdam, Momentum: 0.9} }},
		"adagrad nest":   {"optimizer.nesterov", func(s *Spec) { s.Optimizer = Optimizer{Name: OptimizerAdagrad, Nesterov: true} }},
		"sgd beta1":      {"optimizer.beta1", func(s *Spec) { s.Optimizer.Beta1 = 0.9 }},
		"adagrad beta2":  {"optimizer.beta2", func(s *Spec) { s.Optimizer = Optimizer{Name: OptimizerAdagrad, Beta2: 0.9} }},
		"sgd epsilon":    {"optimizer.epsilon", func(s *Spec) { s.Optimizer.Epsilon = 1e-8 }},
		"beta1 of 1":     {"optimizer.beta1", func(s *Spec) { s.Optimizer = Optimizer{Name: OptimizerAdamW, Beta1: 1} }},
		"beta2 near 1":   {"optimizer.beta2", func(s *Spec) { s.Optimizer = Optimizer{Name: OptimizerAdamW, Beta2: 0.99999999} }},
		"epsilon near 0": {"optimizer.epsilon", func(s *Spec) { s.Optimizer = Optimizer{Name: OptimizerAdam, Epsilon: 1e-60} }},
		"crop":           {"", func(s *Spec) { s.Augmentation = Augmentation{Crop: 4, Flip: true} }},
		"crop below 0":   {"augmentation.crop", func(s *Spec) { s.Augmentation.Crop = -1 }},
		"wide crop":      {"augmentation.crop", func(s *Spec) { s.Augmentation.Crop = 5000 }},
		"clip below 0":   {"clip_norm", func(s *Spec) { s.ClipNorm = -1 }},
		"clip and bits":  {"clip_norm", func(s *Spec) { s.ClipNorm, s.Deterministic, s.ParameterServer.Replicas = 1, true, 2 }},
		"schedule":       {"schedule.name", func(s *Spec) { s.Schedule.Name = "poly" }},
		"step of what":   {"schedule.name", func(s *Spec) { s.Schedule.Name = ScheduleStep }},
		"two steps":      {"schedule.decay_every", func(s *Spec) { s.Schedule = Schedule{Name: ScheduleStep, DecayEvery: 1, DecayEpochs: "[1]"} }},
		"order":          {"schedule.decay_epochs", func(s *Spec) { s.Schedule = Schedule{Name: ScheduleStep, DecayEpochs: "[2,1]"} }},
		"no epochs":      {"schedule.decay_epochs", func(s *Spec) { s.Schedule = Schedule{Name: ScheduleStep, DecayEpochs: "[]"} }},
		"no numbers":     {"schedule.decay_epochs", func(s *Spec) { s.Schedule = Schedule{Name: ScheduleStep, DecayEpochs: `"x"`} }},
		"factor":         {"schedule.decay_factor", func(s *Spec) { s.Schedule = Schedule{Name: ScheduleStep, DecayEvery: 1, DecayFactor: 2} }},
		"linear decay":   {"schedule.decay_epochs", func(s *Spec) { s.Schedule = Schedule{Name: ScheduleLinear, DecayEpochs: "[1]"} }},
		"long warm-up":   {"schedule.warmup_epochs", func(s *Spec) { s.Schedule.WarmupEpochs = 11 }},
		"NaN":            {"schedule.warmup_epochs", func(s *Spec) { s.Schedule.WarmupEpochs = math.NaN() }},
		"minimum":        {"schedule.minimum_learning_rate", func(s *Spec) { s.Schedule.MinimumRate = 0.1 }},
		"high minimum":   {"schedule.minimum_learning_rate", func(s *Spec) { s.Schedule = Schedule{Name: ScheduleCosine, MinimumRate: 0.5} }},
	} {
		s := scheduled(Schedule{})
		tt.set(&s)
		problems := s.Validate()
		if tt.field == "" && len(problems) > 0 || tt.field != "" && (len(problems) != 1 || problems[0].Field != tt.field) {
			t.Errorf("%s: problems %v, want one of %q", name, problems, tt.field)
		}
	}
}

// What a zero stands for is no change; a spec of SGD is the text that it was.
func TestOptimizerAndScheduleDefaults(t *testing.T) {
	a, b := scheduled(Schedule{Name: ScheduleStep, DecayEvery: 1}), scheduled(Schedule{Name: ScheduleStep, DecayEvery: 1, DecayFactor: 0.1})
	a.Optimizer = Optimizer{Name: OptimizerAdam}
	b.Optimizer = Optimizer{Name: OptimizerAdam, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
	if changes := Compare(a, b); len(changes) > 0 || a.Hash() != b.Hash() {
		t.Errorf("changes %v", changes)
	}
	plain, constant := sample(), sample()
	constant.Schedule.Name = ScheduleConstant
	if changes := Compare(plain, constant); len(changes) > 0 || plain.Hash() != constant.Hash() || plain.Hash() == a.Hash() {
		t.Errorf("changes %v", changes)
	}
	text, err := json.Marshal(plain)
	for _, name := range []string{"schedule", "clip_norm", "beta", "epsilon", "augmentation"} {
		if err != nil || strings.Contains(string(text), name) {
			t.Errorf("%s is in %s (%v)", name, text, err)
		}
	}
}
