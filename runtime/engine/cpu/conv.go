package cpu

import (
	"github.com/stokehq/stoke/runtime/model"
)

// stripPositions is how many output positions are unfolded at a time: few
// enough that the unfolded inputs stay in the nearest caches.
const stripPositions = 48

// conv is a two-dimensional convolution (cross-correlation): each strip of
// output rows is unfolded into a matrix of positions × (kernel · kernel ·
// channels) and multiplied with the weights.
type conv struct {
	threads              *threads
	kernel, step         int
	top, left            int
	height, width, depth int // of the input
	rows, columns, maps  int // of the output
	strip                int // output rows per strip
	padded               bool
	x, y, dx, dy         []float32
	weight, bias         parameter
	transposed           []float32 // maps × patch
	unfolded, folded     [][]float32
	apply, learn         job
}

func newConv(w wiring) *conv {
	l := &conv{
		threads: w.threads, kernel: w.spec.Kernel, step: w.spec.Step(),
		height: w.in[0], width: w.in[1], depth: w.in[2],
		rows: w.out[0], columns: w.out[1], maps: w.out[2],
		x: w.x, y: w.y, dx: w.dx, dy: w.dy,
		weight: w.find(model.Weight), bias: w.find(model.Bias),
	}
	l.top, _ = w.spec.WindowPadding(l.height)
	l.left, _ = w.spec.WindowPadding(l.width)
	l.padded = l.top > 0 || l.left > 0 ||
		(l.rows-1)*l.step+l.kernel > l.height || (l.columns-1)*l.step+l.kernel > l.width
	l.strip = min(max(stripPositions/l.columns, 1), l.rows)
	for range w.threads.parts {
		l.unfolded = append(l.unfolded, make([]float32, l.strip*l.columns*l.patch()))
		if l.dx != nil {
			l.folded = append(l.folded, make([]float32, l.strip*l.columns*l.patch()))
		}
	}
	if l.dx != nil {
		l.transposed = make([]float32, l.patch()*l.maps)
	}
	l.apply, l.learn = l.applyPart, l.learnPart
	return l
}

// patch is the number of inputs that one output position sees.
func (l *conv) patch() int { return l.kernel * l.kernel * l.depth }

func (l *conv) prepare() {
	if l.transposed != nil {
		transpose(l.patch(), l.maps, l.weight.value, l.transposed)
	}
}

func (l *conv) forward(p *pass)  { l.threads.run(p.n, l.apply) }
func (l *conv) backward(p *pass) { l.threads.run(p.n, l.learn) }

func (l *conv) applyPart(part, from, to int) {
	in, out := l.height*l.width*l.depth, l.rows*l.columns*l.maps
	for r := from; r < to; r++ {
		x, y := l.x[r*in:(r+1)*in], l.y[r*out:(r+1)*out]
		fillRows(y, l.maps, l.bias.value)
		for row := 0; row < l.rows; row += l.strip {
			end := min(row+l.strip, l.rows)
			positions := (end - row) * l.columns
			l.unfold(x, row, end, l.unfolded[part])
			mulAdd(positions, l.maps, l.patch(), l.unfolded[part], l.weight.value, y[row*l.columns*l.maps:])
		}
	}
}

func (l *conv) learnPart(part, from, to int) {
	in, out := l.height*l.width*l.depth, l.rows*l.columns*l.maps
	for r := from; r < to; r++ {
		x, dy := l.x[r*in:(r+1)*in], l.dy[r*out:(r+1)*out]
		sumRows(dy, l.maps, l.bias.sums, part)
		var dx []float32
		if l.dx != nil {
			dx = l.dx[r*in : (r+1)*in]
			clear(dx)
		}
		for row := 0; row < l.rows; row += l.strip {
			end := min(row+l.strip, l.rows)
			positions := (end - row) * l.columns
			d := dy[row*l.columns*l.maps : end*l.columns*l.maps]
			l.unfold(x, row, end, l.unfolded[part])
			mulAddTA(l.patch(), l.maps, positions, l.unfolded[part], d, l.weight.sums[part])
			if dx == nil {
				continue
			}
			folded := l.folded[part][:positions*l.patch()]
			clear(folded)
			mulAdd(positions, l.patch(), l.maps, d, l.transposed, folded)
			l.fold(folded, row, end, dx)
		}
	}
}

// spans calls f for each run of inputs that lies in one kernel row of one
// position: at places of the unfolded matrix, from and to of the input; what
// is not visited is padding.
func (l *conv) spans(row, end int, f func(at, from, to int)) {
	at, run := 0, l.kernel*l.depth
	for oy := row; oy < end; oy++ {
		for ox := range l.columns {
			iy, ix := oy*l.step-l.top, ox*l.step-l.left
			a, b := max(ix, 0), min(ix+l.kernel, l.width)
			for ky := range l.kernel {
				if y := iy + ky; y >= 0 && y < l.height && a < b {
					f(at+(a-ix)*l.depth, (y*l.width+a)*l.depth, (y*l.width+b)*l.depth)
				}
				at += run
			}
		}
	}
}

// unfold writes the patches of the output rows [row, end).
func (l *conv) unfold(x []float32, row, end int, patches []float32) {
	if l.padded {
		clear(patches)
	}
	l.spans(row, end, func(at, from, to int) {
		copy(patches[at:at+to-from], x[from:to])
	})
}

// fold adds the patches' gradients back to the inputs that they came from.
func (l *conv) fold(patches []float32, row, end int, dx []float32) {
	l.spans(row, end, func(at, from, to int) {
		d := dx[from:to]
		for i, v := range patches[at : at+len(d)] {
			d[i] += v
		}
	})
}
