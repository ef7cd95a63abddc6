package report

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"strconv"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/internal/radio"
	"linktrial/internal/unit"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/stats"
)

const (
	level = 0.95 // of every interval in a report
	// minPairs is the fewest iterations that a comparison is made of.
	minPairs = 3
	// precision is the relative half-width of the average's interval that
	// MoreIterations is about.
	precision = 0.05
)

// RunTable is one run summarised, a row a treatment. Throughputs are in KB/s,
// 1 KB being 1024 bytes; every interval has a level of 95 %. A nil figure has
// no value.
type RunTable struct {
	Run           string `json:"run"`
	State         string `json:"state"`
	Message       string `json:"message,omitempty"`
	Place         string `json:"place"`
	Radio         string `json:"radio"`
	RadioTitle    string `json:"radio_title"`
	Topology      string `json:"topology"`
	TopologyTitle string `json:"topology_title"`
	SizeBytes     int64  `json:"size_bytes"`         // of one transfer
	Group         string `json:"group,omitempty"`    // of the plan's groups
	Settings      string `json:"settings,omitempty"` // what the plan's sweep has set, for people
	Iterations    int    `json:"iterations"`
	Order         string `json:"order"`
	SheetHash     string `json:"sheet_hash"`
	// Imported is where the run comes from, if another orchestrator measured it.
	Imported *Import `json:"imported,omitempty"`
	// Partial: the run was not completed, or trials of it have not ended.
	Partial bool `json:"partial"`
	// Reference is the treatment that the others are held against: the first
	// that is not missing.
	Reference string `json:"reference"`
	// referenceLabel is set where the rows do not have the reference.
	referenceLabel string
	// leftOutNotEnded are the trials of rows that were left out, of the run all the same.
	leftOutNotEnded int
	// Bandwidth is the rate of the slowest hop on the way of the data, as emulated.
	BandwidthBitsPerSecond *float64 `json:"bandwidth_bits_per_second,omitempty"`
	Rows                   []Row    `json:"rows"`
	// Conclusion is a sentence for people: which treatment leads the next one, by how
	// much, and whether the trials decide it; empty: fewer than two have figures.
	Conclusion string `json:"conclusion,omitempty"`
	Lead       Lead   `json:"-"` // the conclusion has it with its statistics
	// Probes are apart from the treatments that are compared.
	Probes     []ProbeRow  `json:"probes,omitempty"`
	ProbeClock *ProbeClock `json:"probe_clock,omitempty"`
	// BoundsUnknown is why transfers on emulated radios have no share of Ideal and of
	// the coded bound, a sentence; empty: they have, or nobody expects it.
	BoundsUnknown string `json:"bounds_unknown,omitempty"`
	// ControlNote is a sentence about the control packets during attempts that count; empty:
	// control is not in-band.
	ControlNote string `json:"control_note,omitempty"`
	// HostNote is a sentence about attempts that count and ran on a starved node; empty:
	// there are none.
	HostNote string `json:"host_note,omitempty"`
}

// Row is one treatment in one run. A trial is valid where its last attempt
// succeeded and the server's digest of the payload was the client's.
type Row struct {
	Treatment string `json:"treatment"`
	Label     string `json:"label"`
	Protocol  string `json:"protocol"`
	// Via is the relay processes that its flows pass, for people: "split 1.0.0 at the relay".
	Via     string `json:"via,omitempty"`
	Missing string `json:"missing,omitempty"` // why the treatment could not be run

	Trials        int       `json:"trials"` // of the sheet
	Valid         int       `json:"valid"`
	Failed        int       `json:"failed"`
	Excluded      int       `json:"excluded"` // ended without an outcome of the protocol
	NotEnded      int       `json:"not_ended"`
	ExtraAttempts int       `json:"extra_attempts"` // beyond the first of each trial
	Failures      []Failure `json:"failures,omitempty"`
	FailedShare   *float64  `json:"failed_share"`      // of the valid and the failed trials
	FailedCI      *Range    `json:"failed_share_ci95"` // Wilson

	AverageKBps *float64 `json:"average_kb_per_s"`
	MaxKBps     *float64 `json:"max_kb_per_s"`
	MinKBps     *float64 `json:"min_kb_per_s"`
	SDKBps      *float64 `json:"sd_kb_per_s"` // sample, n−1
	MedianKBps  *float64 `json:"median_kb_per_s"`
	MeanCI      *Range   `json:"average_ci95_kb_per_s"`           // Student's t
	BootstrapCI *Range   `json:"average_bootstrap_ci95_kb_per_s"` // BCa; all resamples, or 10 000 seeded ones
	// Percentiles, interpolated between the two nearest trials.
	P05KBps *float64 `json:"p05_kb_per_s"`
	P25KBps *float64 `json:"p25_kb_per_s"`
	P75KBps *float64 `json:"p75_kb_per_s"`
	P95KBps *float64 `json:"p95_kb_per_s"`

	ElapsedSeconds *float64 `json:"elapsed_mean_s"`
	ConnectSeconds *float64 `json:"connect_mean_s"`
	// ShareOfIdeal is the mean over the valid trials of Ideal's time over the
	// time from the first connect attempt to the acknowledgement: Ideal's clock
	// starts with the channel's, before the connect.
	ShareOfIdeal *float64 `json:"share_of_ideal"`
	// ShareOfCodedBound is the same of the coded bound.
	ShareOfCodedBound *float64 `json:"share_of_coded_bound"`
	// IdealKBps and CodedBoundKBps are the means over the same trials as the average
	// of what the bounds would have reached by the transfer's clock ([Limits]); nil
	// where they are not known of all of these trials.
	IdealKBps      *float64 `json:"ideal_kb_per_s"`
	CodedBoundKBps *float64 `json:"coded_bound_kb_per_s"`
	// Normalised is the average throughput over the bandwidth (decola-2006).
	Normalised *float64 `json:"normalised_throughput"`
	// MoreIterations is how many further ones would bring the average's interval
	// within 5 % to each side, were it to stay as it is.
	MoreIterations *int `json:"more_iterations_for_5_percent"`

	AverageKbitPS *float64 `json:"average_kbit_per_s"` // thousands of bits
	AverageMbitPS *float64 `json:"average_mbit_per_s"` // millions of bits
	// Retransmits and Timeouts are means over the valid trials that count them.
	Retransmits *float64 `json:"retransmits_mean"`
	Timeouts    *float64 `json:"timeouts_mean"`
	// Of trials of several flows: the mean throughput of a flow, Jain's index
	// among them, and each treatment's flows apart where they mix.
	Flows    int         `json:"flows,omitempty"` // of one trial; on/off sources count once
	FlowKBps *float64    `json:"flow_average_kb_per_s,omitempty"`
	FlowCI   *Range      `json:"flow_average_ci95_kb_per_s,omitempty"`
	Jain     *float64    `json:"jain_index,omitempty"`
	Parts    []FlowShare `json:"parts,omitempty"`

	Comparison *Comparison `json:"comparison,omitempty"`
	Published  *Published  `json:"published,omitempty"`
}

// FlowShare is one treatment's flows in trials of several treatments.
type FlowShare struct {
	Treatment   string   `json:"treatment"`
	Label       string   `json:"label"`
	Flows       int      `json:"flows"` // of one trial
	AverageKBps *float64 `json:"flow_average_kb_per_s"`
	CI          *Range   `json:"flow_average_ci95_kb_per_s"`
}

// Failure counts attempts that gave no valid figure, by what ended them.
type Failure struct {
	Verdict  journal.Verdict `json:"verdict"`
	Reason   string          `json:"reason,omitempty"`
	Attempts int             `json:"attempts"`
}

// Range is an interval, both ends included.
type Range struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Comparison holds a treatment against the reference, over the iterations in
// which both are valid.
type Comparison struct {
	Reference      string   `json:"reference"`
	Pairs          int      `json:"pairs"`
	DifferenceKBps *float64 `json:"difference_kb_per_s"`
	DifferenceCI   *Range   `json:"difference_ci95_kb_per_s"`
	// DifferenceP is of the test that DifferenceCI inverts, Student's for pairs.
	DifferenceP *float64 `json:"difference_t_p"`
	// Ratio is the estimate of Hodges and Lehmann; RatioCI inverts the signed-rank
	// test that W, P and RankBiserial are of. There is none of fewer than six pairs.
	Ratio   *float64 `json:"ratio"`
	RatioCI *Range   `json:"ratio_ci95"`
	// GainPercent is how much less time than the reference's the transfers took
	// on average (decola-2006, equation 8).
	GainPercent *float64 `json:"gain_percent"`
	GainCI      *Range   `json:"gain_ci95_percent"`
	// GainWholePercent is the same of connecting and transferring together.
	GainWholePercent *float64 `json:"gain_with_connect_percent"`
	W                *float64 `json:"wilcoxon_w"`
	P                *float64 `json:"wilcoxon_p"`      // two-sided
	PHolm            *float64 `json:"wilcoxon_p_holm"` // corrected for the comparisons of the run
	Exact            bool     `json:"wilcoxon_exact"`
	RankBiserial     *float64 `json:"rank_biserial"`
}

// Published is a published result and how far ours is from it, in percent of it.
type Published struct {
	PublishedRow
	AvgDeviation *float64 `json:"average_deviation_percent"`
	MaxDeviation *float64 `json:"max_deviation_percent"`
	MinDeviation *float64 `json:"min_deviation_percent"`
	SDDeviation  *float64 `json:"sd_deviation_percent"`
}

func summarizeRun(r *Run, published []PublishedRow, o Options) summarised {
	t := RunTable{Rows: []Row{}, Run: r.ID, State: r.State, Message: r.Message, Place: r.Place, SheetHash: r.SheetHash, Imported: r.Imported, Partial: r.State != "completed"}
	var seed uint64
	if s := r.Sheet; s != nil {
		seed = s.Seed
		t.Radio, t.RadioTitle = s.Cell.Radio, cmp.Or(s.Radio.Title, s.Cell.Radio)
		t.Topology, t.TopologyTitle = s.Cell.Topology, cmp.Or(s.Topology.Title, s.Cell.Topology)
		t.SizeBytes, t.Iterations, t.Order = s.Cell.SizeBytes, s.Iterations(), s.Order
		t.Group, t.Settings = s.Cell.Group, s.Cell.Label
		t.BandwidthBitsPerSecond = bandwidth(s)
		t.RadioTitle = r.radioCalled(t.RadioTitle)
		if r.Unnamed() {
			t.BandwidthBitsPerSecond = nil
		}
	}
	byTreatment := map[string][]*Trial{}
	for i := range r.Trials {
		tr := &r.Trials[i]
		byTreatment[tr.Treatment] = append(byTreatment[tr.Treatment], tr)
	}
	var samples []sample
	for _, treatment := range treatments(r) {
		s := takeSample(r, byTreatment[treatment.Name])
		row := Row{Treatment: treatment.Name, Label: cmp.Or(treatment.Label, treatment.Name), Protocol: treatment.Protocol, Via: passes(&treatment), Missing: treatment.Missing}
		s.fill(&row, t.BandwidthBitsPerSecond)
		if o.Bootstrap {
			row.BootstrapCI = interval(stats.Bootstrap{Seed: seed, Stream: stream(treatment.Name)}.Mean(s.values(rateOf), level))
		}
		s.fillFlows(&row, r.Sheet)
		if p := slices.IndexFunc(published, func(p PublishedRow) bool {
			return !r.Unnamed() && p.Radio == t.Radio && p.Topology == t.Topology && p.Treatment == row.Treatment &&
				(p.Group == "" || p.Group == t.Group) && plan.Meets(&r.Sheet.Cell, p.Where)
		}); p >= 0 {
			row.Published = beside(published[p], &row)
		}
		if row.Missing == "" && (t.Reference == "" || o.Reference == row.Treatment) {
			t.Reference = row.Treatment
		}
		t.Partial = t.Partial || row.NotEnded > 0
		samples, t.Rows = append(samples, s), append(t.Rows, row)
	}
	compareRows(&t, samples)
	t.Conclusion, t.Lead = conclude(&t, samples, r.isMix)
	if r.Unnamed() && t.Conclusion != "" {
		t.Conclusion += " The radio is a " + journal.PlaceUnnamed + "."
		t.Lead.Text += " (" + journal.PlaceUnnamed + ")"
	}
	t.BoundsUnknown = r.boundsUnknown()
	t.ControlNote = r.controlNote()
	t.HostNote = r.hostNote()
	if t.Probes = probeRows(r); len(t.Probes) > 0 {
		t.ProbeClock = &r.ProbeClock
		for i := range t.Probes {
			ended := t.Probes[i].Measured
			for _, f := range t.Probes[i].Failures {
				ended += f.Attempts
			}
			t.Partial = t.Partial || ended < t.Probes[i].Trials
		}
	}
	return summarised{run: r, table: t, samples: samples}
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

// stream makes the resamples of treatments differ that share a run's seed.
func stream(treatment string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(treatment)) // a hash takes all
	return h.Sum64()
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
		figure **float64
		share  float64
	}{{&row.P05KBps, 5}, {&row.P25KBps, 25}, {&row.P75KBps, 75}, {&row.P95KBps, 95}} {
		*p.figure = Rounded(stats.Percentile(rates, p.share))
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

// Rounded rounds to nine significant digits, so that processors which fuse
// multiplication and addition write the same report; nil for what has no value.
func Rounded(x float64) *float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	r, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 9, 64), 64)
	if err != nil {
		return nil // rounding up left the range of numbers
	}
	r += 0 // no negative zero
	return &r
}

func meanInterval(xs []float64) *Range { return interval(stats.MeanInterval(xs, level)) }

func interval(i stats.Interval) *Range {
	low, high := Rounded(i.Low), Rounded(i.High)
	if low == nil || high == nil {
		return nil
	}
	return &Range{*low, *high}
}
