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
	SizeBytes     int64  `json:"size_bytes"` // of one transfer
	Iterations    int    `json:"iterations"`
	Order         string `json:"order"`
	SheetHash     string `json:"sheet_hash"`
	// Partial: the run was not completed, or trials of it have not ended.
	Partial bool `json:"partial"`
	// Reference is the treatment that the others are held against: the first
	// that is not missing.
	Reference string `json:"reference"`
	// Bandwidth is the rate of the slowest hop on the way of the data, as emulated.
	BandwidthBitsPerSecond *float64 `json:"bandwidth_bits_per_second,omitempty"`
	Rows                   []Row    `json:"rows"`
}

// Row is one treatment in one run. A trial is valid where its last attempt
// succeeded and the server's digest of the payload was the client's.
type Row struct {
	Treatment string `json:"treatment"`
	Label     string `json:"label"`
	Protocol  string `json:"protocol"`
	Missing   string `json:"missing,omitempty"` // why the treatment could not be run

	Trials        int       `json:"trials"` // of the sheet
	Valid         int       `json:"valid"`
	Failed        int       `json:"failed"`
	NotEnded      int       `json:"not_ended"`
	ExtraAttempts int       `json:"extra_attempts"` // beyond the first of each trial
	Failures      []Failure `json:"failures,omitempty"`
	FailedShare   *float64  `json:"failed_share"`      // of the ended trials
	FailedCI      *Range    `json:"failed_share_ci95"` // Wilson

	AverageKBps *float64 `json:"average_kb_per_s"`
	MaxKBps     *float64 `json:"max_kb_per_s"`
	MinKBps     *float64 `json:"min_kb_per_s"`
	SDKBps      *float64 `json:"sd_kb_per_s"` // sample, n−1
	MedianKBps  *float64 `json:"median_kb_per_s"`
	MeanCI      *Range   `json:"average_ci95_kb_per_s"`           // Student's t
	BootstrapCI *Range   `json:"average_bootstrap_ci95_kb_per_s"` // BCa, 10 000 resamples, seeded

	ElapsedSeconds *float64 `json:"elapsed_mean_s"`
	ConnectSeconds *float64 `json:"connect_mean_s"`
	// ShareOfIdeal is the mean over the valid trials of Ideal's time / elapsed.
	ShareOfIdeal *float64 `json:"share_of_ideal"`
	// Normalised is the average throughput over the bandwidth (decola-2006).
	Normalised *float64 `json:"normalised_throughput"`
	// MoreIterations is how many further ones would bring the average's interval
	// within 5 % to each side, were it to stay as it is.
	MoreIterations *int `json:"more_iterations_for_5_percent"`

	Comparison *Comparison `json:"comparison,omitempty"`
	Published  *Published  `json:"published,omitempty"`
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
	Ratio          *float64 `json:"ratio"` // geometric mean
	RatioCI        *Range   `json:"ratio_ci95"`
	// GainPercent is how much less time than the reference's the transfers took
	// on average (decola-2006).
	GainPercent  *float64 `json:"gain_percent"`
	W            *float64 `json:"wilcoxon_w"`
	P            *float64 `json:"wilcoxon_p"`      // two-sided
	PHolm        *float64 `json:"wilcoxon_p_holm"` // corrected for the comparisons of the run
	Exact        bool     `json:"wilcoxon_exact"`
	RankBiserial *float64 `json:"rank_biserial"`
}

// Published is a published result and how far ours lies from it, in percent of it.
type Published struct {
	PublishedRow
	AvgDeviation *float64 `json:"average_deviation_percent"`
	MaxDeviation *float64 `json:"max_deviation_percent"`
	MinDeviation *float64 `json:"min_deviation_percent"`
	SDDeviation  *float64 `json:"sd_deviation_percent"`
}

// Summarize makes a table of every run, in the order of the dataset.
func Summarize(ds *Dataset) []RunTable {
	tables := make([]RunTable, 0, len(ds.Runs))
	for i := range ds.Runs {
		tables = append(tables, summarizeRun(&ds.Runs[i], ds.Published))
	}
	return tables
}

func summarizeRun(r *Run, published []PublishedRow) RunTable {
	t := RunTable{Run: r.ID, State: r.State, Message: r.Message, Place: r.Place, SheetHash: r.SheetHash, Partial: r.State != "completed"}
	var seed uint64
	if s := r.Sheet; s != nil {
		seed = s.Seed
		t.Radio, t.RadioTitle = s.Cell.Radio, cmp.Or(s.Radio.Title, s.Cell.Radio)
		t.Topology, t.TopologyTitle = s.Cell.Topology, cmp.Or(s.Topology.Title, s.Cell.Topology)
		t.SizeBytes, t.Iterations, t.Order = s.Cell.SizeBytes, s.Iterations(), s.Order
		t.BandwidthBitsPerSecond = bandwidth(s)
	}
	byTreatment := map[string][]*Trial{}
	for i := range r.Trials {
		tr := &r.Trials[i]
		byTreatment[tr.Treatment] = append(byTreatment[tr.Treatment], tr)
	}
	var samples []sample
	for _, treatment := range treatments(r) {
		s := takeSample(r, byTreatment[treatment.Name])
		row := Row{Treatment: treatment.Name, Label: cmp.Or(treatment.Label, treatment.Name), Protocol: treatment.Protocol, Missing: treatment.Missing}
		s.fill(&row, t.BandwidthBitsPerSecond, stats.Bootstrap{Seed: seed, Stream: stream(treatment.Name)})
		if p := slices.IndexFunc(published, func(p PublishedRow) bool {
			return p.Radio == t.Radio && p.Topology == t.Topology && p.Treatment == row.Treatment
		}); p >= 0 {
			row.Published = beside(published[p], &row)
		}
		if t.Reference == "" && row.Missing == "" {
			t.Reference = row.Treatment
		}
		t.Partial = t.Partial || row.NotEnded > 0
		samples, t.Rows = append(samples, s), append(t.Rows, row)
	}
	compareRows(&t, samples)
	return t
}

// treatments are those of the sheet; trials of none, or without a sheet, add theirs.
func treatments(r *Run) []runsheet.Treatment {
	var out []runsheet.Treatment
	if r.Sheet != nil {
		out = slices.Clone(r.Sheet.Treatments)
	}
	for i := range r.Trials {
		name := r.Trials[i].Treatment
		if !slices.ContainsFunc(out, func(t runsheet.Treatment) bool { return t.Name == name }) {
			out = append(out, runsheet.Treatment{Name: name})
		}
	}
	return out
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
	return figure(slowest)
}

// stream tells the resamples of treatments apart that share a run's seed.
func stream(treatment string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(treatment)) // a hash takes all
	return h.Sum64()
}

// sample is what one treatment's trials of a run gave.
type sample struct {
	trials, failed, notEnded, extra int
	failures                        []Failure
	rates                           []float64 // KB/s, in the order of the sheet
	elapsed, connect, ideal         []float64 // seconds, seconds, share
	rateBy, elapsedBy               map[int]float64
}

func takeSample(r *Run, trials []*Trial) sample {
	s := sample{trials: len(trials), rateBy: map[int]float64{}, elapsedBy: map[int]float64{}}
	count := map[Failure]int{}
	for _, t := range trials {
		s.extra += max(0, len(t.Attempts)-1)
		for i := range t.Attempts {
			if a := &t.Attempts[i]; a.Verdict != "" && !a.valid() && !waits(r, a) {
				count[Failure{Verdict: a.Verdict, Reason: a.why()}]++
			}
		}
		a := t.counted()
		switch {
		case a != nil:
			rate := a.ThroughputBytesPerSecond() / unit.KB
			s.rates = append(s.rates, rate)
			s.elapsed = append(s.elapsed, a.Elapsed.Seconds())
			s.connect = append(s.connect, a.Connect.Seconds())
			s.rateBy[t.Iteration], s.elapsedBy[t.Iteration] = rate, a.Elapsed.Seconds()
			if share := stats.ShareOfIdeal(a.Ideal.Seconds(), a.Elapsed.Seconds()); !math.IsNaN(share) {
				s.ideal = append(s.ideal, share)
			}
		case t.Verdict == "" || len(t.Attempts) > 0 && waits(r, &t.Attempts[len(t.Attempts)-1]):
			s.notEnded++
		default:
			s.failed++
		}
	}
	for f, n := range count {
		f.Attempts = n
		s.failures = append(s.failures, f)
	}
	slices.SortFunc(s.failures, func(a, b Failure) int {
		return cmp.Or(b.Attempts-a.Attempts, cmp.Compare(a.Verdict, b.Verdict), cmp.Compare(a.Reason, b.Reason))
	})
	return s
}

// counted is the attempt whose figure the trial stands with, or nil.
func (t *Trial) counted() *Attempt {
	if n := len(t.Attempts); n > 0 && t.Attempts[n-1].valid() {
		return &t.Attempts[n-1]
	}
	return nil
}

func (a *Attempt) valid() bool {
	return a.Verdict == journal.Succeeded && a.Verified && a.Elapsed > 0
}

// waits tells whether the server's word on a transfer may still come.
func waits(r *Run, a *Attempt) bool {
	ended := r.State == "completed" || r.State == "aborted" || r.State == "stopped"
	return !ended && a.Verdict == journal.Succeeded && !a.Verified
}

// why is the attempt's reason, or what is wrong with a success.
func (a *Attempt) why() string {
	switch {
	case a.Verdict != journal.Succeeded || a.Reason != "":
		return a.Reason
	case !a.Verified:
		return "unverified"
	default:
		return "no-elapsed-time"
	}
}

func (s *sample) fill(row *Row, bandwidth *float64, bootstrap stats.Bootstrap) {
	row.Trials, row.Valid, row.Failed, row.NotEnded = s.trials, len(s.rates), s.failed, s.notEnded
	row.ExtraAttempts, row.Failures = s.extra, s.failures
	if ended := row.Valid + row.Failed; ended > 0 {
		row.FailedShare = figure(float64(row.Failed) / float64(ended))
		row.FailedCI = interval(stats.Wilson(row.Failed, ended, level))
	}
	d := stats.Describe(s.rates)
	row.AverageKBps, row.MaxKBps, row.MinKBps, row.SDKBps, row.MedianKBps = figure(d.Mean), figure(d.Max), figure(d.Min), figure(d.SD), figure(d.Median)
	row.MeanCI, row.BootstrapCI = interval(stats.MeanT(s.rates, level)), interval(bootstrap.Mean(s.rates, level))
	row.ElapsedSeconds, row.ConnectSeconds = figure(stats.Mean(s.elapsed)), figure(stats.Mean(s.connect))
	row.ShareOfIdeal = figure(stats.Mean(s.ideal))
	if bandwidth != nil {
		row.Normalised = figure(stats.NormalisedThroughput(d.Mean*unit.KB, *bandwidth))
	}
	if n, ok := stats.Iterations(s.rates, level, precision); ok {
		more := max(0, n-len(s.rates))
		row.MoreIterations = &more
	}
}

func compareRows(t *RunTable, samples []sample) {
	ref := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Treatment == t.Reference })
	if ref < 0 {
		return
	}
	var rows []*Row
	var ps []float64
	for i := range t.Rows {
		pairs := stats.PairUp(samples[ref].rateBy, samples[i].rateBy)
		if i == ref || len(pairs) < minPairs {
			continue
		}
		c := stats.Compare(pairs, level)
		var refTimes, times []float64
		for _, p := range stats.PairUp(samples[ref].elapsedBy, samples[i].elapsedBy) {
			refTimes, times = append(refTimes, p.Reference), append(times, p.Value)
		}
		row := &t.Rows[i]
		row.Comparison = &Comparison{
			Reference: t.Reference, Pairs: c.Pairs,
			DifferenceKBps: figure(c.Difference), DifferenceCI: interval(c.DifferenceInterval),
			Ratio: figure(c.Ratio), RatioCI: interval(c.RatioInterval),
			GainPercent: figure(stats.GainPercent(stats.Mean(refTimes), stats.Mean(times))),
			W:           figure(c.Wilcoxon.Statistic()), P: figure(c.Wilcoxon.P), Exact: c.Wilcoxon.Exact,
			RankBiserial: figure(c.Wilcoxon.RankBiserial),
		}
		rows, ps = append(rows, row), append(ps, c.Wilcoxon.P)
	}
	for i, p := range stats.Holm(ps) {
		rows[i].Comparison.PHolm = figure(p)
	}
}

func beside(p PublishedRow, row *Row) *Published {
	off := func(published float64, ours *float64) *float64 {
		if ours == nil {
			return nil
		}
		return figure(stats.DeviationPercent(published, *ours))
	}
	return &Published{
		PublishedRow: p,
		AvgDeviation: off(p.AvgKBps, row.AverageKBps), MaxDeviation: off(p.MaxKBps, row.MaxKBps),
		MinDeviation: off(p.MinKBps, row.MinKBps), SDDeviation: off(p.SDKBps, row.SDKBps),
	}
}

// figure rounds to nine significant digits, so that processors which fuse
// multiplication and addition write the same report; nil for what has no value.
func figure(x float64) *float64 {
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

func interval(i stats.Interval) *Range {
	low, high := figure(i.Low), figure(i.High)
	if low == nil || high == nil {
		return nil
	}
	return &Range{*low, *high}
}
