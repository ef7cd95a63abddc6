package render

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"linktrial/internal/radio"
	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
	"linktrial/orchestrator/stats"
	"linktrial/protocols/contract"
)

// column is one column of a CSV file; docs/exports.md describes them all. An
// empty field is a figure that has no value.
type column[T any] struct {
	name  string
	value func(T) string
}

func writeCSV[T any](out io.Writer, columns []column[T], rows []T) error {
	w := csv.NewWriter(out)
	w.UseCRLF = true // RFC 4180, section 2
	record := make([]string, len(columns))
	for i, c := range columns {
		record[i] = c.name
	}
	if err := w.Write(record); err != nil {
		return err
	}
	for _, r := range rows {
		for i, c := range columns {
			record[i] = wording.Cell(wording.Clean(c.value(r)))
		}
		if err := w.Write(record); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// fixed writes a figure with a fixed number of decimals, nil as nothing.
func fixed(x *float64, n int) string {
	if x == nil {
		return ""
	}
	return wording.Decimals(x, n)
}

// digits writes a figure that may be very small, with six significant digits.
func digits(x *float64) string {
	if x == nil {
		return ""
	}
	return strconv.FormatFloat(*x, 'g', 6, 64)
}

func whole(n int) string { return strconv.Itoa(n) }

func optional(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}

func low(r *report.Range) *float64 {
	if r == nil {
		return nil
	}
	return &r.Low
}

func high(r *report.Range) *float64 {
	if r == nil {
		return nil
	}
	return &r.High
}

type summaryRow struct {
	ds  *report.Dataset
	run *report.RunTable
	*report.Row
	comparison report.Comparison
	published  *report.Published
}

// summaryList is the columns of summary.csv, in order.
type summaryList []column[summaryRow]

func (c *summaryList) add(name string, value func(summaryRow) string) {
	*c = append(*c, column[summaryRow]{name, value})
}

// rate adds a figure with four decimals.
func (c *summaryList) rate(name string, value func(summaryRow) *float64) {
	c.add(name, func(r summaryRow) string { return fixed(value(r), 4) })
}

// share adds a figure with six decimals.
func (c *summaryList) share(name string, value func(summaryRow) *float64) {
	c.add(name, func(r summaryRow) string { return fixed(value(r), 6) })
}

// pub adds a figure that only rows with published ones have.
func (c *summaryList) pub(name string, value func(*report.Published) *float64) {
	c.add(name, func(r summaryRow) string {
		if r.published == nil {
			return ""
		}
		return fixed(value(r.published), 4)
	})
}

func summaryColumns() []column[summaryRow] {
	var c summaryList
	c.runColumns()
	c.figureColumns()
	c.comparisonColumns()
	c.publishedColumns()
	c.laterColumns()
	return c
}

// runColumns are the run and the treatment.
func (c *summaryList) runColumns() {
	c.add("campaign", func(r summaryRow) string { return r.ds.Campaign })
	c.add("plan", func(r summaryRow) string { return r.ds.Plan })
	c.add("run", func(r summaryRow) string { return r.run.Run })
	c.add("run_state", func(r summaryRow) string { return r.run.State })
	c.add("partial", func(r summaryRow) string { return strconv.FormatBool(r.run.Partial) })
	c.add("place", func(r summaryRow) string { return r.run.Place })
	c.add("radio", func(r summaryRow) string { return r.run.Radio })
	c.add("topology", func(r summaryRow) string { return r.run.Topology })
	c.add("size_bytes", func(r summaryRow) string { return strconv.FormatInt(r.run.SizeBytes, 10) })
	c.add("iterations", func(r summaryRow) string { return whole(r.run.Iterations) })
	c.add("treatment", func(r summaryRow) string { return r.Treatment })
	c.add("label", func(r summaryRow) string { return r.Label })
	c.add("protocol", func(r summaryRow) string { return r.Protocol })
	c.add("via", func(r summaryRow) string { return r.Via })
	c.add("missing", func(r summaryRow) string { return r.Missing })
	c.add("trials", func(r summaryRow) string { return whole(r.Trials) })
	c.add("valid", func(r summaryRow) string { return whole(r.Valid) })
	c.add("failed", func(r summaryRow) string { return whole(r.Failed) })
	c.add("excluded", func(r summaryRow) string { return whole(r.Excluded) })
	c.add("not_ended", func(r summaryRow) string { return whole(r.NotEnded) })
	c.add("extra_attempts", func(r summaryRow) string { return whole(r.ExtraAttempts) })
	c.add("failures", func(r summaryRow) string {
		parts := make([]string, len(r.Failures))
		for i, f := range r.Failures {
			parts[i] = f.Name() + "=" + whole(f.Attempts)
		}
		return strings.Join(parts, "; ")
	})
}

// figureColumns are the treatment's own figures.
func (c *summaryList) figureColumns() {
	c.share("failed_share", func(r summaryRow) *float64 { return r.FailedShare })
	c.share("failed_share_ci95_low", func(r summaryRow) *float64 { return low(r.FailedCI) })
	c.share("failed_share_ci95_high", func(r summaryRow) *float64 { return high(r.FailedCI) })
	c.rate("average_kb_per_s", func(r summaryRow) *float64 { return r.AverageKBps })
	c.rate("max_kb_per_s", func(r summaryRow) *float64 { return r.MaxKBps })
	c.rate("min_kb_per_s", func(r summaryRow) *float64 { return r.MinKBps })
	c.rate("sd_kb_per_s", func(r summaryRow) *float64 { return r.SDKBps })
	c.rate("median_kb_per_s", func(r summaryRow) *float64 { return r.MedianKBps })
	c.rate("average_ci95_low_kb_per_s", func(r summaryRow) *float64 { return low(r.MeanCI) })
	c.rate("average_ci95_high_kb_per_s", func(r summaryRow) *float64 { return high(r.MeanCI) })
	c.rate("average_bootstrap_ci95_low_kb_per_s", func(r summaryRow) *float64 { return low(r.BootstrapCI) })
	c.rate("average_bootstrap_ci95_high_kb_per_s", func(r summaryRow) *float64 { return high(r.BootstrapCI) })
	c.share("elapsed_mean_s", func(r summaryRow) *float64 { return r.ElapsedSeconds })
	c.share("connect_mean_s", func(r summaryRow) *float64 { return r.ConnectSeconds })
	c.share("share_of_ideal", func(r summaryRow) *float64 { return r.ShareOfIdeal })
	c.share("normalised_throughput", func(r summaryRow) *float64 { return r.Normalised })
	c.add("more_iterations_for_5_percent", func(r summaryRow) string {
		if r.MoreIterations == nil {
			return ""
		}
		return whole(*r.MoreIterations)
	})
}

// comparisonColumns are the comparison with the reference.
func (c *summaryList) comparisonColumns() {
	c.add("reference", func(r summaryRow) string { return r.comparison.Reference })
	c.add("pairs", func(r summaryRow) string {
		if r.Comparison == nil {
			return ""
		}
		return whole(r.comparison.Pairs)
	})
	c.rate("difference_kb_per_s", func(r summaryRow) *float64 { return r.comparison.DifferenceKBps })
	c.rate("difference_ci95_low_kb_per_s", func(r summaryRow) *float64 { return low(r.comparison.DifferenceCI) })
	c.rate("difference_ci95_high_kb_per_s", func(r summaryRow) *float64 { return high(r.comparison.DifferenceCI) })
	c.share("ratio", func(r summaryRow) *float64 { return r.comparison.Ratio })
	c.share("ratio_ci95_low", func(r summaryRow) *float64 { return low(r.comparison.RatioCI) })
	c.share("ratio_ci95_high", func(r summaryRow) *float64 { return high(r.comparison.RatioCI) })
	c.rate("gain_percent", func(r summaryRow) *float64 { return r.comparison.GainPercent })
	c.add("wilcoxon_w", func(r summaryRow) string { return fixed(r.comparison.W, 1) })
	c.add("wilcoxon_p", func(r summaryRow) string { return digits(r.comparison.P) })
	c.add("wilcoxon_p_holm", func(r summaryRow) string { return digits(r.comparison.PHolm) })
	c.share("rank_biserial", func(r summaryRow) *float64 { return r.comparison.RankBiserial })
}

// publishedColumns are the published figures, and how far ours are from them.
func (c *summaryList) publishedColumns() {
	c.pub("published_average_kb_per_s", func(p *report.Published) *float64 { return &p.AvgKBps })
	c.pub("published_max_kb_per_s", func(p *report.Published) *float64 { return &p.MaxKBps })
	c.pub("published_min_kb_per_s", func(p *report.Published) *float64 { return &p.MinKBps })
	c.pub("published_sd_kb_per_s", func(p *report.Published) *float64 { return &p.SDKBps })
	c.pub("average_deviation_percent", func(p *report.Published) *float64 { return p.AvgDeviation })
	c.add("published_source", func(r summaryRow) string {
		if r.published == nil {
			return ""
		}
		return r.published.Source
	})
}

// laterColumns are what was added later: new columns come last, so that old readers still find theirs.
func (c *summaryList) laterColumns() {
	c.add("sheet_hash", func(r summaryRow) string { return r.run.SheetHash })
	c.add("group", func(r summaryRow) string { return r.run.Group })
	c.add("settings", func(r summaryRow) string { return r.run.Settings })
	c.rate("average_kbit_per_s", func(r summaryRow) *float64 { return r.AverageKbitPS })
	c.share("average_mbit_per_s", func(r summaryRow) *float64 { return r.AverageMbitPS })
	c.rate("retransmits_mean", func(r summaryRow) *float64 { return r.Retransmits })
	c.rate("timeouts_mean", func(r summaryRow) *float64 { return r.Timeouts })
	c.rate("gain_ci95_low_percent", func(r summaryRow) *float64 { return low(r.comparison.GainCI) })
	c.rate("gain_ci95_high_percent", func(r summaryRow) *float64 { return high(r.comparison.GainCI) })
	c.rate("gain_with_connect_percent", func(r summaryRow) *float64 { return r.comparison.GainWholePercent })
	c.add("flows", func(r summaryRow) string {
		if r.Flows == 0 {
			return ""
		}
		return whole(r.Flows)
	})
	c.rate("flow_average_kb_per_s", func(r summaryRow) *float64 { return r.FlowKBps })
	c.rate("flow_average_ci95_low_kb_per_s", func(r summaryRow) *float64 { return low(r.FlowCI) })
	c.rate("flow_average_ci95_high_kb_per_s", func(r summaryRow) *float64 { return high(r.FlowCI) })
	c.share("jain_index", func(r summaryRow) *float64 { return r.Jain })
	c.add("flow_parts", func(r summaryRow) string {
		parts := make([]string, len(r.Parts))
		for i, p := range r.Parts {
			parts[i] = fmt.Sprintf("%s ×%d=%s", p.Treatment, p.Flows, fixed(p.AverageKBps, 4))
		}
		return strings.Join(parts, "; ")
	})
	c.rate("p05_kb_per_s", func(r summaryRow) *float64 { return r.P05KBps })
	c.rate("p25_kb_per_s", func(r summaryRow) *float64 { return r.P25KBps })
	c.rate("p75_kb_per_s", func(r summaryRow) *float64 { return r.P75KBps })
	c.rate("p95_kb_per_s", func(r summaryRow) *float64 { return r.P95KBps })
	c.share("share_of_coded_bound", func(r summaryRow) *float64 { return r.ShareOfCodedBound })
	c.rate("ideal_kb_per_s", func(r summaryRow) *float64 { return r.IdealKBps })
	c.rate("coded_bound_kb_per_s", func(r summaryRow) *float64 { return r.CodedBoundKBps })
	c.add("difference_t_p", func(r summaryRow) string { return digits(r.comparison.DifferenceP) })
}

func renderCSV(w io.Writer, v *report.Analysis) error {
	var rows []summaryRow
	for i := range v.Tables {
		t := &v.Tables[i]
		for j := range t.Rows {
			r := summaryRow{ds: v.Dataset, run: t, Row: &t.Rows[j], published: t.Rows[j].Published}
			if c := r.Comparison; c != nil {
				r.comparison = *c
			}
			rows = append(rows, r)
		}
	}
	return writeCSV(w, summaryColumns(), rows)
}

type attemptRow struct {
	ds    *report.Dataset
	run   *report.Run
	table *report.RunTable
	trial *report.Trial
	*report.Attempt
	radio *report.RadioReport
}

func trialColumns() []column[attemptRow] {
	seconds := func(d time.Duration) string {
		if d <= 0 { // not known: the attempt did not come so far
			return ""
		}
		s := d.Seconds()
		return fixed(&s, 6)
	}
	hops := func(value func(*report.RadioReport) string) func(attemptRow) string {
		return func(r attemptRow) string {
			if r.radio == nil {
				return ""
			}
			return value(r.radio)
		}
	}
	return []column[attemptRow]{
		{"campaign", func(r attemptRow) string { return r.ds.Campaign }},
		{"plan", func(r attemptRow) string { return r.ds.Plan }},
		{"run", func(r attemptRow) string { return r.run.ID }},
		{"run_state", func(r attemptRow) string { return r.run.State }},
		{"place", func(r attemptRow) string { return r.run.Place }},
		{"radio", func(r attemptRow) string { return r.table.Radio }},
		{"topology", func(r attemptRow) string { return r.table.Topology }},
		{"trial", func(r attemptRow) string { return whole(r.trial.Index) }},
		{"iteration", func(r attemptRow) string { return whole(r.trial.Iteration) }},
		{"treatment", func(r attemptRow) string { return r.trial.Treatment }},
		{"trial_verdict", func(r attemptRow) string { return string(r.trial.Verdict) }},
		{"attempt", func(r attemptRow) string { return whole(r.Attempt.Attempt) }},
		{"counted", func(r attemptRow) string { return strconv.FormatBool(r.trial.Counted() == r.Attempt) }},
		{"verdict", func(r attemptRow) string { return string(r.Verdict) }},
		{"reason", func(r attemptRow) string { return r.Reason }},
		{"message", func(r attemptRow) string { return r.Message }},
		{"started_utc", func(r attemptRow) string {
			if r.Started.IsZero() {
				return ""
			}
			return r.Started.Format("2006-01-02T15:04:05.000Z07:00")
		}},
		{"size_bytes", func(r attemptRow) string { return strconv.FormatInt(r.SizeBytes, 10) }},
		{"elapsed_s", func(r attemptRow) string { return seconds(r.Elapsed) }},
		{"connect_s", func(r attemptRow) string { return seconds(r.Connect) }},
		{"duration_s", func(r attemptRow) string { return seconds(r.Duration) }},
		{"throughput_kb_per_s", func(r attemptRow) string {
			if rate := r.ThroughputBytesPerSecond() / unit.KB; rate > 0 {
				return fixed(&rate, 4)
			}
			return ""
		}},
		{"ideal_s", func(r attemptRow) string { return seconds(r.Ideal) }},
		{"share_of_ideal", shareOfBound(func(r attemptRow) time.Duration { return r.Ideal })},
		{"verified", func(r attemptRow) string { return strconv.FormatBool(r.Verified) }},
		{"sha256", func(r attemptRow) string { return r.Digest }},
		{"retransmits", func(r attemptRow) string { return optional(r.Retransmits) }},
		{"timeouts", func(r attemptRow) string { return optional(r.Timeouts) }},
		{"radio_sent_packets", hops(func(r *report.RadioReport) string { return strconv.FormatInt(r.SentPackets, 10) })},
		{"radio_lost_packets", hops(func(r *report.RadioReport) string { return strconv.FormatInt(r.LostPackets, 10) })},
		{"radio_dropped_packets", hops(func(r *report.RadioReport) string { return strconv.FormatInt(r.DroppedPackets, 10) })},
		{"radio_busy_share", hops(func(r *report.RadioReport) string { return fixed(&r.BusyShare, 6) })},
		{"coded_bound_s", func(r attemptRow) string { return seconds(r.CodedBound) }},
		{"share_of_coded_bound", shareOfBound(func(r attemptRow) time.Duration { return r.CodedBound })},
		{"throughput_of", func(r attemptRow) string {
			switch {
			case r.ThroughputBytesPerSecond() <= 0:
				return ""
			case r.Window != nil:
				return "window"
			case r.Estimated():
				return "estimate"
			}
			return "transfer"
		}},
		{"path_devices", paths(func(p *contract.PathResult) string { return cmp.Or(p.Device, p.Address) })},
		{"path_bytes", paths(func(p *contract.PathResult) string { return strconv.FormatInt(p.Bytes, 10) })},
		{"path_shares", paths(func(p *contract.PathResult) string { return fixed(&p.Share, 6) })},
		{"undecided_rules", func(r attemptRow) string { return strings.Join(r.Undecided, "; ") }},
		{"control_packets_client", controlPackets(radio.RoleClient)},
		{"control_packets_relay", controlPackets(radio.RoleRelay)},
		{"control_packets_server", controlPackets(radio.RoleServer)},
	}
}

// controlPackets is how many packets passed between a node and the orchestrator during an
// attempt, where they were counted.
func controlPackets(role radio.Role) func(attemptRow) string {
	return func(r attemptRow) string {
		for _, c := range r.Control {
			if c.Role == role && c.Unknown == "" {
				return strconv.FormatInt(c.Packets, 10)
			}
		}
		return ""
	}
}

// shareOfBound is a bound's time over that of a valid attempt.
func shareOfBound(bound func(attemptRow) time.Duration) func(attemptRow) string {
	return func(r attemptRow) string {
		if !r.Valid() {
			return ""
		}
		return fixed(report.Rounded(stats.ShareOfBound(bound(r).Seconds(), (r.Connect+r.Elapsed).Seconds())), 6)
	}
}

func renderTrialsCSV(w io.Writer, v *report.Analysis) error {
	return writeCSV(w, trialColumns(), attemptRows(v))
}

// paths lists a figure of each path, separated by spaces.
func paths(value func(*contract.PathResult) string) func(attemptRow) string {
	return func(r attemptRow) string {
		out := make([]string, len(r.Paths))
		for i := range r.Paths {
			out[i] = value(&r.Paths[i])
		}
		return strings.Join(out, " ")
	}
}

// attemptRows are all attempts, in the order of the plan, the sheet and the attempts.
func attemptRows(v *report.Analysis) (rows []attemptRow) {
	for i := range v.Dataset.Runs {
		run := &v.Dataset.Runs[i]
		for j := range run.Trials {
			trial := &run.Trials[j]
			for k := range trial.Attempts {
				a := &trial.Attempts[k]
				rows = append(rows, attemptRow{ds: v.Dataset, run: run, table: &v.Tables[i], trial: trial, Attempt: a, radio: a.Radio})
			}
		}
	}
	return rows
}
