package figure

import "math"

type point struct{ x, y float64 }

// box is a rectangle, from its left upper corner on.
type box struct{ x, y, width, height float64 }

// leg is a line whose length is written beside it.
type leg struct {
	from, to point
	text     string
}

// distance is how far a point is from the leg's line.
func (l leg) distance(p point) float64 {
	dx, dy := l.to.x-l.from.x, l.to.y-l.from.y
	t := 0.0
	if length := dx*dx + dy*dy; length > 0 {
		t = min(1, max(0, ((p.x-l.from.x)*dx+(p.y-l.from.y)*dy)/length))
	}
	return math.Hypot(p.x-l.from.x-t*dx, p.y-l.from.y-t*dy)
}

func (b box) overlap(o box) float64 {
	w := min(b.x+b.width, o.x+o.width) - max(b.x, o.x)
	h := min(b.y+b.height, o.y+o.height) - max(b.y, o.y)
	if w > 0 && h > 0 {
		return w * h
	}
	return 0
}

// crossing is how much of a line lies in the box, in steps of a pixel or so.
func (b box) crossing(l leg) (inside float64) {
	steps := max(1, math.Ceil(math.Hypot(l.to.x-l.from.x, l.to.y-l.from.y)))
	for i := 0.0; i <= steps; i++ {
		x, y := l.from.x+(l.to.x-l.from.x)*i/steps, l.from.y+(l.to.y-l.from.y)*i/steps
		if x >= b.x && x <= b.x+b.width && y >= b.y && y <= b.y+b.height {
			inside++
		}
	}
	return inside
}

// placeLengths are the middles of the legs' texts: beside its own line, clear of the other lines, of
// what is taken, and of the other texts. labels.ts of the pages has the same rule.
func placeLengths(legs []leg, taken []box, view box) []point {
	out := make([]point, len(legs))
	for i := range legs {
		best, least := legs[i].from, math.Inf(1)
		for _, at := range beside(legs[i]) {
			if cost := costOf(legs, i, at, taken, view); cost < least-1e-6 { // not for a last bit
				best, least = at.point, cost
			}
		}
		out[i] = best
		taken = append(taken, textBox(best, legs[i].text))
	}
	return out
}

// place is where a text can be, and how far its box is from its line.
type place struct {
	point
	gap float64
}

func beside(l leg) (out []place) {
	dx, dy := l.to.x-l.from.x, l.to.y-l.from.y
	length := math.Hypot(dx, dy)
	if length == 0 {
		length = 1
	}
	nx, ny := -dy/length, dx/length
	half := textBox(point{}, l.text)
	for _, gap := range []float64{4, 14, 28, 48} {
		for _, share := range []float64{0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8} {
			for _, side := range []float64{-1, 1} {
				away := side * (gap + math.Abs(nx)*half.width/2 + math.Abs(ny)*half.height/2)
				out = append(out, place{point{l.from.x + dx*share + nx*away, l.from.y + dy*share + ny*away}, gap})
			}
		}
	}
	return out
}

func costOf(legs []leg, own int, at place, taken []box, view box) float64 {
	b := textBox(at.point, legs[own].text)
	cost := at.gap + b.width*b.height - b.overlap(view)
	for _, o := range taken {
		cost += 10 * b.overlap(o)
	}
	near := legs[own].distance(at.point)
	for i, l := range legs {
		cost += 20 * b.crossing(l)
		if i != own && l.distance(at.point) < 1.5*near { // it would be read as that line's
			cost += 1000
		}
	}
	return cost
}
