package render

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

type probeLine struct {
	ds      *report.Dataset
	run     *report.Run
	trial   *report.Trial
	attempt *report.Attempt
	counted bool // of the trial's last attempt, with values
	*report.Probe
}

// beside is what ran beside the probe; empty: nothing did.
func (r probeLine) beside() string { return r.run.Sheet.Trials[r.trial.Index].Beside() }

// probeColumns is one row for each probe of each attempt. Delays are by one clock.
func probeColumns() []column[probeLine] {
	count := func(name string, of func(probeLine) int64) column[probeLine] {
		return column[probeLine]{name, func(r probeLine) string {
			if r.Metrics == nil {
				return ""
			}
			return strconv.FormatInt(of(r), 10)
		}}
	}
	ms := func(x float64) string { return nine(&x) }
	delay := func(name string, of func(report.DelaysMS) float64) column[probeLine] {
		return column[probeLine]{name, func(r probeLine) string {
			if r.Metrics == nil || r.Metrics.Delay == nil {
				return ""
			}
			return ms(of(r.run.ProbeClock.Of(r.From).Correct(r.Metrics.Delay)))
		}}
	}
	return slices.Concat([]column[probeLine]{
		{"campaign", func(r probeLine) string { return r.ds.Campaign }},
		{"plan", func(r probeLine) string { return r.ds.Plan }},
		{"run", func(r probeLine) string { return r.run.ID }},
		{"place", func(r probeLine) string { return r.run.Place }},
		{"radio", func(r probeLine) string { return r.run.Sheet.Cell.Radio }},
		{"topology", func(r probeLine) string { return r.run.Sheet.Cell.Topology }},
		{"settings", func(r probeLine) string { return r.run.Sheet.Cell.Label }},
		{"trial", func(r probeLine) string { return whole(r.trial.Index) }},
		{"iteration", func(r probeLine) string { return whole(r.trial.Iteration) }},
		{"attempt", func(r probeLine) string { return whole(r.attempt.Attempt) }},
		{"probe", func(r probeLine) string { return r.Treatment }},
		{"from", func(r probeLine) string { return string(r.From) }},
		{"to", func(r probeLine) string { return string(r.To) }},
		{"beside", probeLine.beside},
		{"beside_verdict", func(r probeLine) string {
			if r.beside() == "" {
				return ""
			}
			return string(r.attempt.Verdict)
		}},
		{"dscp", func(r probeLine) string {
			if t := r.run.Sheet.Treatment(r.Treatment); t != nil {
				return whole(t.DSCP)
			}
			return ""
		}},
		{"counted", func(r probeLine) string { return strconv.FormatBool(r.counted) }},
		{"verdict", func(r probeLine) string { return string(r.Verdict) }},
		{"reason", func(r probeLine) string { return r.Reason }},
		{"message", func(r probeLine) string { return r.Message }},
		{"elapsed_s", func(r probeLine) string {
			if r.Metrics == nil {
				return ""
			}
			return seconds(r.Elapsed)
		}},
		count("offered_packets", func(r probeLine) int64 { return r.Metrics.Sent + r.Metrics.Unsent }),
		count("unsent_packets", func(r probeLine) int64 { return r.Metrics.Unsent }),
		count("sent_packets", func(r probeLine) int64 { return r.Metrics.Sent }),
		count("received_packets", func(r probeLine) int64 { return r.Metrics.Received }),
		count("lost_packets", func(r probeLine) int64 { return r.Metrics.Lost }),
		count("loss_bursts", func(r probeLine) int64 { return r.Metrics.LossBursts }),
		count("longest_loss_burst_packets", func(r probeLine) int64 { return r.Metrics.LongestLossBurst }),
		count("duplicated_packets", func(r probeLine) int64 { return r.Metrics.Duplicated }),
		count("reordered_packets", func(r probeLine) int64 { return r.Metrics.Reordered }),
		count("stray_packets", func(r probeLine) int64 { return r.Metrics.Strays }),
		count("sent_bytes", func(r probeLine) int64 { return r.Metrics.SentBytes }),
		count("received_bytes", func(r probeLine) int64 { return r.Metrics.ReceivedBytes }),
		delay("delay_min_ms", func(d report.DelaysMS) float64 { return d.Min }),
		delay("delay_mean_ms", func(d report.DelaysMS) float64 { return d.Mean }),
		delay("delay_p50_ms", func(d report.DelaysMS) float64 { return d.P50 }),
		delay("delay_p95_ms", func(d report.DelaysMS) float64 { return d.P95 }),
		delay("delay_p99_ms", func(d report.DelaysMS) float64 { return d.P99 }),
		delay("delay_max_ms", func(d report.DelaysMS) float64 { return d.Max }),
		jitterColumn("jitter_mean_ms", func(r probeLine) int64 { return r.Metrics.JitterMeanNS }, ms),
		jitterColumn("jitter_max_ms", func(r probeLine) int64 { return r.Metrics.JitterMaxNS }, ms),
		{"clocks", func(r probeLine) string { return clockWord(&r.run.ProbeClock) }},
		{"arrivals", func(r probeLine) string {
			switch {
			case r.Metrics == nil:
				return ""
			case r.Metrics.ProcessTimes:
				return "driver"
			}
			return "kernel"
		}},
		{"uncertainty_ms", func(r probeLine) string {
			if r.Metrics == nil || r.run.ProbeClock.Unknown != "" {
				return ""
			}
			return ms(float64(r.run.ProbeClock.Uncertainty.Nanoseconds()+r.Metrics.ClockStepNS) / 1e6)
		}},
		{"caveat", func(r probeLine) string {
			if r.Metrics != nil && r.attempt.Unloads(r.beside()) {
				return report.UnloadedNote
			}
			return ""
		}},
		{"imported", func(r probeLine) string { return r.run.Imported.Text() }},
	}, voiceColumns(), capacityColumns(), messageColumns())
}

func jitterColumn(name string, of func(probeLine) int64, ms func(float64) string) column[probeLine] {
	return column[probeLine]{name, func(r probeLine) string {
		if r.Metrics == nil || r.Metrics.Delay == nil {
			return ""
		}
		return ms(float64(of(r)) / 1e6)
	}}
}

// clockWord says how the clocks of a probe's ends stand to each other.
func clockWord(c *report.ProbeClock) string {
	switch {
	case c.Shared:
		return "one"
	case c.Unknown != "":
		return "unknown"
	}
	return "compared"
}

var probesFormat = &Format{Name: "probes-csv", Title: "CSV, a row a probe", File: "probes.csv", MediaType: csvText,
	Holds: "a row for each probe of each attempt: delays, jitter, losses",
	write: renderProbesCSV}

func renderProbesCSV(w io.Writer, v *report.Analysis) error {
	var rows []probeLine
	for i := range v.Dataset.Runs {
		run := &v.Dataset.Runs[i]
		for k := range run.Trials {
			t := &run.Trials[k]
			for n := range t.Attempts {
				a := &t.Attempts[n]
				for m := range a.Probes {
					p := &a.Probes[m]
					rows = append(rows, probeLine{v.Dataset, run, t, a, n == len(t.Attempts)-1 && p.Counts() && !a.Unloads(run.Sheet.Trials[t.Index].Beside()), p})
				}
			}
		}
	}
	return writeCSV(w, probeColumns(), rows)
}

// writeProbes writes a table for each probe and direction: what the call, the sensor meets alone
// and beside each treatment.
func writeProbes(b *strings.Builder, t *report.RunTable) {
	for _, group := range t.ProbeGroups() {
		if group[0].Capacity != nil { // mostly of rates that were only tried
			continue
		}
		g := grid{header: []string{wording.Clean(group[0].Label), "n", "min", "mean", "p50", "p95", "p99", "max", "jitter", "loss", "burst", "reord", "dup"}}
		for k := range group {
			g.rows = append(g.rows, gridRow{cells: append([]string{besideName(&group[k])}, group[k].Cells()...)})
		}
		if report.HasSpeech(group) {
			g.header = append(g.header, "MOS")
			for k := range group {
				g.rows[k].cells = append(g.rows[k].cells, wording.Number(group[k].MOS))
			}
		}
		g.write(b)
		b.WriteString("\n")
	}
	writeCapacities(b, t)
	writeMessages(b, t)
	for _, n := range t.ProbeCaveats() {
		paragraph(b, n)
	}
	paragraph(b, t.ProbeLegend())
}

// besideName is a row's name in the table of its probe.
func besideName(r *report.ProbeRow) string {
	if r.Beside == "" {
		return "alone"
	}
	return "beside " + wording.Clean(r.BesideLabel)
}

func mdProbes(b *strings.Builder, t *report.RunTable) {
	b.WriteString("Probes:\n\n")
	header := []string{"Probe", "Measured", "Delay min, ms", "mean", "50 %", "95 %", "99 %", "max", "Jitter, ms", "Loss", "Longest burst", "Reordered", "Duplicated"}
	speech := report.HasSpeech(t.Probes)
	if speech {
		header = append(header, "MOS")
	}
	var rows [][]string
	for i := range t.Probes {
		if t.Probes[i].Capacity != nil { // mostly of rates that were only tried
			continue
		}
		cells := append([]string{md(t.Probes[i].Name())}, t.Probes[i].Cells()...)
		if speech {
			cells = append(cells, wording.Number(t.Probes[i].MOS))
		}
		rows = append(rows, cells)
	}
	if len(rows) > 0 {
		mdTable(b, header, rows)
	}
	mdCapacities(b, t)
	mdMessages(b, t)
	for _, n := range t.ProbeCaveats() {
		fmt.Fprintf(b, "- %s\n", md(n))
	}
	fmt.Fprintf(b, "%s\n\n", md(t.ProbeLegend()))
}
