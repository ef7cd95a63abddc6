package render

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// column is one column of a CSV file; docs/exports.md describes them all. An
// empty field means that there is no value.
type column[T any] struct {
	name  string
	value func(T) string
}

// NewCSV writes records as in every file of Linktrial's.
func NewCSV(out io.Writer) *csv.Writer {
	w := csv.NewWriter(out)
	w.UseCRLF = true // RFC 4180, section 2
	return w
}

func writeCSV[T any](out io.Writer, columns []column[T], rows []T) error {
	w := NewCSV(out)
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

// nine writes a number with nine significant digits, or as few as tell the same; nil as
// nothing.
func nine(x *float64) string {
	if x == nil {
		return ""
	}
	r := report.Rounded(*x)
	if r == nil {
		return ""
	}
	if *r != 0 && math.Abs(*r) < 1e-6 {
		return strconv.FormatFloat(*r, 'g', -1, 64)
	}
	return strconv.FormatFloat(*r, 'f', -1, 64)
}

// seconds writes a time; one that is not known, because the attempt did not come so far, as
// nothing.
func seconds(d time.Duration) string {
	if d <= 0 {
		return ""
	}
	s := d.Seconds()
	return nine(&s)
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

// number adds a column of numbers.
func (c *summaryList) number(name string, value func(summaryRow) *float64) {
	c.add(name, func(r summaryRow) string { return nine(value(r)) })
}

// pub adds a column of numbers that only rows with published values have.
func (c *summaryList) pub(name string, value func(*report.Published) *float64) {
	c.add(name, func(r summaryRow) string {
		if r.published == nil {
			return ""
		}
		return nine(value(r.published))
	})
}

func summaryColumns() []column[summaryRow] {
	var c summaryList
	c.runColumns()
	c.valueColumns()
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

// valueColumns are the treatment's own values.
func (c *summaryList) valueColumns() {
	c.number("failed_share", func(r summaryRow) *float64 { return r.FailedShare })
	c.number("failed_share_ci95_low", func(r summaryRow) *float64 { return low(r.FailedCI) })
	c.number("failed_share_ci95_high", func(r summaryRow) *float64 { return high(r.FailedCI) })
	c.number("average_kb_per_s", func(r summaryRow) *float64 { return r.AverageKBps })
	c.number("max_kb_per_s", func(r summaryRow) *float64 { return r.MaxKBps })
	c.number("min_kb_per_s", func(r summaryRow) *float64 { return r.MinKBps })
	c.number("sd_kb_per_s", func(r summaryRow) *float64 { return r.SDKBps })
	c.number("median_kb_per_s", func(r summaryRow) *float64 { return r.MedianKBps })
	c.number("average_ci95_low_kb_per_s", func(r summaryRow) *float64 { return low(r.MeanCI) })
	c.number("average_ci95_high_kb_per_s", func(r summaryRow) *float64 { return high(r.MeanCI) })
	c.number("average_bootstrap_ci95_low_kb_per_s", func(r summaryRow) *float64 { return low(r.BootstrapCI) })
	c.number("average_bootstrap_ci95_high_kb_per_s", func(r summaryRow) *float64 { return high(r.BootstrapCI) })
	c.number("elapsed_mean_s", func(r summaryRow) *float64 { return r.ElapsedSeconds })
	c.number("connect_mean_s", func(r summaryRow) *float64 { return r.ConnectSeconds })
	c.number("share_of_ideal", func(r summaryRow) *float64 { return r.ShareOfIdeal })
	c.number("normalised_throughput", func(r summaryRow) *float64 { return r.Normalised })
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
	c.number("difference_kb_per_s", func(r summaryRow) *float64 { return r.comparison.DifferenceKBps })
	c.number("difference_ci95_low_kb_per_s", func(r summaryRow) *float64 { return low(r.comparison.DifferenceCI) })
	c.number("difference_ci95_high_kb_per_s", func(r summaryRow) *float64 { return high(r.comparison.DifferenceCI) })
	c.number("ratio", func(r summaryRow) *float64 { return r.comparison.Ratio })
	c.number("ratio_ci95_low", func(r summaryRow) *float64 { return low(r.comparison.RatioCI) })
	c.number("ratio_ci95_high", func(r summaryRow) *float64 { return high(r.comparison.RatioCI) })
	c.number("gain_percent", func(r summaryRow) *float64 { return r.comparison.GainPercent })
	c.number("wilcoxon_w", func(r summaryRow) *float64 { return r.comparison.W })
	c.number("wilcoxon_p", func(r summaryRow) *float64 { return r.comparison.P })
	c.number("wilcoxon_p_holm", func(r summaryRow) *float64 { return r.comparison.PHolm })
	c.number("rank_biserial", func(r summaryRow) *float64 { return r.comparison.RankBiserial })
}

// publishedColumns are the published values, and how far ours are from them.
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
	c.number("average_kbit_per_s", func(r summaryRow) *float64 { return r.AverageKbitPS })
	c.number("average_mbit_per_s", func(r summaryRow) *float64 { return r.AverageMbitPS })
	c.number("retransmits_mean", func(r summaryRow) *float64 { return r.Retransmits })
	c.number("timeouts_mean", func(r summaryRow) *float64 { return r.Timeouts })
	c.number("gain_ci95_low_percent", func(r summaryRow) *float64 { return low(r.comparison.GainCI) })
	c.number("gain_ci95_high_percent", func(r summaryRow) *float64 { return high(r.comparison.GainCI) })
	c.number("gain_with_connect_percent", func(r summaryRow) *float64 { return r.comparison.GainWholePercent })
	c.add("flows", func(r summaryRow) string {
		if r.Flows == 0 {
			return ""
		}
		return whole(r.Flows)
	})
	c.number("flow_average_kb_per_s", func(r summaryRow) *float64 { return r.FlowKBps })
	c.number("flow_average_ci95_low_kb_per_s", func(r summaryRow) *float64 { return low(r.FlowCI) })
	c.number("flow_average_ci95_high_kb_per_s", func(r summaryRow) *float64 { return high(r.FlowCI) })
	c.number("jain_index", func(r summaryRow) *float64 { return r.Jain })
	c.add("flow_parts", func(r summaryRow) string {
		parts := make([]string, len(r.Parts))
		for i, p := range r.Parts {
			parts[i] = fmt.Sprintf("%s ×%d=%s", p.Treatment, p.Flows, nine(p.AverageKBps))
		}
		return strings.Join(parts, "; ")
	})
	c.number("p05_kb_per_s", func(r summaryRow) *float64 { return r.P05KBps })
	c.number("p25_kb_per_s", func(r summaryRow) *float64 { return r.P25KBps })
	c.number("p75_kb_per_s", func(r summaryRow) *float64 { return r.P75KBps })
	c.number("p95_kb_per_s", func(r summaryRow) *float64 { return r.P95KBps })
	c.number("share_of_coded_bound", func(r summaryRow) *float64 { return r.ShareOfCodedBound })
	c.number("ideal_kb_per_s", func(r summaryRow) *float64 { return r.IdealKBps })
	c.number("coded_bound_kb_per_s", func(r summaryRow) *float64 { return r.CodedBoundKBps })
	c.number("difference_t_p", func(r summaryRow) *float64 { return r.comparison.DifferenceP })
	c.add("driver_crashes", func(r summaryRow) string { return whole(r.Crashes()) })
	c.add("imported", func(r summaryRow) string { return r.run.Imported.Text() })
	c.deliveryColumns()
	c.add("not_needed", func(r summaryRow) string { return whole(r.NotNeeded) })
	c.add("stopped_after_iteration", func(r summaryRow) string {
		if s := r.run.Stopping; s != nil && s.Stopped {
			return whole(s.After)
		}
		return ""
	})
	c.rfc6349("tcp_transfer_time_ratio", func(x *report.RFC6349) *report.Spread { return x.TransferTimeRatio })
	c.rfc6349("tcp_efficiency_percent", func(x *report.RFC6349) *report.Spread { return x.EfficiencyPercent })
	c.rfc6349("tcp_buffer_delay_percent", func(x *report.RFC6349) *report.Spread { return x.BufferDelayPercent })
	c.add("tcp_baseline_from", func(r summaryRow) string {
		if r.RFC6349 == nil {
			return ""
		}
		return string(r.RFC6349.BaselineFrom)
	})
	c.number("tcp_baseline_rtt_ms", func(r summaryRow) *float64 {
		if r.RFC6349 == nil || r.RFC6349.BaselineFrom != report.BaselineOfProbe {
			return nil
		}
		return r.run.Baseline.RTTMS
	})
	c.rfc6349("tcp_least_rtt_above_baseline_percent", func(x *report.RFC6349) *report.Spread { return x.LeastAboveBaselinePercent })
}

// rfc6349 adds a column of the mean of a metric that treatments over TCP have.
func (c *summaryList) rfc6349(name string, of func(*report.RFC6349) *report.Spread) {
	c.number(name, func(r summaryRow) *float64 {
		if r.RFC6349 == nil || of(r.RFC6349) == nil {
			return nil
		}
		return of(r.RFC6349).Mean
	})
}

// delivery adds a column of numbers that only rows with a time to delivery have.
func (c *summaryList) delivery(name string, value func(*report.Delivery) *float64) {
	c.number(name, func(r summaryRow) *float64 {
		if r.Delivery == nil {
			return nil
		}
		return value(r.Delivery)
	})
}

// sooner adds a column of numbers of the comparison of times to delivery.
func (c *summaryList) sooner(name string, value func(*report.DeliveryDifference) *float64) {
	c.delivery(name, func(d *report.Delivery) *float64 {
		if d.Difference == nil {
			return nil
		}
		return value(d.Difference)
	})
}

func (c *summaryList) deliveryColumns() {
	c.delivery("delivery_horizon_s", func(d *report.Delivery) *float64 { return &d.HorizonSeconds })
	c.delivery("delivered_share", func(d *report.Delivery) *float64 { return d.Share })
	c.delivery("delivered_share_ci95_low", func(d *report.Delivery) *float64 { return low(d.ShareCI) })
	c.delivery("delivered_share_ci95_high", func(d *report.Delivery) *float64 { return high(d.ShareCI) })
	c.delivery("delivery_mean_s", func(d *report.Delivery) *float64 { return d.MeanSeconds })
	c.delivery("delivery_mean_ci95_low_s", func(d *report.Delivery) *float64 { return low(d.MeanCI) })
	c.delivery("delivery_mean_ci95_high_s", func(d *report.Delivery) *float64 { return high(d.MeanCI) })
	c.delivery("delivery_median_s", func(d *report.Delivery) *float64 { return d.MedianSeconds })
	c.delivery("delivery_median_ci95_low_s", func(d *report.Delivery) *float64 { return d.MedianLow })
	c.delivery("delivery_median_ci95_high_s", func(d *report.Delivery) *float64 { return d.MedianHigh })
	c.delivery("goodput_kb_per_s", func(d *report.Delivery) *float64 { return d.GoodputKBps })
	c.add("delivery_pairs", func(r summaryRow) string {
		if !report.HasDeliveryDifference(r.Row) {
			return ""
		}
		return whole(r.Delivery.Difference.Pairs)
	})
	c.sooner("delivery_sooner_s", func(d *report.DeliveryDifference) *float64 { return d.SoonerSeconds })
	c.sooner("delivery_sooner_ci95_low_s", func(d *report.DeliveryDifference) *float64 { return low(d.SoonerCI) })
	c.sooner("delivery_sooner_ci95_high_s", func(d *report.DeliveryDifference) *float64 { return high(d.SoonerCI) })
	c.sooner("delivery_sooner_t_p", func(d *report.DeliveryDifference) *float64 { return d.P })
	c.sooner("delivery_sooner_t_p_holm", func(d *report.DeliveryDifference) *float64 { return d.PHolm })
}

var csvFormat = &Format{Name: "csv", Title: "CSV, a row a treatment", File: "results.csv", MediaType: csvText,
	Holds:     "a row for each run and treatment",
	bootstrap: true, write: renderCSV}

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
