package xla

import (
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/stablehlo"
)

// loss compares outputs, f32, with the targets. It returns the weighted sums of loss and
// metrics as a vector, and the gradient of the outputs.
func (n *network) loss(outputs value) (stats, gradient value) {
	if n.model.Loss == model.MeanSquaredError {
		return n.squaredError(outputs)
	}
	return n.crossEntropy(outputs)
}

// sum returns the sum of a number of each row as a vector of one element.
func sum(rows value) value { return rows.Sum(0).Reshape(1) }

// crossEntropy is the softmax cross-entropy of each position.
func (n *network) crossEntropy(outputs value) (stats, gradient value) {
	classes := n.model.Classes
	rows := outputs.Size() / classes
	z := outputs.Reshape(rows, classes)
	wide := func(v value) value { return v.Like(z, 0) }
	positions := rows / n.batch
	weights := n.weights.Scale(1/float64(positions)).Broadcast([]int{n.batch, positions}, []int{0}).Reshape(rows)
	labels := n.labels.Convert(stablehlo.I32).Reshape(rows)
	classOf := n.Iota(stablehlo.I32, 1, rows, classes)
	isLabel := classOf.Compare(stablehlo.Equal, wide(labels))
	top := z.Largest(1)
	shifted := z.Subtract(wide(top))
	e := shifted.Exp()
	total := e.Sum(1)
	hot := isLabel.Convert(stablehlo.F32)
	label := isLabel.Select(shifted, shifted.Fill(0)).Sum(1)
	plain := weights.Multiply(total.Log().Subtract(label))
	losses, smoothing := plain, 0.0
	if n.training {
		smoothing = float64(n.model.LabelSmoothing)
	}
	if smoothing > 0 {
		average := shifted.Sum(1).Scale(1 / float64(classes))
		losses = losses.Add(weights.Multiply(label.Subtract(average)).Scale(smoothing))
	}
	all := []value{sum(losses)}
	for _, name := range n.model.Metrics {
		switch name {
		case model.Perplexity:
			all = append(all, sum(plain))
		case model.Accuracy:
			best := z.Compare(stablehlo.Equal, wide(top)).Select(classOf, classOf.Fill(float64(classes))).Least(classes, 1)
			all = append(all, sum(best.Compare(stablehlo.Equal, labels).Select(weights, weights.Fill(0))))
		case model.Top5Accuracy:
			all = append(all, sum(n.amongBest(shifted, wide(label), wide(labels)).Select(weights, weights.Fill(0))))
		}
	}
	d := e.Divide(wide(total)).Subtract(hot.Scale(1 - smoothing))
	if smoothing > 0 {
		d = d.Plus(-smoothing / float64(classes))
	}
	return stablehlo.Concatenate(0, all...), d.Multiply(wide(weights)).Reshape(outputs.Dims...)
}

// amongBest reports the rows whose label has fewer than five better classes: those with a
// larger logit, and earlier ones with the same.
func (n *network) amongBest(z, label, labels value) value {
	class := n.Iota(stablehlo.I32, 1, z.Dims...)
	earlier := class.Compare(stablehlo.Less, labels)
	equal := earlier.Bits(stablehlo.And, z.Compare(stablehlo.Equal, label))
	better := z.Compare(stablehlo.Greater, label).Bits(stablehlo.Or, equal)
	count := better.Convert(stablehlo.I32).Sum(1)
	return count.Compare(stablehlo.Less, count.Fill(5))
}

// squaredError is the mean of the squared errors of each record.
func (n *network) squaredError(outputs value) (stats, gradient value) {
	width := outputs.Size() / n.batch
	off := outputs.Reshape(n.batch, width).Subtract(n.labels.Reshape(n.batch, width))
	weights := n.weights.Scale(1 / float64(width))
	all := []value{sum(weights.Multiply(off.Multiply(off).Sum(1)))}
	for range n.model.Metrics { // MeanAbsoluteError: the loss has no other
		all = append(all, sum(weights.Multiply(off.Abs().Sum(1))))
	}
	return stablehlo.Concatenate(0, all...), off.Scale(2).Multiply(weights.Like(off, 0)).Reshape(outputs.Dims...)
}
