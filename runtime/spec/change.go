package spec

// LiveChange holds the changes that a running run takes on; nil fields stay.
type LiveChange struct {
	Workers           *int      `json:"workers,omitempty"`
	MinReplicas       *int      `json:"min_replicas,omitempty"`
	EvaluateEvery     *int      `json:"evaluate_every,omitempty"`
	CheckpointEvery   *int      `json:"checkpoint_every,omitempty"`
	CheckpointSeconds *int      `json:"checkpoint_seconds,omitempty"`
	CheckpointKeep    *int      `json:"checkpoint_keep,omitempty"`
	Deadline          *Duration `json:"deadline,omitempty"`
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
	}
}

// LiveBetween gives the live fields in which a run's spec and a newer one
// differ, to be sent to the run.
func LiveBetween(before, after Spec) LiveChange {
	var l LiveChange
	for to, field := range l.numbers(&after) {
		*to = field
	}
	for to, field := range l.numbers(&before) {
		if **to == *field {
			*to = nil
		}
	}
	if before.Deadline != after.Deadline {
		l.Deadline = &after.Deadline
	}
	return l
}

// LiveOf gives all live fields of a specification.
func LiveOf(s Spec) LiveChange {
	var l LiveChange
	for to, field := range l.numbers(&s) {
		*to = field
	}
	l.Deadline = &s.Deadline
	return l
}

// Apply sets the changed fields in a spec.
func (l LiveChange) Apply(s *Spec) {
	for to, field := range l.numbers(s) {
		if *to != nil {
			*field = **to
		}
	}
	if l.Deadline != nil {
		s.Deadline = *l.Deadline
	}
	// Fewer workers than the minimum would wait for ever.
	s.Worker.MinReplicas = min(s.Worker.MinReplicas, s.Worker.Replicas)
}
