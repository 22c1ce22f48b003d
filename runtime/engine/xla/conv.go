package xla

import (
	"github.com/stokehq/stoke/runtime/model"
	"github.com/stokehq/stoke/runtime/stablehlo"
)

// axis is a convolution along one dimension.
type axis struct {
	size, windows  int
	low, high      int // zeros around the input
	kernel, stride int
}

func (l *layer) axis(size int) axis {
	low, windows := l.WindowPadding(size)
	a := axis{size: size, windows: windows, low: low, kernel: l.Kernel, stride: l.Step()}
	a.high = a.spread() + a.kernel - 1 - size - low
	return a
}

// spread is from the first element of the first window to the first one of the last.
func (a axis) spread() int { return (a.windows-1)*a.stride + 1 }

// forward is the window of the outputs. Elements behind the last window need no negative
// padding, for which XLA would copy the input without them: windows are as many without it.
func (a axis) forward() stablehlo.Window {
	return stablehlo.Window{Stride: a.stride, Low: a.low, High: max(a.high, 0), Dilate: 1, Spread: 1}
}

// weight is the window of the gradient of the weights: the gradient of the outputs is the
// kernel, its elements a stride apart.
func (a axis) weight() stablehlo.Window {
	return stablehlo.Window{Stride: 1, Low: a.low, High: a.high, Dilate: 1, Spread: a.stride}
}

// input is the window of the gradient of the inputs: the gradient of the outputs, its
// elements a stride apart, under the reversed kernel.
func (a axis) input() stablehlo.Window {
	low := a.kernel - 1 - a.low
	return stablehlo.Window{Stride: 1, Low: low, High: a.size + a.kernel - 1 - a.spread() - low, Dilate: a.stride, Spread: 1}
}

// convolution is over height and width; its weights are kernel × kernel × channels of a
// group × filters.
func (l *layer) convolution() (value, backward) {
	x, groups := l.in[0], l.GroupCount()
	w := l.variable(model.Weight).Convert(l.compute)
	height, width := l.axis(x.Dims[1]), l.axis(x.Dims[2])
	y := x.Convolve(w, stablehlo.Convolution{
		Height: height.forward(), Width: width.forward(), Input: "b01f", Kernel: "01io", Output: "b01f", Groups: groups,
	})
	if !l.NoBias {
		y = y.Add(l.variable(model.Bias).Convert(l.compute).Like(y, 3))
	}
	return l.narrow(y), func(dy value) []value {
		if !l.NoBias {
			l.learn(model.Bias, dy.Convert(stablehlo.F32).Sum(0, 1, 2))
		}
		d := dy.Convert(l.compute)
		l.learn(model.Weight, x.Convolve(d, stablehlo.Convolution{
			Height: height.weight(), Width: width.weight(), Input: "f01b", Kernel: "i01o", Output: "01bf", RecordGroups: groups,
		}))
		if !l.needs[0] {
			return one(nil)
		}
		turned, names := w, "01oi"
		if groups > 1 { // the filters of a group are the channels of the gradient's convolution
			k, in, out := l.Kernel, w.Dims[2], w.Dims[3]
			turned = w.Reshape(k, k, in, groups, out/groups).Transpose(0, 1, 4, 3, 2).Reshape(k, k, out/groups, groups*in)
			names = "01io"
		}
		return one(d.Convolve(turned.Reverse(0, 1), stablehlo.Convolution{
			Height: height.input(), Width: width.input(), Input: "b01f", Kernel: names, Output: "b01f", Groups: groups,
		}))
	}
}
