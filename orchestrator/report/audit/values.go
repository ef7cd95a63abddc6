package audit

import (
	"math"
	"slices"
	"time"

	"linktrial/executor/journal"
)

// kilobyte is the KB of tables.
const kilobyte = 1024.0

// value is what an attempt has to give in tables, by the journals of both ends and
// the decisions that were made afterwards.
type value struct {
	trial, attempt int
	iteration      int
	treatment      string
	verdict        string // as tables have it
	reason         string
	started        time.Time
	confirmed      bool // the server's digests are the clients'
	counted        bool
	rate           float64 // bytes per second, of a success
	// derived: rate, elapsed and connect follow from the journals. Times that bound
	// several flows need the server's samples: the store's value is taken instead.
	derived          bool
	elapsed, connect time.Duration
	duration         time.Duration // of the whole attempt
	digest           string        // of a single flow that has a result
	control          []ControlCount
}

// valuesOf are those of all attempts, in the order of the sheet.
func (a *auditor) valuesOf() []value {
	rows := a.rows()
	var out []value
	for i := range a.sheet.Trials {
		t := a.history.trials[i]
		if t == nil || len(a.sheet.Trials[i].Flows) == 0 {
			continue // probes have tables of their own
		}
		for n, x := range t.attempts {
			row := rows[key{x.trial, x.number}]
			if row == nil {
				continue // a finding already
			}
			f := value{trial: i, attempt: x.number, iteration: a.sheet.Trials[i].Iteration, treatment: a.sheet.Trials[i].Treatment,
				verdict: row.Verdict, reason: row.Reason, started: x.started, confirmed: a.confirmed(x), control: row.Control, duration: x.duration}
			took, connect, size, known := a.elapsed(x)
			if len(x.flows) == 1 && x.flows[0].Result != nil {
				f.digest = x.flows[0].Result.Digest
			}
			if f.elapsed, f.connect, f.derived = took, connect, known && took > 0; row.Verdict == string(journal.Succeeded) {
				f.rate = row.Rate
				if f.derived {
					f.rate = float64(size) / took.Seconds()
				}
			}
			f.counted = row.Verdict == string(journal.Succeeded) && f.confirmed && f.rate > 0 && n == len(t.attempts)-1
			out = append(out, f)
		}
	}
	return out
}

// elapsed is the time of an attempt that succeeded, from the first start of a flow's
// clock to the end of the last one's, its longest handshake, and the bytes that were
// sent. The time is not known where times bound several flows: it is that of a
// window, which the server's samples make.
func (a *auditor) elapsed(x *attempt) (took, connect time.Duration, size int64, known bool) {
	of := a.sheet.Trials[x.trial].Flows
	if len(x.flows) != len(of) || len(of) == 0 {
		return 0, 0, 0, false
	}
	bounded := 0
	var first, last time.Duration
	for i := range x.flows {
		r := x.flows[i].Result
		if r == nil {
			return 0, 0, 0, false
		}
		if of[i].Duration > 0 {
			bounded++
		}
		handshake := time.Duration(x.flows[i].ConnectNS)
		connect = max(connect, handshake)
		began := of[i].Start + handshake
		if i == 0 || began < first {
			first = began
		}
		last = max(last, began+time.Duration(r.ElapsedNS))
		size += r.SizeBytes
	}
	return last - first, connect, size, len(of) == 1 || bounded < len(of)
}

// summary is what tables have of one treatment. Rates are in bytes per second.
type summary struct {
	trials, valid, failed, excluded, notEnded, extra int

	mean, sd, least, most, median float64

	// delivered are the times from the first attempt to connect until the payload of a valid
	// trial was there, up to the horizon, ascending, in seconds; waited is the sum of these
	// and of the horizon for each other trial that is valid or failed. outcomes is how many
	// both are; 0: nobody waits for a payload.
	delivered       []float64
	waited, horizon float64
	outcomes        int
}

// summaries are computed from the attempts, by treatment, in the order of the sheet.
func (a *auditor) summaries(values []value) (names []string, by map[string]*summary) {
	by = map[string]*summary{}
	rates := map[string][]float64{}
	of := func(i int) (string, *summary) {
		name := a.sheet.Trials[i].Treatment
		s := by[name]
		if s == nil {
			s = &summary{}
			by[name] = s
			names = append(names, name)
		}
		return name, s
	}
	counted := map[int]bool{}
	for i := range values {
		f := &values[i]
		name, s := of(f.trial)
		if f.counted {
			counted[f.trial] = true
			rates[name] = append(rates[name], f.rate)
		}
		if f.attempt > 1 {
			s.extra++
		}
	}
	spent := spentBy(values)
	verdicts, last := map[int]string{}, map[int]string{}
	for i := range a.run.Trials {
		t := &a.run.Trials[i]
		verdicts[t.Trial], last[t.Trial] = t.Verdict, t.Verdict
		if n := len(t.Attempts); n > 0 {
			last[t.Trial] = t.Attempts[n-1].Verdict
		}
	}
	for i := range a.sheet.Trials {
		if len(a.sheet.Trials[i].Flows) == 0 || a.notNeeded(i) {
			continue
		}
		_, s := of(i)
		s.trials++
		switch {
		case counted[i]:
			s.valid++
			s.wait(a.horizon(i), spent[i], true)
		case verdicts[i] == "":
			s.notEnded++
		case last[i] == string(journal.Invalid) || last[i] == string(journal.Aborted):
			s.excluded++
		default:
			s.failed++
			s.wait(a.horizon(i), 0, false)
		}
	}
	for _, s := range by {
		slices.Sort(s.delivered)
	}
	for name, xs := range rates {
		by[name].describe(xs)
	}
	return names, by
}

func (s *summary) describe(xs []float64) {
	slices.Sort(xs)
	n := len(xs)
	s.least, s.most = xs[0], xs[n-1]
	s.median = (xs[(n-1)/2] + xs[n/2]) / 2
	for _, x := range xs {
		s.mean += x / float64(n)
	}
	if n < 2 {
		s.sd = math.NaN()
		return
	}
	squares := 0.0
	for _, x := range xs {
		squares += (x - s.mean) * (x - s.mean)
	}
	s.sd = math.Sqrt(squares / float64(n-1))
}

// Summary is what pages show of a run (the API's Summarize).
type Summary struct {
	Treatments []TreatmentSummary
	Points     []Point
}

// TreatmentSummary is one treatment. Rates are in bytes per second; 0 is none.
type TreatmentSummary struct {
	Name                   string
	Planned, Valid, Failed int
	Average, SD, Min, Max  float64
}

// Point is one attempt in a chart.
type Point struct {
	Trial, Attempt int
	Rate           float64
	Counts         bool
}

// near reports whether two values are one, but for the nine significant digits to
// which reports are rounded.
func near(x, y float64) bool {
	return math.Abs(x-y) <= 2e-8*math.Max(math.Abs(x), math.Abs(y))
}

// orZero is a value as the API has it, which sends none as 0.
func orZero(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}

// checkLive holds what lists and pages show against the journals.
func (a *auditor) checkLive(values []value) {
	c := a.check(Live)
	if !a.history.seen {
		c.skip("there is no record of the leading node")
		return
	}
	ended, notNeeded, failed := 0, 0, 0
	for i, t := range a.history.trials {
		if t.closed {
			ended++
		}
		if a.notNeeded(i) {
			notNeeded++
		}
	}
	for _, x := range a.history.all {
		if x.ended && x.verdict != journal.Succeeded {
			failed++
		}
	}
	c.Objects = 3
	if a.run.TrialsEnded != ended {
		c.find(Finding{}, "lists and pages show %d ended trials, the journal has %d", a.run.TrialsEnded, ended)
	}
	if a.run.TrialsNotNeeded != notNeeded {
		c.find(Finding{}, "lists and pages show %d trials that were not needed, the journal has %d", a.run.TrialsNotNeeded, notNeeded)
	}
	if a.run.AttemptsFailed != failed {
		c.find(Finding{}, "lists and pages show %d attempts that did not succeed, the journal has %d", a.run.AttemptsFailed, failed)
	}
	if !a.run.Ended() {
		c.skip("the run is under way: values of treatments change")
		return
	}
	rows := a.rows()
	for i := range values {
		f := &values[i]
		c.Objects++
		if row := rows[key{f.trial, f.attempt}]; !near(row.Rate, f.rate) {
			c.find(ofTrial(f.trial, f.attempt), "the run's page shows %.9g KB/s, by the journals it is %.9g", row.Rate/kilobyte, f.rate/kilobyte)
		}
	}
	if a.run.Summary == nil {
		c.skip("the values of treatments were not given")
		return
	}
	a.checkPoints(c, values)
	a.checkSummary(c, values)
}

func (a *auditor) checkPoints(c *Check, values []value) {
	points := map[key]*Point{}
	for i := range a.run.Summary.Points {
		p := &a.run.Summary.Points[i]
		if points[key{p.Trial, p.Attempt}] != nil {
			c.find(ofTrial(p.Trial, p.Attempt), "charts have the attempt twice")
		}
		points[key{p.Trial, p.Attempt}] = p
	}
	for i := range values {
		f := &values[i]
		p := points[key{f.trial, f.attempt}]
		if p == nil {
			c.find(ofTrial(f.trial, f.attempt), "charts do not have the attempt")
			continue
		}
		delete(points, key{f.trial, f.attempt})
		if p.Counts != f.counted {
			c.find(ofTrial(f.trial, f.attempt), "in charts it counts: %t; by the journals: %t", p.Counts, f.counted)
		}
		if !near(p.Rate, f.rate) {
			c.find(ofTrial(f.trial, f.attempt), "charts have %.9g KB/s, by the journals it is %.9g", p.Rate/kilobyte, f.rate/kilobyte)
		}
	}
	for k := range points {
		c.find(ofTrial(k.trial, k.attempt), "charts have the attempt, the journal has not")
	}
}

func (a *auditor) checkSummary(c *Check, values []value) {
	names, by := a.summaries(values)
	shown := map[string]*TreatmentSummary{}
	for i := range a.run.Summary.Treatments {
		t := &a.run.Summary.Treatments[i]
		shown[t.Name] = t
	}
	for _, name := range names {
		c.Objects++
		s, t := by[name], shown[name]
		if t == nil {
			c.find(Finding{}, "pages do not show treatment %s", name)
			continue
		}
		if t.Planned != s.trials || t.Valid != s.valid || t.Failed != s.failed {
			c.find(Finding{}, "pages show %s with %d trials, %d valid and %d failed; by the journals it has %d, %d and %d", name,
				t.Planned, t.Valid, t.Failed, s.trials, s.valid, s.failed)
		}
		for _, x := range []struct {
			what        string
			shown, want float64
		}{{"average", t.Average, s.mean}, {"standard deviation", t.SD, s.sd}, {"minimum", t.Min, s.least}, {"maximum", t.Max, s.most}} {
			if !near(x.shown, orZero(x.want)) && math.Abs(x.shown-orZero(x.want)) > 1e-6*s.mean {
				c.find(Finding{}, "pages show the %s of %s as %.9g KB/s, by the journals it is %.9g", x.what, name, x.shown/kilobyte, x.want/kilobyte)
			}
		}
	}
}
