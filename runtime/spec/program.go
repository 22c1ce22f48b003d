package spec

import (
	"bytes"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The libraries that a program may be written with. The framework decides about
// TF_CONFIG, the variables of JAX and the devices that a rank sees.
const (
	FrameworkTorch      = "torch"
	FrameworkTensorFlow = "tensorflow"
	FrameworkJAX        = "jax"
	FrameworkNone       = "none"
)

// Program is a program of the user's that the workers run, instead of training a
// built-in model. The zero value is none.
type Program struct {
	Command     JSON     `json:"command,omitempty"`      // the program and its arguments: a list of texts
	Code        string   `json:"code,omitempty"`         // hash of the snapshot of its folder; "" = it has no folder
	Processes   int      `json:"processes,omitempty"`    // of each worker and server; 0 = one for each GPU
	Framework   string   `json:"framework,omitempty"`    //
	Chief       bool     `json:"chief,omitempty"`        // TensorFlow: the first worker is the chief, which decides about the run's end
	Evaluator   bool     `json:"evaluator,omitempty"`    // TensorFlow: the last worker is the evaluator
	Environment JSON     `json:"environment,omitempty"`  // texts by name
	Parameters  JSON     `json:"parameters,omitempty"`   // texts, numbers and truth values by name
	JoinTimeout Duration `json:"join_timeout,omitzero"`  // from min_replicas workers to a start without the others
	MaxRestarts int      `json:"max_restarts,omitempty"` // after ends by the program's own error
	StopGrace   Duration `json:"stop_grace,omitzero"`    // from SIGTERM to SIGKILL
}

// The values of a program that says nothing else.
const (
	DefaultJoinTimeout = Duration(30 * time.Second)
	DefaultMaxRestarts = 3
	DefaultStopGrace   = Duration(30 * time.Second)
)

// DefaultProgram returns a spec of a program with every default filled in; name
// and command remain to be set. Fields of built-in models are zero.
func DefaultProgram() Spec {
	return Spec{
		Worker: Worker{Replicas: 1, MinReplicas: 1},
		Program: Program{
			Processes: 1, Framework: FrameworkNone,
			JoinTimeout: DefaultJoinTimeout, MaxRestarts: DefaultMaxRestarts, StopGrace: DefaultStopGrace,
		},
	}
}

// HasProgram reports whether the workers run a program, not a built-in model.
func (s *Spec) HasProgram() bool { return s.Program != (Program{}) }

// ProcessesPerWorker resolves processes = 0.
func (s *Spec) ProcessesPerWorker() int {
	if n := s.Program.Processes; n > 0 {
		return n
	}
	return max(1, s.Worker.GPUs)
}

// Arguments returns the command: the program and its arguments.
func (p *Program) Arguments() []string {
	var list []string
	p.Command.decode(&list)
	return list
}

// Variables returns the environment as NAME=VALUE, sorted.
func (p *Program) Variables() []string {
	var all map[string]string
	p.Environment.decode(&all)
	var list []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+all[name])
	}
	return list
}

// Values returns the parameters by name. Numbers are json.Number.
func (p *Program) Values() map[string]any {
	values := make(map[string]any)
	p.Parameters.decode(&values)
	return values
}

// JSON is a value as compact JSON with sorted names, "" for none. It keeps
// specs comparable.
type JSON string

// JSONOf returns a value as JSON. A value that JSON cannot express is an error.
func JSONOf(v any) (JSON, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	return canonical(text)
}

// canonical returns JSON in the one form that equal values share.
func canonical(text []byte) (JSON, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		return "", err
	}
	sorted, err := json.Marshal(v)
	return JSON(sorted), err
}

// decode sets a value; one of another type stays unset, as Validate reports.
func (j JSON) decode(v any) error {
	if j == "" {
		return nil
	}
	decoder := json.NewDecoder(strings.NewReader(string(j)))
	decoder.UseNumber()
	return decoder.Decode(v)
}

// MarshalJSON returns the value itself.
func (j JSON) MarshalJSON() ([]byte, error) {
	if j == "" {
		return []byte("null"), nil
	}
	return []byte(j), nil
}

// UnmarshalJSON accepts every value.
func (j *JSON) UnmarshalJSON(text []byte) (err error) {
	if string(text) == "null" {
		*j = ""
		return nil
	}
	*j, err = canonical(text)
	return err
}

// Limits of a program.
const (
	maxProcesses = 256 // of one worker
	maxGPUs      = 64  // of one worker
	maxJoin      = Duration(24 * time.Hour)
	maxGrace     = Duration(time.Hour) // a destroy waits for it
)

// validateProgram checks a spec that has a program. Fields of built-in models must
// not be set.
func (s *Spec) validateProgram(c *checks) {
	p := &s.Program
	if s.Model != "" {
		c.add("model", "Both a model and a program", "Give either model or program.")
	}
	p.validateValues(c)
	c.oneOf("program.framework", p.Framework, FrameworkTorch, FrameworkTensorFlow, FrameworkJAX, FrameworkNone)
	c.checkRange("program.processes", p.Processes, 0, maxProcesses)
	if p.Processes == 0 && s.Worker.GPUs == 0 {
		c.add("program.processes", "A worker has no GPU", "Set worker.gpus for processes = \"gpu\", or give a number of processes.")
	}
	if n := p.Processes; n > 1 && s.Worker.GPUs%n != 0 && p.Framework != FrameworkTorch {
		c.add("program.processes", "GPUs cannot be shared equally",
			"Each of a worker's processes gets as many GPUs as the others: %d GPUs cannot be divided by %d.", s.Worker.GPUs, n)
	}
	if (p.Chief || p.Evaluator) && p.Framework != FrameworkTensorFlow {
		c.add("program.framework", "Only TensorFlow has a chief and an evaluator",
			"Set framework = %q, or leave chief and evaluator out.", FrameworkTensorFlow)
	}
	if p.Evaluator && s.Worker.MinReplicas < 2 {
		c.add("worker.min_replicas", "Too few workers for an evaluator", "The last worker is the evaluator: set min_replicas to 2 or more.")
	}
	if s.ParameterServer.Replicas > 0 && (p.Framework == FrameworkTorch || p.Framework == FrameworkJAX) {
		c.add("parameter_server.replicas", "Programs of this framework have no servers",
			"Leave parameter_server out, or set framework to %q or %q.", FrameworkTensorFlow, FrameworkNone)
	}
	c.checkRange("parameter_server.replicas", s.ParameterServer.Replicas, 0, maxReplicas)
	c.checkRange("program.max_restarts", p.MaxRestarts, 0, maxNumber)
	c.duration("program.join_timeout", p.JoinTimeout, maxJoin)
	c.duration("program.stop_grace", p.StopGrace, maxGrace)
	c.checkRange("worker.gpus", s.Worker.GPUs, 0, maxGPUs)
	if s.Dataset.Path != "" && !filepath.IsAbs(s.Dataset.Path) {
		c.add("dataset.path", "Dataset path is not absolute", "Give a folder, or leave dataset out; it is %q.", s.Dataset.Path)
	}
}

// validateValues checks command, environment and parameters.
func (p *Program) validateValues(c *checks) {
	var list []string
	if err := p.Command.decode(&list); err != nil || len(list) == 0 || list[0] == "" {
		c.add("program.command", "No command given", "Give the program and its arguments, for example [\"python3\", \"train.py\"].")
	}
	var environment map[string]string
	if err := p.Environment.decode(&environment); err != nil {
		c.add("program.environment", "Environment is not texts by name", "Give NAME = \"value\" pairs: %v.", err)
	}
	for name, value := range environment {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			c.add("program.environment", "Not a name of an environment variable",
				"%q cannot be set: a name is not empty and has no \"=\".", name)
		}
	}
	values := make(map[string]any)
	err := p.Parameters.decode(&values)
	if err != nil {
		c.add("program.parameters", "Parameters are not values by name", "Give name = value pairs: %v.", err)
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch values[name].(type) {
		case string, json.Number, bool:
		default:
			c.add("program.parameters", "A parameter has parts", "%s must be a text, a number or a truth value.", name)
		}
	}
}

// duration checks a time that must be above 0.
func (c *checks) duration(field string, v, most Duration) {
	if v <= 0 || v > most {
		c.add(field, "Time out of range", "%s must be above 0 and at most %v; it is %v.", field, time.Duration(most), time.Duration(v))
	}
}
