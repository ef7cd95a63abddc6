package report

import (
	"math"
	"strconv"

	"linktrial/internal/stats"
	"linktrial/orchestrator/report/wording"
)

// LeastReadings is how many attempts of a treatment must have a metric of telemetry for its
// usual range to be known.
const LeastReadings = 8

// UnusualReading is a metric of telemetry whose mean over an attempt lies outside the usual
// range ([stats.Usual]) of all attempts of the same treatment in the run. It is held against
// those alone, as what a radio counts depends on what is sent.
type UnusualReading struct {
	Trial     int
	Attempt   int
	Treatment string
	Alone     bool // a trial that has probes alone
	Telemetry *Telemetry
	Usual     stats.Interval
}

// UnusualReadings are those of a run, in the order of its trials; none of treatments that the
// analysis leaves out.
func (v *Analysis) UnusualReadings(r *Run) (out []UnusualReading) {
	type metric struct {
		treatment                  string
		alone                      bool
		node, source, metric, unit string
	}
	each := func(do func(t *Trial, a *Attempt, x *Telemetry, of metric)) {
		for i := range r.Trials {
			t := &r.Trials[i]
			if v.leavesOut(t.Treatment) {
				continue
			}
			alone := r.ProbesAlone(t)
			for k := range t.Attempts {
				a := &t.Attempts[k]
				for m := range a.Telemetry {
					x := &a.Telemetry[m]
					do(t, a, x, metric{t.Treatment, alone, x.Node, x.Source, x.Metric, x.Unit})
				}
			}
		}
	}
	values := map[metric][]float64{}
	each(func(_ *Trial, _ *Attempt, x *Telemetry, of metric) { values[of] = append(values[of], x.Mean) })
	usual := map[metric]stats.Interval{}
	for of, xs := range values {
		if len(xs) >= LeastReadings {
			usual[of] = stats.Usual(xs)
		}
	}
	each(func(t *Trial, a *Attempt, x *Telemetry, of metric) {
		if in, known := usual[of]; known && (x.Mean < in.Low || x.Mean > in.High) {
			out = append(out, UnusualReading{t.Index, a.Attempt, t.Treatment, of.alone, x, in})
		}
	})
	return out
}

// Texts are its value and the usual range, with three digits of the range's width, and more
// where the value would be written as one of its ends.
func (u *UnusualReading) Texts() (value, usual string) {
	const most = 9 // decimals
	decimals := min(max(2-int(math.Floor(math.Log10(u.Usual.High-u.Usual.Low))), 0), most)
	for ; ; decimals++ {
		write := func(x float64) string { return wording.Minus(strconv.FormatFloat(x, 'f', decimals, 64)) }
		value, low, high := write(u.Telemetry.Mean), write(u.Usual.Low), write(u.Usual.High)
		if decimals >= most || value != low && value != high {
			return value, low + " to " + high
		}
	}
}
