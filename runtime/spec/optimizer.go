package spec

import "strings"

// The optimizers that a spec names.
const (
	OptimizerSGD     = "sgd"
	OptimizerAdam    = "adam"
	OptimizerAdamW   = "adamw"
	OptimizerAdagrad = "adagrad"
)

// Optimizer turns the mean gradient of an update into a change of parameters.
type Optimizer struct {
	Name        string  `json:"name"`
	Momentum    float64 `json:"momentum"` // of sgd
	Nesterov    bool    `json:"nesterov"`
	WeightDecay float64 `json:"weight_decay"`      // not applied to biases and normalisation
	Beta1       float64 `json:"beta1,omitempty"`   // of adam and adamw; 0 = 0.9
	Beta2       float64 `json:"beta2,omitempty"`   // of adam and adamw; 0 = 0.999
	Epsilon     float64 `json:"epsilon,omitempty"` // of adam, adamw and adagrad; 0 = 1e-8, of adagrad 1e-10
}

// Resolve returns the optimizer with the numbers that zeros stand for.
func (o Optimizer) Resolve() Optimizer {
	fill := func(v *float64, by float64) {
		if *v == 0 {
			*v = by
		}
	}
	switch o.Name {
	case OptimizerAdam, OptimizerAdamW:
		fill(&o.Beta1, 0.9)
		fill(&o.Beta2, 0.999)
		fill(&o.Epsilon, 1e-8)
	case OptimizerAdagrad:
		fill(&o.Epsilon, 1e-10)
	}
	return o
}

// DefaultRate returns the learning rate of a run that says nothing else.
func (o Optimizer) DefaultRate() float64 {
	switch o.Name {
	case OptimizerAdam, OptimizerAdamW:
		return 0.001
	case OptimizerAdagrad:
		return 0.01
	}
	return 0.05
}

// validateOptimizer checks how a gradient becomes a change of parameters.
func (s *Spec) validateOptimizer(c *checks) {
	o := s.Optimizer
	c.oneOf("optimizer.name", o.Name, OptimizerSGD, OptimizerAdam, OptimizerAdamW, OptimizerAdagrad)
	c.number("optimizer.weight_decay", o.WeightDecay, 0, 1, false, true)
	switch o.Name {
	case OptimizerSGD:
		c.number("optimizer.momentum", o.Momentum, 0, 1, false, true)
		if o.Nesterov && o.Momentum == 0 {
			c.add("optimizer.nesterov", "Nesterov needs momentum", "Set optimizer.momentum, for example to 0.9.")
		}
		c.absent("optimizer.epsilon", o.Epsilon != 0, "adam, adamw and adagrad")
	case OptimizerAdam, OptimizerAdamW, OptimizerAdagrad:
		c.absent("optimizer.momentum", o.Momentum != 0, "sgd")
		c.absent("optimizer.nesterov", o.Nesterov, "sgd")
		c.number("optimizer.epsilon", o.Epsilon, 0, 1, false, false)
	}
	switch o.Name {
	case OptimizerSGD, OptimizerAdagrad:
		c.absent("optimizer.beta1", o.Beta1 != 0, "adam and adamw")
		c.absent("optimizer.beta2", o.Beta2 != 0, "adam and adamw")
	case OptimizerAdam, OptimizerAdamW:
		c.number("optimizer.beta1", o.Beta1, 0, 1, false, true)
		c.number("optimizer.beta2", o.Beta2, 0, 1, false, true)
	}
	c.number("clip_norm", s.ClipNorm, 0, 1e6, false, false)
	if s.ClipNorm > 0 && s.Deterministic && s.ParameterServer.Replicas > 1 {
		c.add("clip_norm", "Several servers sum up the norm differently",
			"Set parameter_server.replicas to 1, or leave clip_norm or deterministic out: "+
				"the last bits of the norm follow from the number of servers.")
	}
}

// absent reports a field that is given to an optimizer without it.
func (c *checks) absent(field string, given bool, names string) {
	if given {
		_, name, _ := strings.Cut(field, ".")
		c.add(field, "Another optimizer has this", "Leave %s out, or set another optimizer: it is for %s.", name, names)
	}
}
