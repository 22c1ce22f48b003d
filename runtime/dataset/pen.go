package dataset

import (
	"math"
	"math/rand/v2"
)

// How far an image strays from its glyph. They are tuned so that a linear
// classifier stays well below nine in ten and a small network does not: see
// TestDigitsAreNoGiveaway.
const (
	pointJitter    = 0.035 // of each point, of the box's size
	maxTurn        = 0.30  // tangent of half the turning angle is a third of it
	maxShear       = 0.30
	minSize        = 0.58 // of the image, per axis
	maxSize        = 0.92
	maxWobble      = 0.045 // of the elastic displacement
	minRadius      = 0.85  // of the stroke, in pixels
	maxRadius      = 1.7
	distractorRate = 0.35
	maxNoise       = 80  // grey levels
	speckle        = 210 // of 255 draws of noise, those above leave a trace
	subdivisions   = 5   // of a smooth stroke, per point
)

// pen draws one digit at a time. Products that are added to something go
// through times, so that no architecture fuses the two and every one draws
// the same pixels.
type pen struct {
	glyphs [10][]glyph
	random *rand.PCG
	ink    [digitSide * digitSide]float64
	points []point
	curve  []point
}

func newPen() *pen { return &pen{glyphs: glyphs()} }

// times is a product that is rounded before it is used.
func times(a, b float64) float64 { return float64(a * b) }

// uniform draws from [from, to).
func (p *pen) uniform(from, to float64) float64 {
	return from + times(float64(p.random.Uint64()>>11)*0x1p-53, to-from)
}

// bell draws from about a normal distribution of the given deviation.
func (p *pen) bell(deviation float64) float64 {
	u := p.random.Uint64()
	sum := float64(u&0xffff) + float64(u>>16&0xffff) + float64(u>>32&0xffff) + float64(u>>48)
	return times((sum-2*0xffff)*(1/37837.2), deviation)
}

// warp is one image's distortion: elastic, then affine, into pixels.
type warp struct {
	a, b, c, d, x, y       float64
	waveX, waveY           float64
	phaseX, phaseY         float64
	frequencyX, frequencyY float64
}

func (p *pen) warp() warp {
	// A rational turn needs no trigonometry, which differs between machines.
	t := p.uniform(-maxTurn, maxTurn) / 2
	norm := 1 + times(t, t)
	cos, sin := (1-times(t, t))/norm, 2*t/norm
	shear := p.uniform(-maxShear, maxShear)
	sx := times(p.uniform(minSize, maxSize), digitSide)
	sy := times(p.uniform(minSize, maxSize), digitSide)
	w := warp{
		a: times(cos, sx), b: times(times(cos, shear)-sin, sy),
		c: times(sin, sx), d: times(times(sin, shear)+cos, sy),
		waveX: p.uniform(0, maxWobble), waveY: p.uniform(0, maxWobble),
		phaseX: p.uniform(0, 2), phaseY: p.uniform(0, 2),
		frequencyX: p.uniform(1, 3), frequencyY: p.uniform(1, 3),
	}
	// The smaller the digit, the more room there is to move it.
	w.x = digitSide/2 + times(p.uniform(-1, 1), (digitSide-sx)/3)
	w.y = digitSide/2 + times(p.uniform(-1, 1), (digitSide-sy)/3)
	return w
}

func (w *warp) apply(q point) point {
	x := q.x - 0.5 + times(w.waveX, wave(times(q.y, w.frequencyX)+w.phaseX))
	y := q.y - 0.5 + times(w.waveY, wave(times(q.x, w.frequencyY)+w.phaseY))
	return point{w.x + times(w.a, x) + times(w.b, y), w.y + times(w.c, x) + times(w.d, y)}
}

// wave is a sine of period 2 made of parabolas.
func wave(t float64) float64 {
	t -= 2 * math.Floor(t/2)
	if t < 1 {
		return 4 * times(t, 1-t)
	}
	return -4 * times(t-1, 2-t)
}

// digit draws label's digit into 28 × 28 pixels.
func (p *pen) digit(label int, pixels []byte) {
	clear(p.ink[:])
	forms := p.glyphs[label]
	form := forms[p.random.Uint64()>>32%uint64(len(forms))]
	w := p.warp()
	radius := p.uniform(minRadius, maxRadius)
	for _, s := range form {
		p.points = p.points[:0]
		for _, q := range s.points {
			p.points = append(p.points, point{q.x + p.bell(pointJitter), q.y + p.bell(pointJitter)})
		}
		line := p.points
		if s.smooth {
			line = p.spline()
		}
		last := w.apply(line[0])
		for _, q := range line[1:] {
			next := w.apply(q)
			p.segment(last, next, radius, 1)
			last = next
		}
	}
	if p.uniform(0, 1) < distractorRate {
		p.distract()
	}
	p.expose(pixels)
}

// spline goes through the points smoothly (Catmull-Rom).
func (p *pen) spline() []point {
	q := p.points
	p.curve = append(p.curve[:0], q[0])
	for i := range len(q) - 1 {
		before, after := q[max(i-1, 0)], q[min(i+2, len(q)-1)]
		for k := 1; k <= subdivisions; k++ {
			t := float64(k) / subdivisions
			p.curve = append(p.curve, point{
				interpolate(before.x, q[i].x, q[i+1].x, after.x, t),
				interpolate(before.y, q[i].y, q[i+1].y, after.y, t),
			})
		}
	}
	return p.curve
}

func interpolate(a, b, c, d, t float64) float64 {
	linear := times(c-a, t)
	t2 := times(t, t)
	square := times(2*a-times(5, b)+4*c-d, t2)
	cube := times(times(3, b-c)+d-a, times(t2, t))
	return b + (linear+square+cube)/2
}

// distract draws a short faint line somewhere, as of a neighbour or a smear.
func (p *pen) distract() {
	from := point{p.uniform(0, digitSide), p.uniform(0, digitSide)}
	to := point{from.x + p.uniform(-9, 9), from.y + p.uniform(-9, 9)}
	p.segment(from, to, p.uniform(0.5, 1), p.uniform(0.4, 0.9))
}

// segment inks the pixels near a line; their edge is one pixel soft.
func (p *pen) segment(a, b point, radius, strength float64) {
	reach := radius + 0.5
	left, right := span(a.x, b.x, reach)
	top, bottom := span(a.y, b.y, reach)
	dx, dy := b.x-a.x, b.y-a.y
	length := times(dx, dx) + times(dy, dy)
	for y := top; y < bottom; y++ {
		for x := left; x < right; x++ {
			px, py := float64(x)+0.5-a.x, float64(y)+0.5-a.y
			t := 0.0
			if length > 0 {
				t = min(max((times(px, dx)+times(py, dy))/length, 0), 1)
			}
			ex, ey := px-times(t, dx), py-times(t, dy)
			d2 := times(ex, ex) + times(ey, ey)
			if d2 >= times(reach, reach) {
				continue
			}
			ink := times(min(reach-math.Sqrt(d2), 1), strength)
			if at := y*digitSide + x; ink > p.ink[at] {
				p.ink[at] = ink
			}
		}
	}
}

// span is the range of pixels that may be within reach of [a, b].
func span(a, b, reach float64) (from, to int) {
	if a > b {
		a, b = b, a
	}
	return max(int(a-reach), 0), min(int(max(b+reach, 0))+1, digitSide)
}

// expose turns ink into grey, with a contrast and noise of the image's own.
func (p *pen) expose(pixels []byte) {
	contrast, noise := p.uniform(150, 255), p.uniform(0, maxNoise)
	var bits uint64
	for i, ink := range p.ink {
		if i%8 == 0 {
			bits = p.random.Uint64()
		}
		// Speckles: most of the paper stays black, as in scanned digits.
		grain := float64(max(int(bits&0xff)-speckle, 0)) / (255 - speckle)
		bits >>= 8
		v := times(ink, contrast) + times(grain, noise)
		pixels[i] = byte(min(v, 255))
	}
}
