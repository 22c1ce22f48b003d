package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/stokehq/stoke/providers/train/graph"
	"github.com/stokehq/stoke/providers/train/program"
	"github.com/stokehq/stoke/runtime/spec"
)

// argument ties a field of the spec to where people write it.
type argument struct {
	field string // of spec.Spec, as in spec.Fields
	in    string // nested attribute or block; "" for the top level
	name  string
	// set takes a value that is known and not null into the spec.
	set func(s *spec.Spec, v attr.Value) error
	// get gives the spec's value; nil where there is no default to show.
	get func(s *spec.Spec) attr.Value
}

// path is where the argument stands in a configuration.
func (a *argument) path() path.Path {
	if a.in == "" {
		return path.Root(a.name)
	}
	return path.Root(a.in).AtName(a.name)
}

// arguments lists every field that people write; dataset is apart, because a
// URI becomes a path and a hash.
func arguments() []argument {
	return append([]argument{
		unfilled(textual("model", "", "model", func(s *spec.Spec) *string { return &s.Model })),
		textual("name", "", "name", func(s *spec.Spec) *string { return &s.Name }),
		textual("strategy", "", "strategy", func(s *spec.Spec) *string { return &s.Strategy }),
		textual("batch_per", "", "batch_per", func(s *spec.Spec) *string { return &s.BatchPer }),
		textual("learning_rate_scaling", "", "learning_rate_scaling", func(s *spec.Spec) *string { return &s.LearningRateScaling }),
		synchronous(), deterministic(), deadline(), gpuHealth(), initFrom(), initSkip(),
		unfilled(textual("compute_type", "", "compute_type", func(s *spec.Spec) *string { return &s.ComputeType })),
		count("parameter_server.replicas", "parameter_server", "replicas", func(s *spec.Spec) *int { return &s.ParameterServer.Replicas }),
		count("worker.replicas", "worker", "replicas", func(s *spec.Spec) *int { return &s.Worker.Replicas }),
		count("worker.min_replicas", "worker", "min_replicas", func(s *spec.Spec) *int { return &s.Worker.MinReplicas }),
		count("worker.gpus", "worker", "gpus", func(s *spec.Spec) *int { return &s.Worker.GPUs }),
		count("worker.threads", "worker", "threads", func(s *spec.Spec) *int { return &s.Worker.Threads }),
		count("evaluation.every_steps", "evaluation", "every_steps", func(s *spec.Spec) *int { return &s.Evaluation.EverySteps }),
		count("checkpoint.every_steps", "checkpoint", "every_steps", func(s *spec.Spec) *int { return &s.Checkpoint.EverySteps }),
		count("checkpoint.every_seconds", "checkpoint", "every_seconds", func(s *spec.Spec) *int { return &s.Checkpoint.EverySeconds }),
		count("checkpoint.keep", "checkpoint", "keep", func(s *spec.Spec) *int { return &s.Checkpoint.Keep }),

		command(), environment(), parameters(), processes(),
		textual("program.framework", programBlock, "framework", func(s *spec.Spec) *string { return &s.Program.Framework }),
		truth("program.chief", programBlock, "chief", func(s *spec.Spec) *bool { return &s.Program.Chief }),
		truth("program.evaluator", programBlock, "evaluator", func(s *spec.Spec) *bool { return &s.Program.Evaluator }),
		lapse("program.join_timeout", "join_timeout", func(s *spec.Spec) *spec.Duration { return &s.Program.JoinTimeout }),
		lapse("program.stop_grace", "stop_grace", func(s *spec.Spec) *spec.Duration { return &s.Program.StopGrace }),
		count("program.max_restarts", programBlock, "max_restarts", func(s *spec.Spec) *int { return &s.Program.MaxRestarts }),
	}, hyperparameters()...)
}

// hyper is the name of the attribute of hyperparameters.
const hyper = "hyperparameters"

// hyperparameters lists the fields that are written there.
func hyperparameters() []argument {
	return []argument{
		fraction("learning_rate", hyper, "learning_rate", func(s *spec.Spec) *float64 { return &s.LearningRate }),
		fraction("optimizer.momentum", hyper, "momentum", func(s *spec.Spec) *float64 { return &s.Optimizer.Momentum }),
		fraction("optimizer.weight_decay", hyper, "weight_decay", func(s *spec.Spec) *float64 { return &s.Optimizer.WeightDecay }),
		count("batch_size", hyper, "batch_size", func(s *spec.Spec) *int { return &s.BatchSize }),
		count("epochs", hyper, "epochs", func(s *spec.Spec) *int { return &s.Epochs }),
		count("max_steps", hyper, "max_steps", func(s *spec.Spec) *int { return &s.MaxSteps }),
		unfilled(count("shuffle_block", hyper, "shuffle_block", func(s *spec.Spec) *int { return &s.ShuffleBlock })),
		microBatch(), seed(),
		truth("optimizer.nesterov", hyper, "nesterov", func(s *spec.Spec) *bool { return &s.Optimizer.Nesterov }),

		unfilled(textual("optimizer.name", hyper, "optimizer", func(s *spec.Spec) *string { return &s.Optimizer.Name })),
		positive("optimizer.beta1", "beta1", func(s *spec.Spec) *float64 { return &s.Optimizer.Beta1 }),
		positive("optimizer.beta2", "beta2", func(s *spec.Spec) *float64 { return &s.Optimizer.Beta2 }),
		positive("optimizer.epsilon", "epsilon", func(s *spec.Spec) *float64 { return &s.Optimizer.Epsilon }),
		unfilled(fraction("clip_norm", hyper, "clip_norm", func(s *spec.Spec) *float64 { return &s.ClipNorm })),
		unfilled(count("augmentation.crop", hyper, "random_crop", func(s *spec.Spec) *int { return &s.Augmentation.Crop })),
		unfilled(truth("augmentation.flip", hyper, "random_flip", func(s *spec.Spec) *bool { return &s.Augmentation.Flip })),
		unfilled(textual("schedule.name", hyper, "schedule", func(s *spec.Spec) *string { return &s.Schedule.Name })),
		unfilled(fraction("schedule.warmup_epochs", hyper, "warmup_epochs",
			func(s *spec.Spec) *float64 { return &s.Schedule.WarmupEpochs })),
		unfilled(decayEpochs()),
		positive("schedule.decay_every", "decay_every", func(s *spec.Spec) *float64 { return &s.Schedule.DecayEvery }),
		positive("schedule.decay_factor", "decay_factor", func(s *spec.Spec) *float64 { return &s.Schedule.DecayFactor }),
		unfilled(fraction("schedule.minimum_learning_rate", hyper, "minimum_learning_rate",
			func(s *spec.Spec) *float64 { return &s.Schedule.MinimumRate })),
	}
}

// unfilled is an argument whose default is not filled in: states of earlier
// versions do not have it either.
func unfilled(a argument) argument {
	get, plain := a.get, spec.Default()
	a.get = func(s *spec.Spec) attr.Value {
		v := get(s)
		if v.Equal(get(&plain)) {
			return null(context.Background(), v.Type(context.Background()))
		}
		return v
	}
	return a
}

// positive is an unfilled number: zero means the default, and is an error where it is written.
func positive(field, name string, of func(*spec.Spec) *float64) argument {
	a := unfilled(fraction(field, hyper, name, of))
	a.set = func(s *spec.Spec, v attr.Value) error {
		if *of(s) = float(v.(types.Number)); *of(s) == 0 {
			return errors.New("give a number above 0, or leave it out")
		}
		return nil
	}
	return a
}

func decayEpochs() argument {
	return argument{"schedule.decay_epochs", hyper, "decay_epochs",
		func(s *spec.Spec, v attr.Value) (err error) {
			s.Schedule.DecayEpochs, err = program.JSONOf(v)
			return err
		},
		func(s *spec.Spec) attr.Value {
			list, _ := s.Schedule.Epochs() // Validate reports what it does not read
			var values []attr.Value
			for _, epoch := range list {
				values = append(values, decimal(epoch))
			}
			return types.ListValueMust(types.NumberType, values)
		}}
}

func microBatch() argument {
	a := count("micro_batch", hyper, "micro_batch", func(s *spec.Spec) *int { return &s.MicroBatch })
	a.get = func(s *spec.Spec) attr.Value { return wholeNumber(int64(s.MicroBatchSize())) }
	return a
}

func seed() argument {
	return argument{"seed", hyper, "seed",
		func(s *spec.Spec, v attr.Value) error {
			n, err := integer(v.(types.Number), 0, math.MaxInt64)
			s.Seed = uint64(n)
			return err
		},
		func(s *spec.Spec) attr.Value { return wholeNumber(int64(s.Seed)) }}
}

// programBlock is the name of the block of a program.
const programBlock = "program"

// isFor reports whether the argument is one of programs, or else of built-in models.
func (a *argument) isFor(program bool) bool {
	switch a.in {
	case programBlock:
		return program
	case hyper, "evaluation", "checkpoint":
		return !program
	case "":
		return !program || a.name == "name" || a.name == "deadline" || a.name == "gpu_health"
	}
	return true
}

// pathOf is where people wrote what ended up in a field of the spec.
func pathOf(field string) path.Path {
	for _, a := range arguments() {
		if a.field == field {
			return a.path()
		}
	}
	if name, ok := strings.CutPrefix(field, placed); ok {
		in, name, nested := strings.Cut(name, ".")
		if nested {
			return path.Root(in).AtName(name)
		}
		return path.Root(in)
	}
	switch field {
	case "dataset.path", "dataset.hash":
		return path.Root("dataset")
	case "init_from.hash":
		return path.Root("init_from")
	case "program.code":
		return path.Root(programBlock).AtName("code")
	case "graph":
		return path.Root(graph.Name)
	case "engine":
		return path.Root("worker").AtName("gpus")
	}
	return path.Root("model")
}

func textual(field, in, name string, of func(*spec.Spec) *string) argument {
	return argument{field, in, name,
		func(s *spec.Spec, v attr.Value) error { *of(s) = v.(types.String).ValueString(); return nil },
		func(s *spec.Spec) attr.Value { return types.StringValue(*of(s)) }}
}

func fraction(field, in, name string, of func(*spec.Spec) *float64) argument {
	return argument{field, in, name,
		func(s *spec.Spec, v attr.Value) error { *of(s) = float(v.(types.Number)); return nil },
		func(s *spec.Spec) attr.Value { return decimal(*of(s)) }}
}

func count(field, in, name string, of func(*spec.Spec) *int) argument {
	return argument{field, in, name,
		func(s *spec.Spec, v attr.Value) error {
			// What a field may hold is for spec.Validate to say; here only
			// what an int can.
			n, err := integer(v.(types.Number), math.MinInt32, math.MaxInt64>>1)
			*of(s) = int(n)
			return err
		},
		func(s *spec.Spec) attr.Value { return wholeNumber(int64(*of(s))) }}
}

func truth(field, in, name string, of func(*spec.Spec) *bool) argument {
	return argument{field, in, name,
		func(s *spec.Spec, v attr.Value) error { *of(s) = v.(types.Bool).ValueBool(); return nil },
		func(s *spec.Spec) attr.Value { return types.BoolValue(*of(s)) }}
}

func synchronous() argument {
	return argument{"asynchronous", "", "synchronous",
		func(s *spec.Spec, v attr.Value) error { s.Asynchronous = !v.(types.Bool).ValueBool(); return nil },
		func(s *spec.Spec) attr.Value { return types.BoolValue(!s.Asynchronous) }}
}

// deterministic has no value that is filled in: states of earlier versions have
// none either.
func deterministic() argument {
	return argument{"deterministic", "", "deterministic",
		func(s *spec.Spec, v attr.Value) error { s.Deterministic = v.(types.Bool).ValueBool(); return nil }, nil}
}

func deadline() argument {
	a := lapse("deadline", "deadline", func(s *spec.Spec) *spec.Duration { return &s.Deadline })
	a.in, a.get = "", nil
	return a
}

// gpuHealth is an argument without a value that is filled in.
func gpuHealth() argument {
	return argument{"gpu_health", "", "gpu_health",
		func(s *spec.Spec, v attr.Value) error { s.GPUHealth = v.(types.String).ValueString(); return nil }, nil}
}

// initFrom is the path of a model. No default is filled in.
func initFrom() argument {
	return argument{"init_from.path", "", "init_from",
		func(s *spec.Spec, v attr.Value) (err error) {
			s.InitFrom.Path, err = localPath(v.(types.String).ValueString())
			return err
		}, nil}
}

func initSkip() argument {
	return argument{"init_from.skip", "", "init_skip",
		func(s *spec.Spec, v attr.Value) (err error) {
			s.InitFrom.Skip, err = program.JSONOf(v)
			return err
		}, nil}
}

// lapse is a time of the block of a program.
func lapse(field, name string, of func(*spec.Spec) *spec.Duration) argument {
	return argument{field, programBlock, name,
		func(s *spec.Spec, v attr.Value) error {
			d, err := time.ParseDuration(v.(types.String).ValueString())
			if err != nil || d <= 0 {
				return fmt.Errorf("give a time such as \"90s\" or \"2h30m\"; it is %q", v.(types.String).ValueString())
			}
			*of(s) = spec.Duration(d)
			return nil
		},
		func(s *spec.Spec) attr.Value {
			text, _ := of(s).MarshalText() // never fails
			return types.StringValue(string(text))
		}}
}

// encoded is an argument whose value is JSON in the spec.
func encoded(name string, of func(*spec.Program) *spec.JSON, get func(*spec.Program) attr.Value) argument {
	return argument{programBlock + "." + name, programBlock, name,
		func(s *spec.Spec, v attr.Value) (err error) {
			*of(&s.Program), err = program.JSONOf(v)
			return err
		},
		func(s *spec.Spec) attr.Value { return get(&s.Program) }}
}

func command() argument {
	return encoded("command", func(p *spec.Program) *spec.JSON { return &p.Command },
		func(p *spec.Program) attr.Value { return program.Texts(p.Arguments()) })
}

func environment() argument {
	return encoded("environment", func(p *spec.Program) *spec.JSON { return &p.Environment },
		func(p *spec.Program) attr.Value { return program.TextsByName(p.Environment) })
}

func parameters() argument {
	return encoded("parameters", func(p *spec.Program) *spec.JSON { return &p.Parameters }, program.Parameters)
}

func processes() argument {
	return argument{"program.processes", programBlock, "processes",
		func(s *spec.Spec, v attr.Value) (err error) {
			s.Program.Processes, err = program.ParseProcesses(v.(types.String).ValueString())
			return err
		},
		func(s *spec.Spec) attr.Value { return program.Processes(s.Program.Processes) }}
}

// object gives the nested attribute or block of that name.
func (m *experimentModel) object(in string) *types.Object {
	switch in {
	case hyper:
		return &m.Hyperparameters
	case programBlock:
		return &m.Program
	case "coordinator":
		return &m.Coordinator
	case "parameter_server":
		return &m.ParameterServer
	case "worker":
		return &m.Worker
	case "evaluation":
		return &m.Evaluation
	case "checkpoint":
		return &m.Checkpoint
	}
	panic("train: no such block: " + in) // arguments names no other
}

// value gives what stands at an argument's place.
func (m *experimentModel) value(a *argument) attr.Value {
	if a.in == "" {
		return m.top(a.name)
	}
	o := m.object(a.in)
	switch {
	case o.IsUnknown():
		return types.StringUnknown()
	case o.IsNull():
		return types.StringNull()
	}
	return o.Attributes()[a.name]
}

func (m *experimentModel) top(name string) attr.Value {
	switch name {
	case "synchronous":
		return m.Synchronous
	case "deterministic":
		return m.Deterministic
	case "init_skip":
		return m.InitSkip
	}
	return *m.text(name)
}

// setTop puts a value at an argument of the top level.
func (m *experimentModel) setTop(name string, v attr.Value) {
	switch v := v.(type) {
	case types.Bool:
		m.Synchronous = v
	case types.String:
		*m.text(name) = v
	}
}

// text gives the top level's textual argument of that name.
func (m *experimentModel) text(name string) *types.String {
	switch name {
	case "model":
		return &m.Model
	case "name":
		return &m.Name
	case "strategy":
		return &m.Strategy
	case "batch_per":
		return &m.BatchPer
	case "learning_rate_scaling":
		return &m.Scaling
	case "compute_type":
		return &m.ComputeType
	case "deadline":
		return &m.Deadline
	case "init_from":
		return &m.InitFrom
	case "gpu_health":
		return &m.GPUHealth
	}
	panic("train: no such argument: " + name) // arguments names no other
}
