package document

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// hasRFC6349 reports whether a treatment over TCP of any run is as asked.
func hasRFC6349(v *report.Analysis, what func(*report.RFC6349) bool) bool {
	return hasRow(v, func(r *report.Row) bool { return r.RFC6349 != nil && what(r.RFC6349) })
}

// tcpMetrics are the metrics of RFC 6349, where a treatment is TCP.
func tcpMetrics(v *report.Analysis) []Block {
	if !hasRow(v, func(r *report.Row) bool { return r.OverTCP() && r.Valid > 0 }) {
		return nil
	}
	g := metricGrid("Metrics of RFC 6349 for treatments over TCP")
	measured, deviates := transferTimeRatio(v)
	g.add("TCP transfer time ratio", "RFC 6349, section 4.1", measured, deviates)
	measured, deviates = "not computed: the drivers did not record the bytes that TCP sent in all and again", ""
	if hasRFC6349(v, func(x *report.RFC6349) bool { return x.EfficiencyPercent != nil }) {
		measured = "payload that the client's kernel sent, without what it sent again, over the payload that it sent; of each trial, when the transfer ended"
		deviates = "the header of the transfer counts as payload; over several paths, what a path sends that another one has sent before counts as sent once"
	} else if hasRow(v, func(r *report.Row) bool { return r.OverTCP() && r.Retransmits != nil }) {
		measured += "; what is recorded is how many segments it sent again"
	}
	g.add("TCP efficiency percentage", "RFC 6349, section 4.2", measured, deviates)
	measured, deviates = bufferDelay(v)
	g.add("Buffer delay percentage", "RFC 6349, section 4.3", measured, deviates)
	return g.blocks()
}

// transferTimeRatio is what was measured as the TCP transfer time ratio, and what deviates.
func transferTimeRatio(v *report.Analysis) (measured, deviates string) {
	of := func(from report.IdealSource) bool {
		return hasRFC6349(v, func(x *report.RFC6349) bool { return x.IdealFrom == from })
	}
	const (
		radio        = "time taken over the time of Ideal on the same channel realisation, of each trial"
		radioOff     = "the ideal time is that of Ideal, which knows losses and delays of the channel, and not the one that follows from the bottleneck's rate and the headers of TCP (section 4.1.1); the time taken contains connecting, as Ideal's does"
		capacity     = "time taken without connecting, over the payload divided by the capacity that a search found in this run without transfers beside it, less 40 bytes of headers of each packet of the path's MTU (section 4.1.1)"
		capacityOff  = "the capacity is the mean over the run's searches, and not of the time of the transfer; options of TCP are not in the 40 bytes"
		notInBalance = "The ratio is of one connection, slow start included, and not of TCP in equilibrium"
	)
	switch {
	case of(report.IdealOfRadio) && of(report.IdealOfCapacity):
		return "on emulated radios " + radio + "; where Ideal is not known, " + capacity, radioOff + "; " + capacityOff + ". " + notInBalance
	case of(report.IdealOfRadio):
		return radio, radioOff + ". " + notInBalance
	case of(report.IdealOfCapacity):
		return capacity, capacityOff + ". " + notInBalance
	}
	return "not computed: the ideal time is known on emulated radios, of transfers without probes beside them, and where the plan searches for the capacity without transfers beside it", ""
}

// bufferDelay is the same of the buffer delay percentage.
func bufferDelay(v *report.Analysis) (measured, deviates string) {
	roundTrip := hasRFC6349(v, func(x *report.RFC6349) bool { return x.BufferDelayPercent != nil })
	oneWay := len(bufferDelays(v)) > 0
	if roundTrip {
		measured, deviates = roundTripDelay(v)
	}
	if oneWay {
		also := "mean one-way delay of a probe beside the transfers less the least one-way delay of the same probe alone, over the latter"
		off := "one direction in place of the round trip; the probe's packets share the queue with the transfer, and add their load"
		if !roundTrip {
			return also, off
		}
		return measured + ". In a table of its own: " + also, deviates + ". Of the probe: " + off
	}
	if !roundTrip {
		return "not computed: the drivers did not record round-trip times over the time of the transfer and their least", ""
	}
	return measured, deviates
}

// roundTripDelay is the same of the buffer delay percentage by round-trip times.
func roundTripDelay(v *report.Analysis) (measured, deviates string) {
	from := func(source report.BaselineSource) bool {
		return hasRFC6349(v, func(x *report.RFC6349) bool { return x.BaselineFrom == source })
	}
	const (
		mean     = "mean over the time of the transfer of the round-trip times that the client's TCP measured, less the baseline, over the baseline; of each trial"
		smoothed = "The round-trip times are the smoothed ones of RFC 6298 at every sample, each for the time since the sample before, and not one a second"
		probe    = "The baseline is the least round-trip time of a probe that ran in both directions without transfers beside it: the least delay there and the least delay back of one trial, in which the clocks cancel"
		probeOff = "the baseline is measured between the run's transfers, and not before all of them (section 3.2.1); the probe's packets have another size than TCP's segments"
		least    = "the least round-trip time of the transfer itself, connecting included"
		leastOff = ", and not one measured beforehand (section 3.2.1): where the path is never idle, it is too long, and the percentage too small"
	)
	switch {
	case from(report.BaselineOfProbe) && from(report.BaselineOfTransfer):
		return mean + ". " + probe + ". In runs without such a probe it is " + least, probeOff + ". In runs without such a probe it is that of the transfer" + leastOff + ". " + smoothed
	case from(report.BaselineOfProbe):
		return mean + ". " + probe, probeOff + ". " + smoothed
	}
	return mean, "the baseline is " + least + leastOff + ". " + smoothed
}

// baselines is the table of the round-trip times without load, and of how far the least ones
// of transfers are above them.
func baselines(v *report.Analysis) []Block {
	g := grid{caption: "Round-trip time without load", heads: []string{"Run", "Radio and place", "Setting", "Measured by", "Trial", "At", "Baseline, ms", "Treatment", "Transfers", "Least of transfers above it, %"},
		numbers: []string{"Run", "Trial", "Baseline, ms", "Transfers", "Least of transfers above it, %"}}
	for i := range v.Tables {
		t := &v.Tables[i]
		for k := range t.Rows {
			row := &t.Rows[k]
			if t.Baseline == nil || row.RFC6349 == nil || row.RFC6349.LeastAboveBaselinePercent == nil {
				continue
			}
			b, above := t.Baseline, row.RFC6349.LeastAboveBaselinePercent
			g.add(strconv.Itoa(i+1), radioAt(t), caseOf(v, t), b.Label, strconv.Itoa(b.Trial), momentOf(b.At), wording.Delay(b.RTTMS), row.Label, strconv.Itoa(above.Trials), wording.Decimals(above.Mean, 1))
		}
	}
	if more := len(g.rows) - mostRunRows; more > 0 {
		g.rows = g.rows[:mostRunRows]
		g.notes = []string{fmt.Sprintf("%d rows more are in results.json.", more)}
	}
	return g.blocks()
}

// byRFC6349 are the values of a treatment over TCP, in one run or over all.
type byRFC6349 struct {
	run                   int // -1: over all runs
	place, setting, label string
	of                    report.RFC6349
	retransmits           *report.Spread
}

// transfers is how many trials the values are of.
func (x *byRFC6349) transfers() (most int) {
	for _, s := range []*report.Spread{x.of.TransferTimeRatio, x.of.EfficiencyPercent, x.of.BufferDelayPercent, x.retransmits} {
		if s != nil {
			most = max(most, s.Trials)
		}
	}
	return most
}

// tcpValues is the table of the values of RFC 6349, and of how many segments TCP sent again.
func tcpValues(v *report.Analysis) []Block {
	var all []*byRFC6349
	for i := range v.Tables {
		t := &v.Tables[i]
		for k := range t.Rows {
			row := &t.Rows[k]
			if !row.OverTCP() {
				continue
			}
			x := &byRFC6349{run: i, place: radioAt(t), setting: caseOf(v, t), label: row.Label, retransmits: segmentsAgain(&v.Dataset.Runs[i], row.Treatment)}
			if row.RFC6349 != nil {
				x.of = *row.RFC6349
			}
			if x.transfers() > 0 {
				all = append(all, x)
			}
		}
	}
	g := grid{caption: "Values by RFC 6349",
		heads: []string{"Run", "Radio and place", "Setting", "Treatment", "Transfers", "Transfer time ratio", "Least ratio", "Largest ratio", "Efficiency, %", "Least efficiency, %",
			"Buffer delay, %", "Largest buffer delay, %", "Segments sent again, mean"}}
	g.numbers = append([]string{"Run"}, g.heads[4:]...)
	if hasRFC6349(v, func(x *report.RFC6349) bool { return x.TransferTimeRatio != nil }) {
		g.notes = []string{"Means over the transfers. A transfer time ratio of 1 is that of the ideal time; one of 2 took twice as long."}
	}
	if len(all) > mostRunRows {
		all, g.caption = overRuns(all), g.caption+", over all runs"
	}
	mean := func(s *report.Spread) *float64 { return s.Mean }
	least := func(s *report.Spread) *float64 { return s.Least }
	largest := func(s *report.Spread) *float64 { return s.Largest }
	for _, x := range all {
		run := ""
		if x.run >= 0 {
			run = strconv.Itoa(x.run + 1)
		}
		ratio, efficiency, delay := x.of.TransferTimeRatio, x.of.EfficiencyPercent, x.of.BufferDelayPercent
		g.add(run, x.place, x.setting, x.label, strconv.Itoa(x.transfers()), ofSpread(ratio, mean), ofSpread(ratio, least), ofSpread(ratio, largest),
			ofSpread(efficiency, mean), ofSpread(efficiency, least), wholePercent(delay, mean), wholePercent(delay, largest), ofSpread(x.retransmits, mean))
	}
	return g.blocks()
}

// ofSpread is a value of a metric as a cell; empty where no trial has it.
func ofSpread(s *report.Spread, value func(*report.Spread) *float64) string {
	if s == nil {
		return ""
	}
	return wording.Number(value(s))
}

// wholePercent is the same of a metric in percent that can be far above 100.
func wholePercent(s *report.Spread, value func(*report.Spread) *float64) string {
	if s == nil {
		return ""
	}
	return wording.Decimals(value(s), 0)
}

// segmentsAgain is how many segments the trials of a treatment that count sent again.
func segmentsAgain(r *report.Run, treatment string) *report.Spread {
	var s *report.Spread
	for i := range r.Trials {
		t := &r.Trials[i]
		if a := t.Counted(); t.Treatment == treatment && a != nil && a.Retransmits != nil {
			x := report.Rounded(float64(*a.Retransmits))
			s = together(s, &report.Spread{Trials: 1, Mean: x, Least: x, Largest: x})
		}
	}
	return s
}

// together is a metric over the trials of both; nil where neither has any.
func together(a, b *report.Spread) *report.Spread {
	if a == nil || b == nil {
		if a == nil {
			return b
		}
		return a
	}
	n := a.Trials + b.Trials
	return &report.Spread{Trials: n, Mean: report.Rounded((*a.Mean*float64(a.Trials) + *b.Mean*float64(b.Trials)) / float64(n)),
		Least: report.Rounded(math.Min(*a.Least, *b.Least)), Largest: report.Rounded(math.Max(*a.Largest, *b.Largest))}
}

// overRuns puts the values of each treatment together.
func overRuns(all []*byRFC6349) (out []*byRFC6349) {
	for _, x := range all {
		i := slices.IndexFunc(out, func(y *byRFC6349) bool { return y.label == x.label })
		if i < 0 {
			i = len(out)
			out = append(out, &byRFC6349{run: -1, label: x.label})
		}
		y := out[i]
		y.of.TransferTimeRatio = together(y.of.TransferTimeRatio, x.of.TransferTimeRatio)
		y.of.EfficiencyPercent = together(y.of.EfficiencyPercent, x.of.EfficiencyPercent)
		y.of.BufferDelayPercent = together(y.of.BufferDelayPercent, x.of.BufferDelayPercent)
		y.retransmits = together(y.retransmits, x.retransmits)
	}
	return out
}
