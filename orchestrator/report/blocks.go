package report

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"

	"linktrial/internal/stats"
	"linktrial/orchestrator/report/wording"
)

const (
	// found is the level at which a drift or a dependence is said.
	found = 0.01
	// leastDrift is a drift that matters, as a share: in virtual time smaller ones are found.
	leastDrift = 0.01
	// leastDependent is the fewest pairs whose dependence is judged: an interval of fewer
	// that allows for it excludes next to nothing.
	leastDependent = 10
	// mostChanges is of how many treatments a drift is said one by one.
	mostChanges = 4
	// leastOmnibus is the fewest treatments of which there are pairs to look for.
	leastOmnibus = 3
)

// blockNotes is what to know of a run's iterations, the blocks of its statistics, before pairs
// of treatments are read: whether treatments differ as a whole and, where it is found, a drift
// over the iterations and a dependence between them. Of a run that goes on these two are not
// looked for: who looks after every iteration finds them by chance more often than at the level.
func blockNotes(r *Run, t *RunTable, samples []sample) (notes []string) {
	seed := uint64(0)
	if r.Sheet != nil {
		seed = r.Sheet.Seed
	}
	add := func(note string) {
		if note != "" {
			notes = append(notes, note)
		}
	}
	if t.Stopping == nil { // its P is of a fixed number of iterations
		add(omnibus(t, samples, r.isMix, seed))
	}
	if r.underWay() {
		return notes
	}
	t.DriftNote = driftNote(t, samples, r.isMix, seed)
	add(t.DriftNote)
	return append(notes, dependenceNotes(t, samples, seed)...)
}

// equalsP is "p = 0.012" or "p < 0.001".
func equalsP(p float64) string {
	return "p " + strings.Replace("= "+wording.PValue(&p), "= <", "< ", 1)
}

// omnibus is Friedman's test over what the conclusion is over: the time to delivery where
// shares of failures differ, else throughput. Empty where there are fewer than three treatments
// with values, or three iterations in which all of them have one.
func omnibus(t *RunTable, samples []sample, isMix func(string) bool, seed uint64) string {
	rows, of := ranked(t, isMix), ""
	values := func(i int) map[int]float64 { return samples[i].by(rateOf) }
	if soon := soonest(t, isMix); len(soon) > 1 && failuresDiffer(t, soon) {
		rows, of = soon, "time to delivery, "
		values = func(i int) map[int]float64 { return samples[i].restricted() }
	}
	if len(rows) < leastOmnibus {
		return ""
	}
	slices.Sort(rows)
	f := stats.FriedmanTest(blocksOf(rows, values), seed)
	if f.Blocks < minPairs || math.IsNaN(f.P) {
		return ""
	}
	by := fmt.Sprintf("(Friedman, %s%s, %d iterations)", of, equalsP(f.P), f.Blocks)
	so := map[bool]string{true: "So far: "}[t.Partial]
	if f.P < 1-level {
		return wording.Sentence(fmt.Sprintf("%sthe %d treatments differ as a whole %s.", so, f.Treatments, by))
	}
	pairs := map[bool]string{true: "of pairs other than the decided one", false: "of pairs"}[t.Lead.Decided]
	return wording.Sentence(fmt.Sprintf("%sno difference of the %d treatments as a whole is found %s: differences %s may be chance.", so, f.Treatments, by, pairs))
}

// blocksOf is the values of the iterations in which all rows have one.
func blocksOf(rows []int, values func(row int) map[int]float64) (blocks [][]float64) {
	all := make([]map[int]float64, len(rows))
	for k, i := range rows {
		all[k] = values(i)
	}
iterations:
	for _, iteration := range slices.Sorted(maps.Keys(all[0])) {
		block := make([]float64, len(all))
		for k, of := range all {
			x, has := of[iteration]
			if !has {
				continue iterations
			}
			block[k] = x
		}
		blocks = append(blocks, block)
	}
	return blocks
}

// levels are how far the throughput of iterations is from what it is on average, as a natural
// logarithm: the mean over the treatments that have a value, each relative to its own mean.
// Iterations in which fewer than half of them have one are left out. Which treatments have
// one belongs to the iteration, so that without a drift iterations can be exchanged.
func levels(rows []int, samples []sample) (iterations []int, values []float64) {
	offs := map[int][]float64{}
	for _, i := range rows {
		logs := make([]float64, len(samples[i].valid))
		for k := range logs {
			logs[k] = math.Log(samples[i].valid[k].kbps)
		}
		mean := stats.Mean(logs)
		for k, x := range logs {
			iteration := samples[i].valid[k].iteration
			offs[iteration] = append(offs[iteration], x-mean)
		}
	}
	for _, iteration := range slices.Sorted(maps.Keys(offs)) {
		if 2*len(offs[iteration]) >= len(rows) {
			// Values that are one but for the last digits must be ties.
			iterations, values = append(iterations, iteration), append(values, math.Round(1e9*stats.Mean(offs[iteration]))/1e9)
		}
	}
	return iterations, values
}

// driftNote says whether throughput changed over the iterations; empty: that is not found.
func driftNote(t *RunTable, samples []sample, isMix func(string) bool, seed uint64) string {
	rows := ranked(t, isMix)
	slices.Sort(rows)
	iterations, values := levels(rows, samples)
	d := stats.DriftOf(values, seed)
	ratio := math.Exp(d.Change)
	if !(d.P() <= found) || math.Abs(ratio-1) < leastDrift {
		return ""
	}
	by := strings.TrimLeft(wording.Change(ratio), "+−")
	lower, fell := "lower", "fell"
	if ratio > 1 {
		lower, fell = "higher", "rose"
	}
	of := fmt.Sprintf("%s, %d iterations%s", equalsP(d.P()), d.N, changes(t, rows, samples, iterations[d.First-1], iterations[d.N-d.Last]))
	text, parts := fmt.Sprintf("Throughput %s over the iterations: in the last third it is %s %s than in the first (Kendall's τ = %s, %s).", fell, by, lower, signed(d.Tau), of), "all of it"
	if d.Sudden {
		text, parts = fmt.Sprintf("From iteration %d on, throughput is %s %s than before (%s).", iterations[d.After], by, lower, of), "both parts"
	}
	if len(rows) < 2 {
		return text + " The average is of " + parts + "."
	}
	return text + " Averages are of " + parts + "; pairs, each of one iteration, stay comparable where treatments changed alike."
}

// changes are those of each treatment, from the iterations up to one to those from another on;
// of many treatments only the least and the largest. Empty where there is one treatment.
func changes(t *RunTable, rows []int, samples []sample, until, from int) string {
	type change struct {
		label string
		by    float64
	}
	var all []change
	for _, i := range rows {
		var first, last []float64
		for _, o := range samples[i].valid {
			switch {
			case o.iteration <= until:
				first = append(first, o.kbps)
			case o.iteration >= from:
				last = append(last, o.kbps)
			}
		}
		if ratio := stats.Median(last) / stats.Median(first); ratio > 0 {
			all = append(all, change{wording.Clean(t.Rows[i].Label), ratio})
		}
	}
	if len(all) < 2 {
		return ""
	}
	if len(all) > mostChanges {
		slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(a.by, b.by) })
		all = []change{all[0], all[len(all)-1]}
	}
	parts := make([]string, len(all))
	for k, c := range all {
		parts[k] = c.label + " " + wording.Change(c.by)
	}
	return "; " + strings.Join(parts, ", ")
}

// signed is a correlation with the sign that prose has.
func signed(x float64) string { return strings.Replace(wording.Decimals(&x, 2), "-", "−", 1) }

// dependenceNotes says of which comparisons the ratios of neighbouring iterations are found to
// be alike, after Holm over the comparisons of the run, and gives intervals that allow for it.
func dependenceNotes(t *RunTable, samples []sample, seed uint64) (notes []string) {
	ref := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Treatment == t.Reference })
	if ref < 0 {
		return nil
	}
	var rows []int
	var judged []stats.Dependence
	var ps []float64
	for i := range t.Rows {
		if c := t.Rows[i].Comparison; c == nil || c.Pairs < leastDependent {
			continue
		}
		iterations, logs := logRatios(&samples[ref], &samples[i])
		d := stats.DependenceOf(iterations, logs, level, seed^stream(t.Rows[i].Treatment))
		rows, judged, ps = append(rows, i), append(judged, d), append(ps, d.P)
	}
	for k, p := range stats.Holm(ps) {
		if p <= found {
			notes = append(notes, dependent(&judged[k], p, wording.Clean(t.Rows[rows[k]].Label), wording.Clean(t.Rows[ref].Label)))
		}
	}
	return notes
}

// logRatios are those of throughputs, by iterations in which both have one.
func logRatios(reference, s *sample) (iterations []int, logs []float64) {
	of := reference.by(rateOf)
	for _, o := range s.valid { // in the order of the sheet
		if x, both := of[o.iteration]; both {
			iterations, logs = append(iterations, o.iteration), append(logs, math.Log(o.kbps/x))
		}
	}
	return iterations, logs
}

func dependent(d *stats.Dependence, p float64, label, reference string) string {
	text := fmt.Sprintf("Ratios of %s to %s in neighbouring iterations are alike (r = %s, %s), so that %d pairs count as about %.0f: the interval of this comparison is too narrow, and its p too small.",
		label, reference, signed(d.R), equalsP(p), d.N, max(1, d.Effective))
	ratio, low, high := math.Exp(d.Mean), math.Exp(d.Interval.Low), math.Exp(d.Interval.High)
	if !d.Interval.Defined() {
		return text
	}
	return text + fmt.Sprintf(" With an interval that allows for this, the mean ratio is %s (%s to %s at 95 %%).", wording.Number(&ratio), wording.Number(&low), wording.Number(&high))
}

// stream makes what is drawn of treatments differ that share a run's seed.
func stream(treatment string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(treatment)) // a hash takes all
	return h.Sum64()
}
