package spec

import "math"

// The schedules of a learning rate.
const (
	ScheduleConstant = "constant"
	ScheduleStep     = "step"   // × decay_factor at each of decay_epochs, or every decay_every epochs
	ScheduleCosine   = "cosine" // half a cosine, from the learning rate to its minimum at the run's end
	ScheduleLinear   = "linear" // a line between the same
)

// Schedule is the learning rate as a function of the committed records. An epoch
// has as many records as the training set. The zero value is a constant rate.
type Schedule struct {
	Name         string  `json:"name,omitempty"`                  // "" = constant
	WarmupEpochs float64 `json:"warmup_epochs,omitempty"`         // the rate grows from 0 meanwhile
	DecayEpochs  JSON    `json:"decay_epochs,omitempty"`          // of step: numbers, ascending
	DecayEvery   float64 `json:"decay_every,omitempty"`           // of step, instead of decay_epochs: epochs
	DecayFactor  float64 `json:"decay_factor,omitempty"`          // of step; 0 = 0.1
	MinimumRate  float64 `json:"minimum_learning_rate,omitempty"` // of cosine and linear
}

// Resolve returns the schedule with the values that zeros stand for, in the form that
// equal schedules share.
func (d Schedule) Resolve() Schedule {
	if d.Name == ScheduleConstant {
		d.Name = ""
	}
	if d.Name == ScheduleStep && d.DecayFactor == 0 {
		d.DecayFactor = 0.1
	}
	return d
}

// Epochs returns the epochs at which a rate is decayed; ok is false where they
// are not numbers above 0 in ascending order.
func (d Schedule) Epochs() (list []float64, ok bool) {
	if d.DecayEpochs.decode(&list) != nil {
		return nil, false
	}
	last := 0.0
	for _, e := range list {
		if !(e > last) || e > maxNumber {
			return nil, false
		}
		last = e
	}
	return list, true
}

// leastRate is above 0 in 32 bits, as servers want a learning rate.
const leastRate = 1e-30

// RateAt returns the learning rate of an update of batch records, computed for
// so many workers, after so many committed records. An epoch has so many records.
// A warm-up counts the update's own records too, so that the
// first one has a rate.
func (s *Spec) RateAt(workers int, committed, batch, epoch int64) float64 {
	rate, d := s.Rate(workers), s.Schedule.Resolve()
	records, before := float64(max(1, epoch)), float64(committed)
	warm := d.WarmupEpochs * records
	next := rate
	switch after := before + float64(batch); {
	case after < warm:
		next = rate * after / warm
	case d.Name == ScheduleStep:
		next = rate * math.Pow(d.DecayFactor, float64(d.decays(before/records)))
	case d.Name == ScheduleCosine || d.Name == ScheduleLinear:
		left := 1 - share(before-warm, s.horizon(epoch)-warm)
		if d.Name == ScheduleCosine {
			left = (1 - math.Cos(math.Pi*left)) / 2
		}
		next = d.MinimumRate + (rate-d.MinimumRate)*left
	default:
		return rate
	}
	return max(next, min(rate, leastRate))
}

// decays returns how often the rate was decayed after so many epochs.
func (d Schedule) decays(epochs float64) int {
	if d.DecayEvery > 0 {
		return int(epochs / d.DecayEvery)
	}
	n := 0
	list, _ := d.Epochs()
	for _, e := range list {
		if epochs >= e {
			n++
		}
	}
	return n
}

// share returns part of whole, between 0 and 1.
func share(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return min(max(part/whole, 0), 1)
}

// horizon returns how many records the run commits, as far as can be said
// beforehand: an epoch's last update has the records that are left of it.
func (s *Spec) horizon(records int64) float64 {
	epochs := int64(s.Epochs)
	if s.MaxSteps > 0 {
		batch := int64(max(1, s.GlobalBatch(s.Worker.Replicas)))
		steps := max(1, (records+batch-1)/batch) // of an epoch
		whole, more := int64(s.MaxSteps)/steps, int64(s.MaxSteps)%steps
		if whole < epochs {
			return float64(whole)*float64(records) + float64(min(Product(more, batch), records))
		}
	}
	return float64(epochs) * float64(records)
}

// validateSchedule checks the schedule of the learning rate.
func (s *Spec) validateSchedule(c *checks) {
	d := s.Schedule
	name := d.Name
	if name == "" {
		name = ScheduleConstant
	}
	known := []string{ScheduleConstant, ScheduleStep, ScheduleCosine, ScheduleLinear}
	before := len(c.problems)
	c.oneOf("schedule.name", name, known...)
	if len(c.problems) > before {
		return
	}
	c.number("schedule.warmup_epochs", d.WarmupEpochs, 0, float64(max(1, s.Epochs)), false, false)
	if name == ScheduleStep {
		d.validateStep(c)
	} else {
		for _, of := range []struct {
			field string
			given bool
		}{
			{"schedule.decay_epochs", d.DecayEpochs != ""},
			{"schedule.decay_every", d.DecayEvery != 0},
			{"schedule.decay_factor", d.DecayFactor != 0},
		} {
			if of.given {
				c.add(of.field, "Only the schedule step decays", "Set schedule to step, or leave it out: the schedule is %s.", name)
			}
		}
	}
	switch {
	case name == ScheduleCosine || name == ScheduleLinear:
		if s.LearningRate > 0 { // else that is the error
			c.number("schedule.minimum_learning_rate", d.MinimumRate, 0, s.LearningRate, false, false)
		}
	case d.MinimumRate != 0:
		c.add("schedule.minimum_learning_rate", "The schedule has no minimum",
			"Set schedule to cosine or linear, or leave it out: the schedule is %s.", name)
	}
}

// validateStep checks a schedule of steps.
func (d Schedule) validateStep(c *checks) {
	list, ok := d.Epochs()
	switch {
	case !ok || d.DecayEpochs != "" && len(list) == 0:
		c.add("schedule.decay_epochs", "Not epochs in ascending order",
			"Give numbers above 0, each above the one before it, for example [82, 109].")
	case d.DecayEpochs != "" && d.DecayEvery != 0:
		c.add("schedule.decay_every", "Two ways to decay", "Leave decay_epochs or decay_every out.")
	case d.DecayEpochs == "" && d.DecayEvery == 0:
		c.add("schedule.name", "Nothing says when to decay",
			"Set decay_epochs, for example to [82, 109], or decay_every, for example to 30.")
	}
	c.number("schedule.decay_every", d.DecayEvery, 0, maxNumber, false, false)
	c.number("schedule.decay_factor", d.DecayFactor, 0, 1, false, false)
}
