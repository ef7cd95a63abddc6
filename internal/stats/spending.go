package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Spending is how the level of a test is divided over its looks: the share of it that may
// be spent rises with the information, which of paired trials is the number of pairs.
type Spending string

const (
	// OBrienFleming spends little at first, so that the last look is nearly the test of
	// a fixed number of pairs (O'Brien and Fleming 1979; Lan and DeMets 1983).
	OBrienFleming Spending = "obrien-fleming"
	// Pocock has nearly the same boundary at every look (Pocock 1977; Lan and DeMets 1983).
	Pocock Spending = "pocock"
)

// Spent is what a two-sided test of level alpha has spent at a fraction of the largest
// information, by the function of Lan and DeMets (1983) for each side with half of alpha.
// It is 0 before there is information and alpha from the largest on; NaN of another
// spending or where alpha is not between 0 and 1.
func (s Spending) Spent(alpha, fraction float64) float64 {
	switch {
	case s != OBrienFleming && s != Pocock, !isLevel(alpha), math.IsNaN(fraction):
		return math.NaN()
	case fraction <= 0:
		return 0
	case fraction >= 1:
		return alpha
	case s == Pocock:
		return alpha * math.Log1p((math.E-1)*fraction)
	}
	z := distuv.UnitNormal.Quantile(1 - alpha/4)
	return 4 * distuv.UnitNormal.Survival(z/math.Sqrt(fraction))
}

// SpendingDesign is the design whose boundary at each look takes what the spending allows
// until there. Fractions are the information at the looks over the largest; they rise, and
// the last is 1.
func SpendingDesign(s Spending, alpha float64, fractions []float64) (Design, error) {
	d := Design{Alpha: alpha}
	if err := checkSpending(s, alpha); err != nil {
		return Design{}, err
	}
	if err := checkFractions(fractions); err != nil {
		return Design{}, err
	}
	walk, spent := newWalk(0, fractions), 0.0
	for _, fraction := range fractions {
		may := s.Spent(alpha, fraction)
		boundary := boundaryWith(func(z float64) float64 { return walk.crossing(fraction, z) }, may-spent)
		d.Fractions, d.Boundaries = append(d.Fractions, fraction), append(d.Boundaries, boundary)
		spent += walk.crossing(fraction, boundary)
		walk.step(fraction, boundary)
	}
	return d, nil
}

// EqualDesign is the classical design for looks at equal distances: all boundaries are one
// constant times 1 (Pocock) or the root of looks/look (O'Brien and Fleming).
func EqualDesign(s Spending, alpha float64, looks int) (Design, error) {
	if err := checkSpending(s, alpha); err != nil {
		return Design{}, err
	}
	if looks < 1 || looks > MaxLooks {
		return Design{}, fmt.Errorf("looks: expected 1 to %d, found %d", MaxLooks, looks)
	}
	d := Design{Alpha: alpha, Fractions: make([]float64, looks), Boundaries: make([]float64, looks)}
	set := func(constant float64) Design {
		for k := range looks {
			d.Fractions[k] = float64(k+1) / float64(looks)
			d.Boundaries[k] = constant
			if s == OBrienFleming {
				d.Boundaries[k] /= math.Sqrt(d.Fractions[k])
			}
		}
		return d
	}
	return set(boundaryWith(func(constant float64) float64 { return set(constant).Power(0) }, alpha)), nil
}

// MaxLooks bounds the looks of a design. More than five or ten shorten the trials little
// (Jennison and Turnbull 2000, chapter 2).
const MaxLooks = 100

// minStep is the least information between looks, as a fraction of the largest: those of
// nearly the same information need very many points to integrate over.
const minStep = 0.001

func checkSpending(s Spending, alpha float64) error {
	if s != OBrienFleming && s != Pocock {
		return fmt.Errorf("spending: expected %s or %s, found %q", OBrienFleming, Pocock, string(s))
	}
	if !(alpha > 0 && alpha <= 0.5) {
		return fmt.Errorf("alpha: expected more than 0 and at most 0.5, found %v", alpha)
	}
	return nil
}

func checkFractions(fractions []float64) error {
	if len(fractions) < 1 || len(fractions) > MaxLooks {
		return fmt.Errorf("looks: expected 1 to %d, found %d", MaxLooks, len(fractions))
	}
	before := 0.0
	for k, f := range fractions {
		if !(f-before > minStep) {
			return fmt.Errorf("look %d: expected more than %v of the information since the look before, found the fraction %v after %v", k+1, minStep, f, before)
		}
		before = f
	}
	if before != 1 {
		return fmt.Errorf("look %d: expected the fraction 1 at the last look, found %v", len(fractions), before)
	}
	return nil
}

// farBoundary is a boundary that nothing crosses: beyond it a float64 has no probability left
// that a spending could ask for.
const farBoundary = 38.0

// boundaryWith is the boundary that is crossed with a probability, which falls with it. Of a
// probability of 0 or below it is [farBoundary].
func boundaryWith(crossing func(boundary float64) float64, probability float64) float64 {
	low, high := 0.0, farBoundary
	for range 45 { // to 1e-12
		if mid := (low + high) / 2; crossing(mid) > probability {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}
