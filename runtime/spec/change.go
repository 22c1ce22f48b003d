package spec

// LiveChange holds the changes that a running run takes on; nil fields stay.
type LiveChange struct {
	Workers           *int      `json:"workers,omitempty"`
	MinReplicas       *int      `json:"min_replicas,omitempty"`
	EvaluateEvery     *int      `json:"evaluate_every,omitempty"`
	CheckpointEvery   *int      `json:"checkpoint_every,omitempty"`
	CheckpointSeconds *int      `json:"checkpoint_seconds,omitempty"`
	CheckpointKeep    *int      `json:"checkpoint_keep,omitempty"`
	MaxRestarts       *int      `json:"max_restarts,omitempty"`
	Deadline          *Duration `json:"deadline,omitempty"`
	JoinTimeout       *Duration `json:"join_timeout,omitempty"`
	StopGrace         *Duration `json:"stop_grace,omitempty"`
}

// numbers pairs the changes that are numbers with their fields of a spec.
func (l *LiveChange) numbers(s *Spec) map[**int]*int {
	return map[**int]*int{
		&l.Workers:           &s.Worker.Replicas,
		&l.MinReplicas:       &s.Worker.MinReplicas,
		&l.EvaluateEvery:     &s.Evaluation.EverySteps,
		&l.CheckpointEvery:   &s.Checkpoint.EverySteps,
		&l.CheckpointSeconds: &s.Checkpoint.EverySeconds,
		&l.CheckpointKeep:    &s.Checkpoint.Keep,
		&l.MaxRestarts:       &s.Program.MaxRestarts,
	}
}

// times pairs the changes that are times with their fields of a spec.
func (l *LiveChange) times(s *Spec) map[**Duration]*Duration {
	return map[**Duration]*Duration{
		&l.Deadline:    &s.Deadline,
		&l.JoinTimeout: &s.Program.JoinTimeout,
		&l.StopGrace:   &s.Program.StopGrace,
	}
}

// selected sets the changes whose fields differ.
func selected[T comparable](before, after map[**T]*T) {
	for to, field := range after {
		*to = field
	}
	for to, field := range before {
		if **to == *field {
			*to = nil
		}
	}
}

// apply sets the changed fields.
func apply[T any](pairs map[**T]*T) {
	for to, field := range pairs {
		if *to != nil {
			*field = **to
		}
	}
}

// LiveBetween gives the live fields in which a run's spec and a newer one
// differ, to be sent to the run.
func LiveBetween(before, after Spec) LiveChange {
	var l LiveChange
	selected(l.numbers(&before), l.numbers(&after))
	selected(l.times(&before), l.times(&after))
	return l
}

// LiveOf gives all live fields of a specification. Fields of a program are
// left out of a spec without one: earlier versions of the trainer do not know them.
func LiveOf(s Spec) LiveChange {
	var l LiveChange
	for to, field := range l.numbers(&s) {
		*to = field
	}
	for to, field := range l.times(&s) {
		*to = field
	}
	if !s.HasProgram() {
		l.MaxRestarts, l.JoinTimeout, l.StopGrace = nil, nil, nil
	}
	return l
}

// Apply sets the changed fields in a spec.
func (l LiveChange) Apply(s *Spec) {
	apply(l.numbers(s))
	apply(l.times(s))
	// Fewer workers than the minimum would wait for ever.
	s.Worker.MinReplicas = min(s.Worker.MinReplicas, s.Worker.Replicas)
}
