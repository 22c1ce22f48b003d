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
	Workers           *int      `json:"workers,omitempty"`
	MinReplicas       *int      `json:"min_replicas,omitempty"`
	EvaluateEvery     *int      `json:"evaluate_every,omitempty"`
	CheckpointEvery   *int      `json:"checkpoint_every,omitempty"`
	CheckpointSeconds *int      `json:"checkpoint_seconds,omitempty"`
	CheckpointKeep    *int      `json:"checkpoint_keep,omitempty"`
	Deadline          *Duration `json:"deadline,omitempty"`
}

// numbers pairs the settings that are numbers with their fields of a spec.
func (l *Settings) numbers(s *Spec) map[**int]*int {
	return map[**int]*int{
		&l.Workers:           &s.Worker.Replicas,
		&l.MinReplicas:       &s.Worker.MinReplicas,
		&l.EvaluateEvery:     &s.Evaluation.EverySteps,
		&l.CheckpointEvery:   &s.Checkpoint.EverySteps,
		&l.CheckpointSeconds: &s.Checkpoint.EverySeconds,
		&l.CheckpointKeep:    &s.Checkpoint.Keep,
	}
}

// SettingsBetween gives the live fields in which a run's spec and a newer one
// differ, to be sent to the run.
func SettingsBetween(before, after Spec) Settings {
	var l Settings
	for setting, field := range l.numbers(&after) {
		*setting = field
	}
	for setting, field := range l.numbers(&before) {
		if **setting == *field {
			*setting = nil
		}
	}
	if before.Deadline != after.Deadline {
		l.Deadline = &after.Deadline
	}
	return l
}

// Apply sets the changed fields in a spec.
func (l Settings) Apply(s *Spec) {
	for setting, field := range l.numbers(s) {
		if *setting != nil {
			*field = **setting
		}
	}
	if l.Deadline != nil {
		s.Deadline = *l.Deadline
	}
	// Fewer workers than the minimum would wait for ever.
	s.Worker.MinReplicas = min(s.Worker.MinReplicas, s.Worker.Replicas)
}
