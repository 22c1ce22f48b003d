package cpu

import (
	"gonum.org/v1/gonum/blas"

	"github.com/stokehq/stoke/runtime/model"
)

// stripPositions is how many output positions are unfolded at a time: few
// enough that the unfolded inputs stay in the nearest caches.
const stripPositions = 48

// conv is a two-dimensional convolution (cross-correlation): each strip of
// output rows is unfolded into a matrix of positions × (kernel · kernel ·
// channels) and multiplied with the weights, each group's channels with the
// weights of its filters.
type conv struct {
	threads              *threads
	kernel, step         int
	top, left            int
	height, width, depth int // of the input
	rows, columns, maps  int // of the output
	groups               int
	strip                int // output rows per strip
	padded               bool
	x, y, dx, dy         []float32
	weight, bias         *parameter
	transposed           []float32 // maps × patch
	unfolded, folded     [][]float32
	scratch              [][]float32 // narrow: per part, the transposed weights' gradient
	apply, learn         job
}

func newConv(w wiring) *conv {
	l := &conv{
		threads: w.threads, kernel: w.spec.Kernel, step: w.spec.Step(),
		height: w.in[0], width: w.in[1], depth: w.in[2],
		rows: w.out[0], columns: w.out[1], maps: w.out[2], groups: w.spec.GroupCount(),
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
	if l.dx != nil || l.narrow() {
		l.transposed = make([]float32, l.patch()*l.maps)
	}
	if l.narrow() {
		for range w.threads.parts {
			l.scratch = append(l.scratch, make([]float32, l.patch()*l.maps))
		}
	}
	l.apply, l.learn = l.applyPart, l.learnPart
	if l.isDepthwise() {
		l.apply, l.learn = l.applyDepthwisePart, l.learnDepthwisePart
	}
	return l
}

// patch is the number of inputs that one output position of a group sees.
func (l *conv) patch() int { return l.kernel * l.kernel * l.depth / l.groups }

// narrow reports whether products are made along the rows of the patches, because the rows
// of the maps are short: see dense.
func (l *conv) narrow() bool { return l.groups == 1 && l.maps <= narrow && l.maps < l.patch() }

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
			for group := range l.groups {
				l.unfold(x, row, end, group, l.unfolded[part])
				if l.narrow() {
					mulAddTB(positions, l.maps, l.patch(), l.unfolded[part], l.transposed, y[row*l.columns*l.maps:])
					continue
				}
				multiply(blas.NoTrans, blas.NoTrans, positions, l.maps/l.groups, l.patch(),
					matrix{l.unfolded[part], l.patch()}, l.filters(l.weight.value, group), l.filters(y[row*l.columns*l.maps:], group))
			}
		}
	}
}

func (l *conv) learnPart(part, from, to int) {
	in, out := l.height*l.width*l.depth, l.rows*l.columns*l.maps
	if l.narrow() {
		clear(l.scratch[part])
		defer func() { addTransposed(l.scratch[part], l.maps, l.weight.sums[part]) }()
	}
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
			for group := range l.groups {
				rows := dy[row*l.columns*l.maps : end*l.columns*l.maps]
				d := l.filters(rows, group)
				l.unfold(x, row, end, group, l.unfolded[part])
				if l.narrow() {
					mulAddTA(l.maps, l.patch(), positions, rows, l.unfolded[part], l.scratch[part])
				} else {
					multiply(blas.Trans, blas.NoTrans, l.patch(), l.maps/l.groups, positions,
						matrix{l.unfolded[part], l.patch()}, d, l.filters(l.weight.sums[part], group))
				}
				if dx == nil {
					continue
				}
				folded := l.folded[part][:positions*l.patch()]
				clear(folded)
				multiply(blas.NoTrans, blas.NoTrans, positions, l.patch(), l.maps/l.groups,
					d, matrix{l.transposed[group*l.maps/l.groups*l.patch():], l.patch()}, matrix{folded, l.patch()})
				l.fold(folded, row, end, group, dx)
			}
		}
	}
}

// filters are a group's columns of a matrix whose columns are the filters.
func (l *conv) filters(of []float32, group int) matrix {
	return matrix{of[group*l.maps/l.groups:], l.maps}
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

// groupSpans calls f for the inputs that a group has at each place of a kernel; of one
// group, for each kernel row.
func (l *conv) groupSpans(row, end, group int, f func(at, from, to int)) {
	if l.groups == 1 {
		l.spans(row, end, f)
		return
	}
	width := l.depth / l.groups
	l.spans(row, end, func(at, from, to int) {
		for at /= l.groups; from < to; from += l.depth {
			f(at, from+group*width, from+(group+1)*width)
			at += width
		}
	})
}

// unfold writes a group's patches of the output rows [row, end).
func (l *conv) unfold(x []float32, row, end, group int, patches []float32) {
	if l.padded {
		clear(patches)
	}
	l.groupSpans(row, end, group, func(at, from, to int) {
		copy(patches[at:at+to-from], x[from:to])
	})
}

// fold adds the gradients of a group's patches to the gradients of their inputs.
func (l *conv) fold(patches []float32, row, end, group int, dx []float32) {
	l.groupSpans(row, end, group, func(at, from, to int) {
		d := dx[from:to]
		for i, v := range patches[at : at+len(d)] {
			d[i] += v
		}
	})
}
