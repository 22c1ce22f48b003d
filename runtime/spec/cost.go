package spec

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strings"
	"time"
)

// Cost is what a change of one field does to a run.
type Cost int

const (
	// Live changes reach the running processes.
	Live Cost = iota
	// Resume stops the run at a checkpoint and goes on with the new value.
	Resume
	// NewRun means that what was trained is no longer what was asked for.
	NewRun
)

// String is the word that plans show.
func (c Cost) String() string {
	return [...]string{"live", "resume", "new run"}[c]
}

// costs is decision 10 of the design: one row per field of Spec. A test holds
// that none is missing.
var costs = map[string]Cost{
	"name":     Live,
	"deadline": Live,

	"worker.replicas":          Live,
	"worker.min_replicas":      Live,
	"evaluation.every_steps":   Live,
	"checkpoint.every_steps":   Live,
	"checkpoint.every_seconds": Live,
	"checkpoint.keep":          Live,

	"dataset.path":              Resume, // the same data elsewhere: the hash decides
	"init_from.path":            Resume,
	"strategy":                  Resume,
	"asynchronous":              Resume, // part of the strategy
	"engine":                    Resume,
	"compute_type":              Resume,
	"worker.gpus":               Resume,
	"gpu_health":                Resume, // workers have it from their start
	"worker.threads":            Resume,
	"parameter_server.replicas": Resume,

	"program.processes":    Resume,
	"program.chief":        Resume,
	"program.evaluator":    Resume,
	"program.join_timeout": Live,
	"program.max_restarts": Live,
	"program.stop_grace":   Live,

	"program.command":     NewRun,
	"program.code":        NewRun,
	"program.framework":   NewRun,
	"program.environment": NewRun,
	"program.parameters":  NewRun,

	"model":                  NewRun,
	"graph":                  NewRun,
	"layers":                 NewRun,
	"dataset.hash":           NewRun,
	"init_from.hash":         NewRun,
	"init_from.skip":         NewRun,
	"loss":                   NewRun,
	"seed":                   NewRun,
	"batch_size":             NewRun,
	"batch_per":              NewRun,
	"micro_batch":            NewRun,
	"epochs":                 NewRun,
	"deterministic":          NewRun,
	"max_steps":              NewRun,
	"shuffle_block":          NewRun,
	"learning_rate":          NewRun,
	"learning_rate_scaling":  NewRun,
	"optimizer.name":         NewRun,
	"optimizer.momentum":     NewRun,
	"optimizer.nesterov":     NewRun,
	"optimizer.weight_decay": NewRun,
	"optimizer.beta1":        NewRun,
	"optimizer.beta2":        NewRun,
	"optimizer.epsilon":      NewRun,
	"clip_norm":              NewRun,
	"augmentation.crop":      NewRun,
	"augmentation.flip":      NewRun,

	"schedule.name":                  NewRun,
	"schedule.warmup_epochs":         NewRun,
	"schedule.decay_epochs":          NewRun,
	"schedule.decay_every":           NewRun,
	"schedule.decay_factor":          NewRun,
	"schedule.minimum_learning_rate": NewRun,
}

// CostOf says what a change of the field costs; fields are named by their JSON
// names joined with dots. A name that no field has is a programmer's error.
func CostOf(field string) Cost {
	c, ok := costs[field]
	if !ok {
		panic("spec: no such field: " + field)
	}
	return c
}

// Fields lists every field of Spec by name, sorted.
func Fields() []string {
	var names []string
	for name := range flatten(Spec{}) {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

// Change is one field that differs between two specs.
type Change struct {
	Field    string
	Cost     Cost
	Old, New any
}

// LastChange is the newest change of a run's spec.
type LastChange struct {
	At     time.Time `json:"at"`
	Class  string    `json:"class"`  // a Cost in words
	Fields []string  `json:"fields"` // by their names in Spec
}

// Compare lists the fields that differ, sorted by name. The cost of the whole
// is Costliest.
func Compare(old, new Spec) []Change {
	a, b := flatten(resolve(old)), flatten(resolve(new))
	var changes []Change
	for _, field := range Fields() {
		if a[field] != b[field] {
			changes = append(changes, Change{field, CostOf(field), a[field], b[field]})
		}
	}
	return changes
}

// Costliest is the cost of all changes together; Live when there are none.
func Costliest(changes []Change) Cost {
	most := Live
	for _, c := range changes {
		most = max(most, c.Cost)
	}
	return most
}

// resolve replaces zero values by their defaults, so that a written default
// equals an omitted one.
func resolve(s Spec) Spec {
	s.Engine, s.ComputeType = s.EngineName(), s.ComputeTypeName()
	s.MicroBatch = s.MicroBatchSize()
	s.GPUHealth = cmp.Or(s.GPUHealth, GPUHealthReported)
	s.Optimizer, s.Schedule = s.Optimizer.Resolve(), s.Schedule.Resolve()
	return s
}

// isLater reports whether the first version did not know a field: where it is zero,
// it must not change the hash of a run.
func isLater(field string) bool {
	switch field {
	case "graph", "layers", "deterministic", "shuffle_block", "clip_norm", "optimizer.beta1", "optimizer.beta2", "optimizer.epsilon":
		return true
	}
	for _, prefix := range []string{"program.", "schedule.", "augmentation.", "init_from."} {
		if strings.HasPrefix(field, prefix) {
			return true
		}
	}
	return false
}

// Hash identifies the run: it covers exactly the fields whose change means a
// new one.
func (s Spec) Hash() string {
	values := flatten(resolve(s))
	h := sha256.New()
	fmt.Fprintln(h, "stoke run 1")
	for _, field := range Fields() {
		if CostOf(field) != NewRun || isLater(field) && reflect.ValueOf(values[field]).IsZero() {
			continue
		}
		v, err := json.Marshal(values[field])
		if err != nil { // NaN or infinity, which Validate refuses
			v = fmt.Append(nil, values[field])
		}
		fmt.Fprintf(h, "%s=%s\n", field, v)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// flatten maps each leaf field's dotted name to its value.
func flatten(s Spec) map[string]any {
	out := make(map[string]any)
	var walk func(prefix string, v reflect.Value)
	walk = func(prefix string, v reflect.Value) {
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if f := v.Field(i); f.Kind() == reflect.Struct {
				walk(prefix+name+".", f)
			} else {
				out[prefix+name] = f.Interface()
			}
		}
	}
	walk("", reflect.ValueOf(s))
	return out
}
