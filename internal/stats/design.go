package stats

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
	"gonum.org/v1/gonum/stat/distuv"
)

// Design is a group-sequential test, two-sided and symmetric: at look k it refuses "no
// difference" and stops where the standardised statistic is at least Boundaries[k] from 0.
// The statistics of the looks are those of a Brownian motion at the fractions of the
// largest information, which holds for means and, of many pairs, for rank sums.
type Design struct {
	Alpha      float64 // level of the test
	Fractions  []float64
	Boundaries []float64
}

// Nominal is, for each look, the two-sided P at which it stops.
func (d Design) Nominal() []float64 {
	out := make([]float64, len(d.Boundaries))
	for k, boundary := range d.Boundaries {
		out[k] = 2 * distuv.UnitNormal.Survival(boundary)
	}
	return out
}

// Stops is the probability that the test stops by refusing at each look. The drift is the
// mean of the standardised statistic at the largest information: 0 under no difference.
func (d Design) Stops(drift float64) []float64 {
	walk, stops := newWalk(drift, d.Fractions), make([]float64, len(d.Boundaries))
	for k, boundary := range d.Boundaries {
		stops[k] = walk.crossing(d.Fractions[k], boundary)
		walk.step(d.Fractions[k], boundary)
	}
	return stops
}

// Power is the probability that the test refuses at any look; under no difference, of
// drift 0, its level.
func (d Design) Power(drift float64) float64 {
	sum := 0.0
	for _, p := range d.Stops(drift) {
		sum += p
	}
	return sum
}

// Information is what a design needs over what the test with a fixed number of pairs needs,
// for the same level and power.
type Information struct {
	Drift    float64 // at which the design has the power
	Largest  float64 // where it goes on to the last look
	MeanNull float64 // mean over campaigns without a difference
	MeanTrue float64 // mean over campaigns with the difference of which it has the power
}

// Information is for a power above the level and below 1; of another one all is NaN.
func (d Design) Information(power float64) Information {
	if !(power > d.Alpha && power < 1) || len(d.Boundaries) == 0 {
		return Information{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
	}
	fixed := Design{Alpha: d.Alpha, Fractions: []float64{1}, Boundaries: []float64{distuv.UnitNormal.Quantile(1 - d.Alpha/2)}}
	drift := d.drift(power)
	ratio := drift / fixed.drift(power)
	largest := ratio * ratio
	return Information{drift, largest, largest * d.MeanFraction(0), largest * d.MeanFraction(drift)}
}

// MeanFraction is the mean of the information at the stop over the largest.
func (d Design) MeanFraction(drift float64) float64 {
	mean, on, before := 0.0, 1.0, 0.0
	for k, p := range d.Stops(drift) {
		mean += on * (d.Fractions[k] - before)
		on, before = on-p, d.Fractions[k]
	}
	return mean
}

// drift is the least one with a power.
func (d Design) drift(power float64) float64 {
	low, high := 0.0, farBoundary
	for range 45 { // to 1e-12
		if mid := (low + high) / 2; d.Power(mid) < power {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}

// walk is where a Brownian motion with a drift is after some looks, of those cases in which
// it has not crossed a boundary: the recursive integration of Armitage, McPherson and Rowe
// (1969), as Jennison and Turnbull (2000) describe it in chapter 19. The density between the
// boundaries is known at the points of a Gauss–Legendre rule, which for smooth functions
// needs fewer of them than Simpson's.
type walk struct {
	drift    float64
	spacing  float64   // of points, on average
	fraction float64   // of the last look
	span     Interval  // the motion is within it
	at       []float64 // points of it
	mass     []float64 // density times weight at each of them
}

// rulePoints is how many points of a rule there are for each standard deviation of the
// shortest step between looks, and leastPoints how many there are at least: twice as many
// change no probability by 1e-9.
const (
	rulePoints  = 3
	leastPoints = 30
)

func newWalk(drift float64, fractions []float64) *walk {
	shortest, before := 1.0, 0.0
	for _, f := range fractions {
		shortest, before = min(shortest, f-before), f
	}
	return &walk{drift: drift, spacing: math.Sqrt(shortest) / rulePoints, at: []float64{0}, mass: []float64{1}}
}

// crossing is the probability that the next look, at a fraction, is the first to cross.
func (w *walk) crossing(fraction, boundary float64) float64 {
	step := fraction - w.fraction
	sd, edge, sum := math.Sqrt(step), boundary*math.Sqrt(fraction), 0.0
	for i, at := range w.at {
		mean := at + w.drift*step
		sum += w.mass[i] * (distuv.UnitNormal.Survival((edge-mean)/sd) + distuv.UnitNormal.CDF((-edge-mean)/sd))
	}
	return sum
}

// step goes on beyond a look whose boundary was not crossed.
func (w *walk) step(fraction, boundary float64) {
	step := fraction - w.fraction
	sd := math.Sqrt(step)
	// Nothing is further out than so many standard deviations from where the walk was.
	low := max(-boundary*math.Sqrt(fraction), w.span.Low+w.drift*step-8*sd)
	high := min(boundary*math.Sqrt(fraction), w.span.High+w.drift*step+8*sd)
	if low >= high { // all has crossed
		*w = walk{drift: w.drift, spacing: w.spacing, fraction: fraction, at: []float64{0}, mass: []float64{0}}
		return
	}
	n := leastPoints + int((high-low)/w.spacing)
	at, mass := make([]float64, n), make([]float64, n)
	quad.Legendre{}.FixedLocations(at, mass, low, high)
	for j, x := range at {
		density := 0.0
		for i, from := range w.at {
			z := (x - from - w.drift*step) / sd
			density += w.mass[i] * math.Exp(-z*z/2)
		}
		mass[j] *= density / (sd * math.Sqrt(2*math.Pi))
	}
	w.fraction, w.span, w.at, w.mass = fraction, Interval{low, high}, at, mass
}
