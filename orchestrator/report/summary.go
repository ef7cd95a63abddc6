package report

import (
	"cmp"
	"math"
	"slices"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/stats"
	"linktrial/internal/unit"
	"linktrial/orchestrator/plan"
)

// precision is the relative half-width of the average's interval that
// MoreIterations is about.
const precision = 0.05

// summarizeRun makes a run's table. A reference is the treatment that the others are held
// against where the run has it; bootstrap asks for the intervals that take longer than
// all else.
func summarizeRun(r *Run, published []PublishedRow, reference string, bootstrap bool) summarised {
	t := RunTable{Rows: []Row{}, Run: r.ID, State: r.State, Message: r.Message, Place: r.Place, SheetHash: r.SheetHash, Imported: r.Imported, Partial: r.State != "completed"}
	var seed uint64
	if s := r.Sheet; s != nil {
		seed = s.Seed
		t.Radio, t.RadioTitle = s.Cell.Radio, cmp.Or(s.Radio.Title, s.Cell.Radio)
		t.Topology, t.TopologyTitle = s.Cell.Topology, cmp.Or(s.Topology.Title, s.Cell.Topology)
		t.SizeBytes, t.Iterations, t.Order = s.Cell.SizeBytes, s.Iterations(), s.Order
		t.Group, t.Settings = s.Cell.Group, s.Cell.Label
		t.RadioTitle = r.radioCalled(t.RadioTitle)
		if !r.Unnamed() {
			t.BandwidthBitsPerSecond = bandwidth(s)
		}
	}
	byTreatment, notNeeded := map[string][]*Trial{}, map[string]int{}
	for i := range r.Trials {
		t := &r.Trials[i]
		if r.NotNeeded(t) {
			notNeeded[t.Treatment]++
			continue
		}
		byTreatment[t.Treatment] = append(byTreatment[t.Treatment], t)
	}
	var samples []sample
	for _, treatment := range treatments(r) {
		s := takeSample(r, byTreatment[treatment.Name])
		row := Row{Treatment: treatment.Name, Label: cmp.Or(treatment.Label, treatment.Name), Protocol: treatment.Protocol, Via: passes(&treatment), Missing: treatment.Missing, NotNeeded: notNeeded[treatment.Name]}
		s.fill(&row, t.BandwidthBitsPerSecond)
		if bootstrap {
			row.BootstrapCI = interval(stats.Bootstrap{Seed: seed, Stream: stream(treatment.Name)}.Mean(s.values(rateOf), level))
		}
		s.fillFlows(&row, r.Sheet)
		s.fillDelivery(&row)
		if p := slices.IndexFunc(published, func(p PublishedRow) bool {
			return !r.Unnamed() && p.Radio == t.Radio && p.Topology == t.Topology && p.Treatment == row.Treatment &&
				(p.Group == "" || p.Group == t.Group) && plan.Meets(&r.Sheet.Cell, p.Where)
		}); p >= 0 {
			row.Published = beside(published[p], &row)
		}
		if row.Missing == "" && (t.Reference == "" || reference == row.Treatment) {
			t.Reference = row.Treatment
		}
		t.Partial = t.Partial || row.NotEnded > 0
		samples, t.Rows = append(samples, s), append(t.Rows, row)
	}
	compareRows(&t, samples)
	if t.Stopping = r.stopping(&t, samples); t.Stopping != nil {
		t.leaveOutFixed()
		t.Conclusion, t.Lead = concludeStopping(&t)
	} else {
		t.Conclusion, t.Lead = conclude(&t, samples, r.isMix)
	}
	if r.Unnamed() && t.Conclusion != "" {
		t.Conclusion += " The radio is a " + journal.PlaceUnnamed + "."
		t.Lead.Text += " (" + journal.PlaceUnnamed + ")"
	}
	if t.Stopping != nil {
		t.Notes = stopNotes(&t)
	}
	t.Notes = append(t.Notes, blockNotes(r, &t, samples)...)
	t.BoundsUnknown = r.boundsUnknown()
	t.ControlNote = r.controlNote()
	t.HostNote = r.hostNote()
	if t.Probes = probeRows(r); len(t.Probes) > 0 {
		t.ProbeClock = &r.ProbeClock
		t.Partial = t.Partial || slices.ContainsFunc(t.Probes, func(p ProbeRow) bool { return p.open() })
	}
	if t.Has(func(row *Row) bool { return row.OverTCP() }) {
		t.Baseline = r.baseline()
	}
	t.addRFC6349(r)
	t.Requirements = r.judge(&t, samples)
	return summarised{run: r, axes: r.Axes(), table: t, samples: samples}
}

// treatments are those of the sheet that have trials of their own or are
// missing, then its mixes; trials of none, or without a sheet, add theirs.
func treatments(r *Run) []runsheet.Treatment {
	var out []runsheet.Treatment
	known := map[string]bool{}
	add := func(t runsheet.Treatment) {
		known[t.Name] = true
		out = append(out, t)
	}
	if s := r.Sheet; s != nil {
		own := map[string]bool{}
		for i := range s.Trials {
			own[s.Trials[i].Treatment] = true
		}
		for _, t := range s.Treatments {
			switch beside := len(s.Mixes) > 0 || hasProbes(s); {
			case t.Probe && t.Missing == "":
				known[t.Name] = true // in a table of its own
			case t.Missing != "" || !beside || own[t.Name]:
				add(t)
			}
		}
		for _, m := range s.Mixes {
			add(runsheet.Treatment{Name: m.Name, Label: m.Label, Missing: m.Missing})
		}
	}
	for i := range r.Trials {
		if name := r.Trials[i].Treatment; !known[name] {
			add(runsheet.Treatment{Name: name})
		}
	}
	return out
}

func hasProbes(s *runsheet.Sheet) bool {
	return slices.ContainsFunc(s.Trials, func(t runsheet.Trial) bool { return len(t.Probes) > 0 })
}

// bandwidth is the rate of the slowest hop from client to server.
func bandwidth(s *runsheet.Sheet) *float64 {
	if s.Network == nil {
		return nil
	}
	route := s.Network.Route(radio.RoleClient, radio.RoleServer)
	slowest := math.Inf(1)
	for i := 1; i < len(route); i++ {
		for _, l := range s.Network.Links {
			if l.A == route[i] && l.B == route[i-1] || l.B == route[i] && l.A == route[i-1] {
				slowest = min(slowest, l.RateBitsPerSecond)
			}
		}
	}
	if math.IsInf(slowest, 1) {
		return nil
	}
	return Rounded(slowest)
}

func (s *sample) fill(row *Row, bandwidth *float64) {
	rates := s.values(rateOf)
	row.Trials, row.Valid, row.Failed, row.Excluded, row.NotEnded = s.trials, len(s.valid), s.failed, s.excluded, s.notEnded
	row.ExtraAttempts, row.Failures = s.extra, s.failures
	if ended := row.Valid + row.Failed; ended > 0 {
		row.FailedShare = Rounded(float64(row.Failed) / float64(ended))
		row.FailedCI = interval(stats.Wilson(row.Failed, ended, level))
	}
	d := stats.Describe(rates)
	row.AverageKBps, row.MaxKBps, row.MinKBps, row.SDKBps, row.MedianKBps = Rounded(d.Mean), Rounded(d.Max), Rounded(d.Min), Rounded(d.SD), Rounded(d.Median)
	for _, p := range []struct {
		value **float64
		share float64
	}{{&row.P05KBps, 5}, {&row.P25KBps, 25}, {&row.P75KBps, 75}, {&row.P95KBps, 95}} {
		*p.value = Rounded(stats.Percentile(rates, p.share))
	}
	row.AverageKbitPS, row.AverageMbitPS = Rounded(d.Mean*8*unit.KB/1e3), Rounded(d.Mean*8*unit.KB/1e6)
	row.MeanCI = meanInterval(rates)
	mean := func(of func(*observation) float64) *float64 { return Rounded(stats.Mean(s.values(of))) }
	row.ElapsedSeconds, row.ConnectSeconds = mean(elapsedOf), mean(connectOf)
	row.ShareOfIdeal, row.ShareOfCodedBound = mean(shareOf(idealOf)), mean(shareOf(codedOf))
	row.IdealKBps, row.CodedBoundKBps = Rounded(s.meanOfAll(boundRateOf(idealTransferOf))), Rounded(s.meanOfAll(boundRateOf(codedTransferOf)))
	row.Retransmits, row.Timeouts = mean(retransmitsOf), mean(timeoutsOf)
	if bandwidth != nil {
		row.Normalised = Rounded(stats.NormalisedThroughput(d.Mean*unit.KB, *bandwidth))
	}
	if n, ok := stats.Iterations(rates, level, precision); ok {
		more := max(0, n-len(rates))
		row.MoreIterations = &more
	}
}

// fillFlows is about trials of several flows.
func (s *sample) fillFlows(row *Row, sheet *runsheet.Sheet) {
	for i := range s.valid {
		row.Flows = max(row.Flows, len(s.valid[i].flows))
	}
	if row.Flows < 2 {
		row.Flows = 0
		return
	}
	all := s.values(flowOf(""))
	row.FlowKBps, row.FlowCI = Rounded(stats.Mean(all)), meanInterval(all)
	row.Jain = Rounded(stats.Mean(s.values(jainOf)))
	var names []string
	count := map[string]int{}
	for _, f := range s.valid[0].flows {
		if count[f.treatment]++; count[f.treatment] == 1 {
			names = append(names, f.treatment)
		}
	}
	if len(names) < 2 {
		return
	}
	for _, name := range names {
		xs := s.values(flowOf(name))
		label := name
		if sheet != nil {
			label = sheet.Label(name)
		}
		row.Parts = append(row.Parts, FlowShare{Treatment: name, Label: label, Flows: count[name],
			AverageKBps: Rounded(stats.Mean(xs)), CI: meanInterval(xs)})
	}
}

func compareRows(t *RunTable, samples []sample) {
	ref := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Treatment == t.Reference })
	if ref < 0 {
		return
	}
	compareDeliveries(t, samples, ref)
	var rows []*Row
	var ps []float64
	rates, times, wholes := samples[ref].by(rateOf), samples[ref].by(elapsedOf), samples[ref].by(wholeOf)
	for i := range t.Rows {
		pairs := stats.PairUp(rates, samples[i].by(rateOf))
		if i == ref || len(pairs) < minPairs {
			continue
		}
		c := stats.Compare(pairs, level)
		gain := stats.RatioOfMeans(stats.PairUp(times, samples[i].by(elapsedOf)))
		whole := stats.RatioOfMeans(stats.PairUp(wholes, samples[i].by(wholeOf)))
		percent := func(ratio float64) float64 { return stats.GainPercent(1, ratio) }
		row := &t.Rows[i]
		row.Comparison = &Comparison{
			Reference: t.Reference, Pairs: c.Pairs,
			DifferenceKBps: Rounded(c.Difference), DifferenceCI: interval(c.DifferenceInterval), DifferenceP: Rounded(c.DifferenceP),
			Ratio: Rounded(c.Ratio), RatioCI: interval(c.RatioInterval),
			GainPercent: Rounded(percent(gain.Ratio)), GainWholePercent: Rounded(percent(whole.Ratio)),
			GainCI: interval(stats.OfMean(percent(gain.Ratio), 1e4*gain.Variance, float64(gain.Pairs-1), level)),
			W:      Rounded(c.Wilcoxon.Statistic()), P: Rounded(c.RatioP), Exact: c.RatioExact,
			RankBiserial: Rounded(c.Wilcoxon.RankBiserial),
		}
		rows, ps = append(rows, row), append(ps, c.RatioP)
	}
	for i, p := range stats.Holm(ps) {
		rows[i].Comparison.PHolm = Rounded(p)
	}
}

func beside(p PublishedRow, row *Row) *Published {
	off := func(published float64, ours *float64) *float64 {
		if ours == nil {
			return nil
		}
		return Rounded(stats.DeviationPercent(published, *ours))
	}
	return &Published{
		PublishedRow: p,
		AvgDeviation: off(p.AvgKBps, row.AverageKBps), MaxDeviation: off(p.MaxKBps, row.MaxKBps),
		MinDeviation: off(p.MinKBps, row.MinKBps), SDDeviation: off(p.SDKBps, row.SDKBps),
	}
}
