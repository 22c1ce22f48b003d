package spec

// Supervisor is the record of the process that owns a run, in supervisor.json
// and on its standard output before "go".
type Supervisor struct {
	Process
	API     string `json:"api"`     // "http://127.0.0.1:PORT", the same for the supervisor's whole life
	Token   string `json:"token"`   // path of the token's file
	Version string `json:"version"` // of stoke-trainer
}

// ReadSupervisor reads supervisor.json.
func (f Folder) ReadSupervisor() (Supervisor, error) {
	var s Supervisor
	err := ReadJSON(f.Supervisor(), &s)
	return s, err
}

// Go is the line that makes a waiting supervisor start its roles.
const Go = "go"

// Settings holds the changes that a running run takes on; nil fields stay.
type Settings struct {
	Workers         *int      `json:"workers,omitempty"`
	MinReplicas     *int      `json:"min_replicas,omitempty"`
	EvaluateEvery   *int      `json:"evaluate_every,omitempty"`
	CheckpointEvery *int      `json:"checkpoint_every,omitempty"`
	CheckpointKeep  *int      `json:"checkpoint_keep,omitempty"`
	Deadline        *Duration `json:"deadline,omitempty"`
}

// SettingsOf gives the live fields of a spec, to be sent to a run that was started
// with an older one.
func SettingsOf(s Spec) Settings {
	return Settings{
		Workers:         &s.Worker.Replicas,
		MinReplicas:     &s.Worker.MinReplicas,
		EvaluateEvery:   &s.Evaluation.EverySteps,
		CheckpointEvery: &s.Checkpoint.EverySteps,
		CheckpointKeep:  &s.Checkpoint.Keep,
		Deadline:        &s.Deadline,
	}
}

// Apply sets the changed fields in a spec.
func (l Settings) Apply(s *Spec) {
	set := func(to *int, from *int) {
		if from != nil {
			*to = *from
		}
	}
	set(&s.Worker.Replicas, l.Workers)
	set(&s.Worker.MinReplicas, l.MinReplicas)
	set(&s.Evaluation.EverySteps, l.EvaluateEvery)
	set(&s.Checkpoint.EverySteps, l.CheckpointEvery)
	set(&s.Checkpoint.Keep, l.CheckpointKeep)
	if l.Deadline != nil {
		s.Deadline = *l.Deadline
	}
	// Fewer workers than the minimum would wait for ever.
	s.Worker.MinReplicas = min(s.Worker.MinReplicas, s.Worker.Replicas)
}
