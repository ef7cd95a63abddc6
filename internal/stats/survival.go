package stats

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// Wait is how long one was waited for: until it came, or until the waiting ended without it.
type Wait struct {
	Time float64
	Came bool // false: censored at Time
}

// Survival is the estimate of Kaplan and Meier (1958) of the share that has not come by a
// time: a step at each time at which one came.
type Survival struct {
	N     int
	steps []survivalStep
	last  float64 // the longest wait: nothing is known beyond
}

type survivalStep struct {
	time, share float64 // share is what is left just after the time
	came, left  int     // at the time, of those that were waited for until then
	greenwood   float64 // Σ came / (left · (left − came)), up to this step
}

// KaplanMeier estimates from waits. One that was censored at the time at which another came
// was waited for until then. A time that is NaN or negative gives an estimate of nothing.
func KaplanMeier(waits []Wait) *Survival {
	s := &Survival{N: len(waits)}
	if slices.ContainsFunc(waits, func(w Wait) bool { return !(w.Time >= 0) }) {
		return &Survival{}
	}
	sorted := slices.SortedFunc(slices.Values(waits), func(a, b Wait) int { return cmp.Compare(a.Time, b.Time) })
	share, greenwood := 1.0, 0.0
	for i := 0; i < len(sorted); {
		at, k, came := sorted[i].Time, i, 0
		for ; k < len(sorted) && sorted[k].Time == at; k++ {
			if sorted[k].Came {
				came++
			}
		}
		if left := len(sorted) - i; came > 0 {
			share *= float64(left-came) / float64(left)
			greenwood += float64(came) / (float64(left) * float64(left-came)) // +Inf where none is left
			s.steps = append(s.steps, survivalStep{at, share, came, left, greenwood})
		}
		i, s.last = k, at
	}
	return s
}

// until is how many steps are at or before a time.
func (s *Survival) until(t float64) int {
	n, _ := slices.BinarySearchFunc(s.steps, t, func(x survivalStep, t float64) int {
		if x.time <= t {
			return -1
		}
		return 1
	})
	return n
}

// Came is the share that had come by a time, with its interval: by the log of −log of the
// share that had not (Kalbfleisch and Prentice), within 0 and 1. NaN where nothing is known
// of the time; no interval before the first and after the last of all has come.
func (s *Survival) Came(t, level float64) (share float64, of Interval) {
	left, of := s.left(t, level)
	return 1 - left, Interval{1 - of.High, 1 - of.Low}
}

func (s *Survival) left(t, level float64) (float64, Interval) {
	if s.N == 0 || !(t >= 0) || t > s.last && s.share(len(s.steps)) > 0 {
		return math.NaN(), undefined
	}
	k := s.until(t)
	share := s.share(k)
	if k == 0 || share == 0 || !isLevel(level) {
		return share, undefined
	}
	log := math.Log(share)
	half := distuv.UnitNormal.Quantile((1+level)/2) * math.Sqrt(s.steps[k-1].greenwood) / math.Abs(log)
	return share, Interval{math.Exp(log * math.Exp(half)), math.Exp(log * math.Exp(-half))}
}

// share is what is left after so many steps.
func (s *Survival) share(steps int) float64 {
	if steps == 0 {
		return 1
	}
	return s.steps[steps-1].share
}

// Median is the time by which half had come, NaN where fewer did, with the interval of
// Brookmeyer and Crowley (1982) for the intervals of [Survival.Came], of which there may be a
// lower end all the same; an end that lies beyond what is known is infinite. Where exactly half had come for a while, it is the middle
// of that while, as of a sample without censoring.
func (s *Survival) Median(level float64) (float64, Interval) {
	if s.N == 0 {
		return math.NaN(), undefined
	}
	half := func(left func(survivalStep) float64) float64 {
		for i, x := range s.steps {
			switch share := left(x); {
			case math.Abs(share-0.5) < 1e-9:
				until := s.last
				if i+1 < len(s.steps) {
					until = s.steps[i+1].time
				}
				return (x.time + until) / 2
			case share < 0.5:
				return x.time
			}
		}
		return math.Inf(1)
	}
	median := half(func(x survivalStep) float64 { return x.share })
	if math.IsInf(median, 0) {
		median = math.NaN()
	}
	end := func(of func(Interval) float64) float64 {
		return half(func(x survivalStep) float64 {
			if _, i := s.left(x.time, level); i.Defined() {
				return of(i)
			}
			return 1 // after the last of all, there is no interval
		})
	}
	return median, Interval{end(func(i Interval) float64 { return i.Low }), end(func(i Interval) float64 { return i.High })}
}

// Restricted is the mean of the wait or the horizon, whichever is shorter: the area below the
// curve up to the horizon (Irwin 1949), and the variance of that mean after Greenwood, as R's
// survival has it (rmean). NaN where nothing is known of the horizon.
func (s *Survival) Restricted(horizon float64) (mean, variance float64) {
	if s.N == 0 || !(horizon >= 0) || horizon > s.last && s.share(len(s.steps)) > 0 {
		return math.NaN(), math.NaN()
	}
	k := s.until(horizon)
	right := horizon
	for i := k - 1; i >= 0; i-- { // mean is the area right of the step
		x := s.steps[i]
		mean += x.share * (right - x.time)
		right = x.time
		if x.left > x.came {
			variance += mean * mean * float64(x.came) / (float64(x.left) * float64(x.left-x.came))
		}
	}
	return mean + right, variance
}

// RestrictedInterval is the interval of [Survival.Restricted], Student's, within 0 and the
// horizon. Greenwood's variance has n where a sample's has n − 1, which matters to few waits.
// It is undefined where none came by the horizon: nothing tells how much sooner one might.
func (s *Survival) RestrictedInterval(horizon, level float64) Interval {
	if s.until(horizon) == 0 {
		return undefined
	}
	mean, variance := s.Restricted(horizon)
	n := float64(s.N)
	i := OfMean(mean, variance*n/(n-1), n-1, level)
	return Interval{max(0, i.Low), min(horizon, i.High)}
}

// Sooner is by how much less time one of a pair takes than the other, in the mean of both up
// to a horizon. Each pair counts, also where one or both never came.
type Sooner struct {
	Pairs int
	// Difference is the reference's restricted mean minus the value's: positive where the
	// value takes less time.
	Difference float64
	Interval   Interval
	P          float64 // two-sided, of the test that Interval inverts: Student's for pairs
	// Decided: the interval does not contain 0.
	Decided bool
	// More is as that of a [Decision].
	More int
}

// DecideSooner compares waits that are paired by iteration, as one comparison of so many
// ([Decide]). A wait that was censored before the horizon makes it NaN: nobody knows how much
// of the time up to the horizon it would have taken.
func DecideSooner(reference, value map[int]Wait, horizon, level float64, comparisons int) Sooner {
	level = 1 - (1-level)/float64(max(1, comparisons))
	pairs := PairUp(restricted(reference, horizon), restricted(value, horizon))
	differences := make([]float64, len(pairs))
	for i, p := range pairs {
		differences[i] = p.Reference - p.Value
	}
	of, p, longer := sooner(pairs, differences, horizon)
	out := Sooner{Pairs: len(pairs), Difference: Mean(differences), Interval: of(level), P: min(1, p*float64(max(1, comparisons)))} // NaN stays NaN
	out.Decided = excludesZero(out.Interval)
	if n, away, sd := len(pairs), math.Abs(out.Difference), StdDev(differences); !out.Decided && n >= minDecision && away > sd/math.Sqrt(float64(n)) {
		out.More = ManyMore + 1
		for more := 1; more <= ManyMore; more++ {
			if all := float64(n + more); tQuantile(level, all-1)*sd/math.Sqrt(all)+longer(n+more, level) < away {
				out.More = more
				break
			}
		}
	}
	return out
}

func excludesZero(i Interval) bool { return i.Low > 0 || i.High < 0 }

// sooner is the interval of a mean difference, and the P that belongs to it. Of one that never
// came by the horizon, all differences are those of the other: they spread as if that were
// certain. But its share that comes may be as high as the end of Wilson's interval, and each
// that comes may do so at once; the interval is longer by as much, and how much that is of n
// pairs is returned, too. Where neither came, there is none.
func sooner(pairs []Pair, differences []float64, horizon float64) (of func(level float64) Interval, p float64, longer func(n int, level float64) float64) {
	never := func(of func(Pair) float64) bool {
		return !slices.ContainsFunc(pairs, func(p Pair) bool { return of(p) != horizon })
	}
	reference, value := never(func(p Pair) float64 { return p.Reference }), never(func(p Pair) float64 { return p.Value })
	longer = func(int, float64) float64 { return 0 }
	switch {
	case reference && value:
		return func(float64) Interval { return undefined }, math.NaN(), longer
	case !reference && !value:
		return func(level float64) Interval { return MeanT(differences, level) }, PairedT(differences), longer
	}
	longer = func(n int, level float64) float64 { return horizon * Wilson(0, n, level).High }
	of = func(level float64) Interval {
		i, more := MeanT(differences, level), longer(len(pairs), level)
		if value {
			return Interval{i.Low, i.High + more}
		}
		return Interval{i.Low - more, i.High}
	}
	low, high := 0.0, 1.0 // of P: at low the interval contains 0, at high it does not
	for range 50 {
		if middle := (low + high) / 2; excludesZero(of(1 - middle)) {
			high = middle
		} else {
			low = middle
		}
	}
	return of, high, longer
}

// restricted is the waits, or the horizon where they are longer.
func restricted(waits map[int]Wait, horizon float64) map[int]float64 {
	out := make(map[int]float64, len(waits))
	for i, w := range waits {
		if out[i] = min(w.Time, horizon); !w.Came && w.Time < horizon {
			out[i] = math.NaN()
		}
	}
	return out
}
