package model

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Metrics of Model.Metrics. An engine sums each over records; MetricValue makes the
// metric of the sum, so that sums of any split merge by addition.
const (
	// Accuracy is the share of correct answers (of equal best logits, the lowest
	// class answers).
	Accuracy = "accuracy"
	// Top5Accuracy is the share of answers among the best five logits, or among all
	// where there are fewer classes; of equal logits the lower class is the better.
	Top5Accuracy = "top5_accuracy"
	// Perplexity is e to the mean cross-entropy, without label smoothing. Engines sum
	// the cross-entropy for it.
	Perplexity = "perplexity"
	// MeanAbsoluteError is the mean of the errors' absolute values, of MeanSquaredError's
	// models, in the target's unit.
	MeanAbsoluteError = "mean_absolute_error"
)

// Data is what a model is made for.
type Data struct {
	Input   Features // of a record
	Classes int      // 0 where the target is numbers
	Target  Features // as in Model: zero is one class per record
}

// IsNumbers reports whether the target of the records is numbers.
func (d Data) IsNumbers() bool { return d.Target.Type == F32 && len(d.Target.Shape) > 0 }

// Losses returns the losses, sorted.
func Losses() []string { return []string{MeanSquaredError, SoftmaxCrossEntropy} }

// Metrics returns the metrics that the loss has, sorted; none for an unknown loss.
func Metrics(loss string) []string {
	switch loss {
	case SoftmaxCrossEntropy:
		return []string{Accuracy, Perplexity, Top5Accuracy}
	case MeanSquaredError:
		return []string{MeanAbsoluteError}
	}
	return nil
}

// MetricValue returns the metric of a weighted sum over records and the sum of their
// weights, which is above 0. A perplexity may be infinite.
func MetricValue(name string, sum, weight float64) float64 {
	if name == Perplexity {
		return math.Exp(sum / weight)
	}
	return sum / weight
}

// Answer returns the type and the number of the elements that a record's target has:
// one i32 where the model's Target is zero.
func (m *Model) Answer() (DType, int) {
	if len(m.Target.Shape) == 0 {
		return I32, 1
	}
	return m.Target.Type, m.Target.Shape[0]
}

// isSequence reports whether a record's target is a class for each position.
func (m *Model) isSequence() bool { return len(m.Target.Shape) > 0 && m.Loss == SoftmaxCrossEntropy }

// validateTarget checks the classes and the target, which the loss decides about.
func (m *Model) validateTarget() error {
	if m.Loss == MeanSquaredError {
		if m.Classes != 0 || m.Target.Type != F32 || len(m.Target.Shape) != 1 {
			return fmt.Errorf("loss %s is for numbers: want 0 classes and a target of f32 with one dimension, "+
				"got %d classes and a target of %s with shape %v", m.Loss, m.Classes, m.Target.Type, m.Target.Shape)
		}
	} else if m.Classes < 2 || m.Classes > MaxDimension {
		return fmt.Errorf("%d classes: want 2 to %d", m.Classes, MaxDimension)
	}
	t := m.Target
	switch zero := t.Type == 0 && t.Shape == nil; {
	case t.Scale != 0:
		return errors.New("its target has a scale, which only the input may have")
	case zero || m.Loss == MeanSquaredError:
	case t.Type != U8 && t.Type != I32:
		return fmt.Errorf("its target is of %s: classes are u8 or i32", t.Type)
	case len(t.Shape) != 1:
		return fmt.Errorf("its target has the shape %v: want one dimension, the positions, or no target for one class per record", t.Shape)
	}
	if _, err := elements(t.Shape...); err != nil {
		return fmt.Errorf("target shape %v: %w", t.Shape, err)
	}
	return nil
}

// checkOutput compares what the last layer gives with the target.
func (m *Model) checkOutput(last []int) error {
	want, have := []int{m.Classes}, fmt.Sprintf("there are %d classes", m.Classes)
	switch {
	case m.Loss == MeanSquaredError:
		want, have = m.Target.Shape, fmt.Sprintf("the target has %d numbers", m.Target.Shape[0])
	case m.isSequence():
		want = []int{m.Target.Shape[0], m.Classes}
		have = fmt.Sprintf("the target has %d positions of %d classes: want %v", want[0], want[1], want)
	}
	if !slices.Equal(last, want) {
		return m.addName(fmt.Errorf("the last layer gives %v values per record, but %s", last, have))
	}
	return nil
}
