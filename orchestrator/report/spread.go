package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"linktrial/executor/runsheet"
	"linktrial/internal/stats"
	"linktrial/orchestrator/report/wording"
)

// Spreads are earlier runs, as the source of how much the ratio of two treatments varies
// from iteration to iteration.
type Spreads struct {
	name string                  // of the source, for people: "results.json", "this orchestrator"
	runs map[string][]earlierRun // by their cell ([cellOf])
}

// earlierRun is a run with what is looked up in it.
type earlierRun struct {
	run  *Run
	rows map[string]string // name in the sheet, by what the trials carry ([carries])
}

// spread is how much the ratio of two treatments varies.
type spread struct {
	log float64 // standard deviation of the logarithm of the ratio in one iteration
	// pairs of so many iterations had valid trials of both; without a source 1 of 1.
	pairs, iterations int
	from              string // for people; empty: there is no source
	failing           bool   // assumed, because too few trials of the source are valid
}

// errFewValid is of a pair of treatments that were compared and failed too often.
var errFewValid = fmt.Errorf("has fewer than %d iterations in which both are valid", minPairs)

// SpreadsOf takes earlier runs as a source, the newest first. Runs over a radio that
// nobody has named are left out: what they used need not be what the plan says.
func SpreadsOf(name string, runs []*Run) *Spreads {
	s := &Spreads{name: name, runs: map[string][]earlierRun{}}
	for _, r := range runs {
		if r.Sheet == nil || r.Unnamed() {
			continue
		}
		e := earlierRun{r, map[string]string{}}
		for _, t := range treatments(&Run{Sheet: r.Sheet}) {
			if t.Missing == "" {
				e.rows[carries(r.Sheet, t.Name)] = t.Name
			}
		}
		cell := cellOf(&r.Sheet.Cell)
		s.runs[cell] = append(s.runs[cell], e)
	}
	return s
}

// ReadSpreads takes the runs of a JSON export as a source, by the file's name.
func ReadSpreads(name string, b []byte) (*Spreads, error) {
	ds, err := ReadJSON(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, unreadable(b, err))
	}
	if len(ds.Runs) == 0 {
		return nil, fmt.Errorf("%s: expected results with a run at least, found none", name)
	}
	runs := make([]*Run, len(ds.Runs))
	for i := range ds.Runs {
		runs[i] = &ds.Runs[i]
	}
	return SpreadsOf(name, runs), nil
}

// of is the spread of two treatments of a sheet in all runs of its cell that have both, at
// the place of the first of them: each run's own variance, weighted by its degrees of
// freedom. An error says why there is none.
func (s *Spreads) of(sheet *runsheet.Sheet, reference, treatment string) (spread, error) {
	carried, other := carries(sheet, reference), carries(sheet, treatment)
	var out spread
	var squares, degrees float64
	var place string
	var ids []string
	runs := s.runs[cellOf(&sheet.Cell)]
	for _, e := range runs {
		a, b := e.rows[carried], e.rows[other]
		if a == "" || b == "" || len(ids) > 0 && e.run.Place != place {
			continue
		}
		ids, place = append(ids, e.run.ID), e.run.Place
		pairs, iterations := pairsOf(e.run, a, b)
		out.pairs, out.iterations = out.pairs+len(pairs), out.iterations+iterations
		if sd, free := stats.RatioSpread(pairs), float64(len(pairs)-1); free > 0 {
			squares, degrees = squares+free*sd*sd, degrees+free
		}
	}
	switch {
	case len(runs) == 0:
		return out, fmt.Errorf("%s has no run of its radio, topology, size and settings", s.name)
	case len(ids) == 0:
		return out, fmt.Errorf("%s has no run of it with both treatments", s.name)
	case out.pairs < minPairs || degrees == 0:
		return out, fmt.Errorf("%s %w", s.name, errFewValid)
	case math.IsNaN(squares): // nothing was delivered in the common time of several flows
		return out, fmt.Errorf("%s has a throughput of 0, whose ratio has no logarithm", s.name)
	}
	out.log = math.Sqrt(squares / degrees)
	out.from = fmt.Sprintf("%s of %s, %s", wording.Plural(out.pairs, "iteration", "iterations"), runNames(ids), place)
	return out, nil
}

// mostNamed bounds how many runs a text names.
const mostNamed = 3

func runNames(ids []string) string {
	if len(ids) > mostNamed {
		return wording.Plural(len(ids), "run", "runs")
	}
	word := "run "
	if len(ids) > 1 {
		word = "runs "
	}
	return word + wording.Clean(strings.Join(ids, ", "))
}

// pairsOf are the throughputs of two treatments by iteration, and in how many iterations
// trials of both have ended.
func pairsOf(r *Run, reference, treatment string) (pairs []stats.Pair, iterations int) {
	var trials [2][]*Trial
	var ended [2]map[int]bool
	for k, name := range []string{reference, treatment} {
		ended[k] = map[int]bool{}
		for i := range r.Trials {
			if t := &r.Trials[i]; t.Treatment == name && !r.NotNeeded(t) {
				trials[k] = append(trials[k], t)
				if t.Verdict != "" {
					ended[k][t.Iteration] = true
				}
			}
		}
	}
	for i := range ended[0] {
		if ended[1][i] {
			iterations++
		}
	}
	a, b := takeSample(r, trials[0]), takeSample(r, trials[1])
	pairs = stats.PairUp(a.by(rateOf), b.by(rateOf))
	return pairs, max(iterations, len(pairs))
}

// cellOf is a cell by its radio, topology, size and settings of sweeps, whatever the axes
// and groups are called.
func cellOf(c *runsheet.Cell) string {
	settings := make([]string, len(c.Settings))
	for i, s := range c.Settings {
		settings[i] = fmt.Sprintf("%q=%q", s.Parameter, s.Value)
	}
	slices.Sort(settings)
	return fmt.Sprintf("%q %q %d %s", c.Radio, c.Topology, c.SizeBytes, strings.Join(settings, " "))
}

// carries is what the trials of a treatment or mix carry, whatever it is called: the same
// text where two sheets have the same flows and probes of the same treatments. Versions of
// drivers do not count, nor do the random times of flows that go on and off.
func carries(s *runsheet.Sheet, name string) string {
	i := slices.IndexFunc(s.Trials, func(t runsheet.Trial) bool { return t.Treatment == name })
	if i < 0 {
		return "none of " + name // missing
	}
	var parts []string
	for _, f := range s.Trials[i].Carried() {
		part := fmt.Sprintf("%s %s %s %d %s", contents(s.Treatment(f.Treatment)), f.From, f.To, f.SizeBytes, f.Duration)
		if f.Session > 0 {
			part = fmt.Sprintf("%s %s %s session %d", contents(s.Treatment(f.Treatment)), f.From, f.To, f.Session)
		}
		if f.Session == 0 || !slices.Contains(parts, part) {
			parts = append(parts, part)
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, "\n")
}

// contents is what a treatment is, without its names, ports, versions and digests.
func contents(t *runsheet.Treatment) string {
	if t == nil {
		return "unknown"
	}
	c := *t
	c.Name, c.Label, c.DriverVersion, c.Digests, c.Port = "", "", "", nil, 0
	c.Via = slices.Clone(t.Via)
	for i := range c.Via {
		c.Via[i].DriverVersion, c.Via[i].Digests, c.Via[i].Port = "", nil, 0
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(c); err != nil {
		return t.Name // options that no sheet can have
	}
	return b.String()
}
