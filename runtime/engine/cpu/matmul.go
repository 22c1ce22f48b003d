package cpu

// matMul is the product of its inputs, A m×k and B k×n, or n×k where it is transposed.
type matMul struct {
	noParameters
	threads        *threads
	m, n, k        int
	turned         bool
	a, b, y        []float32
	da, db, dy     []float32 // da and db are nil where no variable needs them
	multiply, back job
}

func newMatMul(w wiring) *matMul {
	l := &matMul{
		threads: w.threads, m: w.out[0], n: w.out[1], k: w.in[1], turned: w.spec.Transpose,
		a: w.xs[0], b: w.xs[1], y: w.y, da: w.dxs[0], db: w.dxs[1], dy: w.dy,
	}
	l.multiply, l.back = l.multiplyPart, l.backPart
	return l
}

func (l *matMul) forward(p *pass)  { l.threads.run(p.n, l.multiply) }
func (l *matMul) backward(p *pass) { l.threads.run(p.n, l.back) }

// part is a record's part of a buffer of so many elements per record; of no buffer it
// is empty.
func part(of []float32, record, size int) []float32 {
	if of == nil {
		return nil
	}
	return of[record*size : (record+1)*size]
}

func (l *matMul) multiplyPart(_, from, to int) {
	for r := from; r < to; r++ {
		a, b, y := part(l.a, r, l.m*l.k), part(l.b, r, l.k*l.n), part(l.y, r, l.m*l.n)
		clear(y)
		if l.turned {
			mulAddTB(l.m, l.n, l.k, a, b, y)
		} else {
			mulAdd(l.m, l.n, l.k, a, b, y)
		}
	}
}

func (l *matMul) backPart(_, from, to int) {
	for r := from; r < to; r++ {
		a, b, dy := part(l.a, r, l.m*l.k), part(l.b, r, l.k*l.n), part(l.dy, r, l.m*l.n)
		if da := part(l.da, r, l.m*l.k); da != nil {
			clear(da)
			if l.turned {
				mulAdd(l.m, l.k, l.n, dy, b, da)
			} else {
				mulAddTB(l.m, l.k, l.n, dy, b, da)
			}
		}
		if db := part(l.db, r, l.k*l.n); db != nil {
			clear(db)
			if l.turned {
				mulAddTA(l.n, l.k, l.m, dy, a, db)
			} else {
				mulAddTA(l.k, l.n, l.m, a, dy, db)
			}
		}
	}
}
