package xla

import (
	"github.com/stokehq/stoke/runtime/stablehlo"
)

// windows are the windows of a pooling layer, without padding.
type windows struct {
	records, height, width, channels int
	rows, columns                    int // of windows
	kernel, step                     int
}

func (l *layer) windows() windows {
	d := l.in[0].Dims
	_, rows := l.WindowPadding(d[1])
	_, columns := l.WindowPadding(d[2])
	return windows{records: d[0], height: d[1], width: d[2], channels: d[3], rows: rows, columns: columns, kernel: l.Kernel, step: l.Step()}
}

// disjoint reports whether no two windows share an element.
func (w windows) disjoint() bool { return w.kernel == w.step }

// tiles returns a shape with two dimensions of each window, 2 and 4.
func (w windows) tiles() []int {
	return []int{w.records, w.rows, w.kernel, w.columns, w.kernel, w.channels}
}

// overTiles are the dimensions of tiles that windows have.
var overTiles = []int{0, 1, 3, 5}

// split cuts windows that lie apart. Elements behind the last window are left out.
func (w windows) split(x value) value {
	return x.SliceDim(1, 0, w.rows*w.kernel).SliceDim(2, 0, w.columns*w.kernel).Reshape(w.tiles()...)
}

// join undoes split; zeros come where it left elements out.
func (w windows) join(tiles value) value {
	x := tiles.Reshape(w.records, w.rows*w.kernel, w.columns*w.kernel, w.channels)
	below, right := w.height-w.rows*w.kernel, w.width-w.columns*w.kernel
	if below == 0 && right == 0 {
		return x
	}
	none := []int{0, 0, 0, 0}
	return x.Pad(none, []int{0, below, right, 0}, none)
}

// element returns the elements at (y, x) of all windows.
func (w windows) element(from value, y, x int) value {
	return from.Slice([]int{0, y, x, 0},
		[]int{w.records, y + (w.rows-1)*w.step + 1, x + (w.columns-1)*w.step + 1, w.channels}, []int{1, w.step, w.step, 1})
}

// spread undoes element; zeros come everywhere else.
func (w windows) spread(elements value, y, x int) value {
	return elements.Pad([]int{0, y, x, 0},
		[]int{0, w.height - y - (w.rows-1)*w.step - 1, w.width - x - (w.columns-1)*w.step - 1, 0}, []int{0, w.step - 1, w.step - 1, 0})
}

// visitPlaces calls f for each place in a window, row by row.
func (w windows) visitPlaces(f func(y, x int)) {
	for y := range w.kernel {
		for x := range w.kernel {
			f(y, x)
		}
	}
}

// maxPool takes the maximum of each window; the first of equal elements gets the gradient.
// The number of its place is kept: a comparison of maxima with elements in backward could
// find none, or several, where XLA keeps more bits of one of them than bf16 has, or
// computes one of them twice by different instructions.
func (l *layer) maxPool() (value, backward) {
	x, w := l.in[0], l.windows()
	var y, place value
	w.visitPlaces(func(row, column int) {
		e := w.element(x, row, column)
		number := l.Fill(stablehlo.I32, float64(row*w.kernel+column), e.Dims...)
		if y == nil {
			y, place = e, number
		} else {
			place, y = e.Compare(stablehlo.Greater, y).Select(number, place), y.Maximum(e)
		}
	})
	return l.narrow(y), func(dy value) []value {
		d := dy.Convert(l.compute)
		if w.disjoint() {
			return one(w.join(l.pick(w, place, d)))
		}
		none := d.Fill(0)
		var dx value
		w.visitPlaces(func(row, column int) {
			number := l.Fill(stablehlo.I32, float64(row*w.kernel+column), place.Dims...)
			part := place.Compare(stablehlo.Equal, number).Select(d, none)
			if part = w.spread(part, row, column); dx != nil {
				part = dx.Add(part)
			}
			dx = part
		})
		return one(dx)
	}
}

// pick returns tiles that have the element of d at one place of each window, and zeros
// elsewhere.
func (l *layer) pick(w windows, place, d value) value {
	rows, columns := l.Iota(stablehlo.I32, 2, w.tiles()...), l.Iota(stablehlo.I32, 4, w.tiles()...)
	number := rows.Scale(float64(w.kernel)).Add(columns)
	wide := d.Broadcast(w.tiles(), overTiles)
	return place.Broadcast(w.tiles(), overTiles).Compare(stablehlo.Equal, number).Select(wide, wide.Fill(0))
}

// averagePool takes the mean of each window.
func (l *layer) averagePool() (value, backward) {
	x, w := l.in[0].Convert(stablehlo.F32), l.windows()
	share := 1 / float64(w.kernel*w.kernel)
	if w.disjoint() {
		return l.narrow(w.split(x).Sum(2, 4).Scale(share)), func(dy value) []value {
			d := dy.Convert(l.compute).Scale(share)
			return one(w.join(d.Broadcast(w.tiles(), overTiles)))
		}
	}
	var y value
	w.visitPlaces(func(row, column int) {
		if e := w.element(x, row, column); y == nil {
			y = e
		} else {
			y = y.Add(e)
		}
	})
	return l.narrow(y.Scale(share)), func(dy value) []value {
		d := dy.Convert(stablehlo.F32).Scale(share)
		var dx value
		w.visitPlaces(func(row, column int) {
			part := w.spread(d, row, column)
			if dx != nil {
				part = dx.Add(part)
			}
			dx = part
		})
		return one(dx.Convert(l.compute))
	}
}

// globalAverage takes the mean of each channel.
func (l *layer) globalAverage() (value, backward) {
	x := l.in[0]
	share := 1 / float64(x.Dims[1]*x.Dims[2])
	return l.narrow(x.Convert(stablehlo.F32).Sum(1, 2).Scale(share)), func(dy value) []value {
		return one(dy.Convert(stablehlo.F32).Scale(share).Convert(l.compute).Broadcast(x.Dims, []int{0, 3}))
	}
}
