package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/stats"
	"linktrial/orchestrator/report/wording"
)

// finding is what a run's trials give of a requirement's metric.
type finding struct {
	value  float64
	of     stats.Interval
	trials int
	why    string // why there is no interval; empty: there is one
	remark string // what the reader of the value must know; empty: nothing
}

// judge says of each requirement of the run's sheet whether the results pass it.
func (r *Run) judge(t *RunTable, samples []sample) (out []Judgement) {
	if r.Sheet == nil {
		return nil
	}
	var probes []*probeSample
	if slices.ContainsFunc(r.Sheet.Require, func(q runsheet.Requirement) bool { return q.Metric.OfProbes() }) {
		probes = probeSamples(r)
	}
	for i := range r.Sheet.Require {
		q := &r.Sheet.Require[i]
		j := Judgement{Requirement: *q}
		var f finding
		if q.Metric.OfProbes() {
			j.Label, f = r.findProbe(q, probes)
		} else {
			j.Label, f = r.find(q, t, samples)
		}
		if f.why == "" && !f.of.Defined() {
			f.why = noneOf(q.Metric, f.trials)
		}
		if t.Stopping != nil && t.Stopping.Stopped {
			f.remark = strings.TrimPrefix(f.remark+"; the run was "+t.RuleText()+" of "+wording.Plural(t.Iterations, "iteration", "iterations"), "; ")
		}
		if r.Unnamed() {
			f.remark = strings.TrimPrefix(f.remark+"; the radio is a "+journal.PlaceUnnamed, "; ")
		}
		j.Value, j.CI, j.Trials = Rounded(f.value), interval(f.of), f.trials
		j.Outcome = decided(&j)
		reason := f.why
		if t.Partial {
			j.Outcome, reason = Undecided, strings.TrimSuffix("the run is partial; "+f.why, "; ")
		}
		j.Text = j.words(r.Sheet.Label(q.Reference), reason, f.remark)
		out = append(out, j)
	}
	return out
}

// OutcomesText says how many requirements have which outcome.
func OutcomesText(all []Judgement) string {
	var parts []string
	for _, o := range []RequiredOutcome{Fail, Undecided, Pass} {
		n := 0
		for i := range all {
			if all[i].Outcome == o {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", o, n))
		}
	}
	return fmt.Sprintf("Required, of %s: %s.", wording.Plural(len(all), "requirement", "requirements"), strings.Join(parts, ", "))
}

// decided is the outcome by the interval: the bounds themselves meet them.
func decided(j *Judgement) RequiredOutcome {
	low, high := math.Inf(-1), math.Inf(1)
	if j.AtLeast != nil {
		low = *j.AtLeast
	}
	if j.AtMost != nil {
		high = *j.AtMost
	}
	switch {
	case j.CI == nil:
		return Undecided
	case j.CI.Low >= low && j.CI.High <= high:
		return Pass
	case j.CI.High < low || j.CI.Low > high:
		return Fail
	}
	return Undecided
}

// find is a metric of a treatment, and the treatment's label.
func (r *Run) find(q *runsheet.Requirement, t *RunTable, samples []sample) (label string, f finding) {
	label = r.Sheet.Label(q.Treatment)
	at := func(name string) int {
		return slices.IndexFunc(t.Rows, func(row Row) bool { return row.Treatment == name })
	}
	i := at(q.Treatment)
	if i < 0 {
		return label, finding{value: math.NaN(), of: noInterval, why: "no trial"}
	}
	row, s := &t.Rows[i], &samples[i]
	if row.Missing != "" {
		return label, finding{value: math.NaN(), of: noInterval, why: "missing: " + row.Missing}
	}
	switch q.Metric {
	case runsheet.MetricDelivered:
		return label, s.deliveredBy(q.By.Seconds())
	case runsheet.MetricFailures:
		return label, shareOfTrials(s.failed, len(s.valid)+s.failed)
	case runsheet.MetricRatioTo:
		k := at(q.Reference)
		if k < 0 {
			return label, finding{value: math.NaN(), of: noInterval, why: "no trial of " + r.Sheet.Label(q.Reference)}
		}
		c := stats.Compare(stats.PairUp(samples[k].by(rateOf), s.by(rateOf)), runsheet.RequiredLevel)
		f = finding{value: c.Ratio, of: c.RatioInterval, trials: c.Pairs}
		if t.Stopping != nil { // as of the comparisons in the table
			f.of, f.why = noInterval, "intervals of ratios are of a fixed number of iterations, and the plan has a rule to stop by"
		}
		if lost := samples[k].failed + s.failed; lost > 0 {
			f.remark = fmt.Sprintf("%s of the two failed, so that the ratio is of the iterations in which neither did", wording.Plural(lost, "trial", "trials"))
		}
		return label, f
	case runsheet.MetricIdeal:
		f = s.mean(shareOf(idealOf))
	case runsheet.MetricCodedBound:
		f = s.mean(shareOf(codedOf))
	default:
		f = s.mean(rateOf)
	}
	return label, s.survivors(f)
}

var noInterval = stats.Interval{Low: math.NaN(), High: math.NaN()}

// mean is a metric's over the valid trials that have it.
func (s *sample) mean(of func(*observation) float64) finding {
	xs := s.values(of)
	return finding{value: stats.Mean(xs), of: stats.MeanInterval(xs, runsheet.RequiredLevel), trials: len(xs)}
}

// survivors adds to a mean over valid trials what it leaves out.
func (s *sample) survivors(f finding) finding {
	var parts []string
	if f.trials > 0 && f.trials < len(s.valid) {
		parts = append(parts, fmt.Sprintf("known of %d of %s", f.trials, wording.Plural(len(s.valid), "valid trial", "valid trials")))
	}
	if s.failed > 0 && f.trials > 0 {
		parts = append(parts, fmt.Sprintf("%d of %s failed, so that the average is of %d of %d", s.failed, wording.Plural(s.trials, "trial", "trials"), len(s.valid), len(s.valid)+s.failed))
	}
	f.remark = strings.Join(parts, "; ")
	return f
}

// deliveredBy is the share of the trials that tell of their protocol whose payload was there
// by a time, in seconds; one that failed was not delivered.
func (s *sample) deliveredBy(by float64) finding {
	came := 0
	for _, d := range s.deliveries {
		if d.wait.Came && d.wait.Time <= by {
			came++
		}
	}
	return shareOfTrials(came, len(s.deliveries))
}

func shareOfTrials(k, n int) finding {
	return finding{value: float64(k) / float64(n), of: stats.Wilson(k, n, runsheet.RequiredLevel), trials: n}
}

// findProbe is a metric of a probe, and the probe's name.
func (r *Run) findProbe(q *runsheet.Requirement, all []*probeSample) (label string, f finding) {
	i := slices.IndexFunc(all, func(s *probeSample) bool {
		return s.row.Probe == q.Probe && s.row.From == q.From && s.row.Beside == q.Treatment
	})
	if i < 0 {
		row := ProbeRow{Label: r.Sheet.Label(q.Probe), Beside: q.Treatment, BesideLabel: r.Sheet.Label(q.Treatment)}
		return row.Name(), finding{value: math.NaN(), of: noInterval, why: "no trial"}
	}
	s := all[i]
	xs := map[runsheet.Metric][]float64{runsheet.MetricDelayMean: s.mean, runsheet.MetricDelayP95: s.p95, runsheet.MetricDelayP99: s.p99, runsheet.MetricLoss: s.loss}[q.Metric]
	f = finding{value: stats.Mean(xs), of: stats.MeanInterval(xs, runsheet.RequiredLevel), trials: len(xs)}
	switch {
	case len(xs) == 0:
		return s.row.Name(), f
	case q.Metric == runsheet.MetricLoss:
		// No less wide than were each packet lost or not by itself: trials that all lose
		// nothing do not tell that nothing is ever lost.
		apart := stats.Wilson(int(s.row.Lost), int(s.row.Sent), runsheet.RequiredLevel)
		f.of = stats.Interval{Low: min(f.of.Low, apart.Low), High: max(f.of.High, apart.High)}
		return s.row.Name(), f
	}
	if r.ProbeClock.Unknown != "" {
		// Such delays are shorter than the true ones, by nobody knows how much.
		f.of, f.why = noInterval, "delays are only those above the shortest one: "+r.ProbeClock.Unknown
		return s.row.Name(), f
	}
	if u := s.finish(r.ProbeClock).UncertaintyMS; u != nil && *u > 0 {
		f.of.Low, f.of.High = max(0, f.of.Low-*u), f.of.High+*u
		f.remark = fmt.Sprintf("the interval contains the clocks' uncertainty, %s ms", wording.Delay(u))
	}
	return s.row.Name(), f
}

// noneOf says that so many values of a metric have no interval.
func noneOf(m runsheet.Metric, n int) string {
	what := "trial"
	switch m {
	case runsheet.MetricAverage, runsheet.MetricIdeal, runsheet.MetricCodedBound:
		what = "valid trial"
	case runsheet.MetricRatioTo:
		what = "pair"
	}
	switch {
	case n > 0:
		return "no interval of " + wording.Plural(n, what, what+"s")
	case m == runsheet.MetricIdeal || m == runsheet.MetricCodedBound:
		return "it is known of no valid trial"
	}
	return "no " + what
}

// words is the text of a judgement: "average 139 KB/s, 120 to 158 KB/s at 95 %, at least
// 100 KB/s required".
func (j *Judgement) words(reference, why, remark string) string {
	amount, unit := j.amounts()
	write := func(x *float64) string { return amount(x) + unit }
	var parts []string
	switch name := j.Called(); {
	case j.Value == nil:
		parts = append(parts, name)
	case j.Metric == runsheet.MetricRatioTo:
		parts = append(parts, name+" "+write(j.Value)+" of that of "+reference)
	default:
		parts = append(parts, name+" "+write(j.Value))
	}
	if j.CI != nil {
		parts = append(parts, amount(&j.CI.Low)+" to "+write(&j.CI.High)+" at 95 %")
	}
	switch {
	case j.AtLeast != nil && j.AtMost != nil:
		parts = append(parts, amount(j.AtLeast)+" to "+write(j.AtMost)+" required")
	case j.AtLeast != nil:
		parts = append(parts, "at least "+write(j.AtLeast)+" required")
	case j.AtMost != nil:
		parts = append(parts, "at most "+write(j.AtMost)+" required")
	}
	text := strings.Join(parts, ", ")
	for _, s := range []string{why, remark} {
		if s != "" {
			text += "; " + s
		}
	}
	return wording.Clean(text)
}

// amounts writes values of the metric without their unit, and gives the unit.
func (j *Judgement) amounts() (write func(*float64) string, unit string) {
	switch j.Metric {
	case runsheet.MetricAverage:
		largest := 0.0
		for _, x := range []*float64{j.Value, j.AtLeast, j.AtMost} {
			if x != nil {
				largest = max(largest, *x)
			}
		}
		rate := wording.RateUnitFor(largest)
		return func(x *float64) string { v := rate.In(*x); return wording.Short(&v) }, " " + rate.Name
	case runsheet.MetricDelayMean, runsheet.MetricDelayP95, runsheet.MetricDelayP99:
		return wording.Short, " ms"
	}
	return func(x *float64) string { v := 100 * *x; return wording.Short(&v) }, " %"
}
