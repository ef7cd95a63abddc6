package document

import (
	"slices"
	"strings"

	"linktrial/executor/runsheet"
	"linktrial/orchestrator/report"
)

// definitions says of each metric of the report which standard or paper defines it, what was
// measured, and what deviates; of those alone that the results have.
func definitions(v *report.Analysis) ([]Section, error) {
	return chapterOf("definitions", "Metrics and where they are defined", nil,
		partOf("definitions-transfers", "Transfers", transferMetrics(v)),
		partOf("definitions-tcp", "TCP: RFC 6349", tcpMetrics(v), tcpValues(v), baselines(v), bufferDelays(v)),
		partOf("definitions-packets", "Delay and loss of probes: RFC 2330 and its metrics", packetMetrics(v)),
		partOf("definitions-capacity", "Capacity: RFC 9097", capacityMetrics(v)),
		partOf("definitions-voice", "Quality of voice: ITU-T G.107", voiceMetrics(v), voiceValues(v))), nil
}

// metricGrid is a table of metrics with their definitions.
func metricGrid(caption string) *grid {
	return &grid{caption: caption, heads: []string{"Metric", "Defined in", "What was measured", "What deviates"}}
}

// hasRow reports whether a row of any run is as asked.
func hasRow(v *report.Analysis, what func(*report.Row) bool) bool {
	return slices.ContainsFunc(v.Tables, func(t report.RunTable) bool { return t.Has(what) })
}

// hasProbe reports whether a row of probes of any run is as asked.
func hasProbe(v *report.Analysis, what func(*report.ProbeRow) bool) bool {
	return slices.ContainsFunc(v.Tables, func(t report.RunTable) bool {
		for i := range t.Probes {
			if what(&t.Probes[i]) {
				return true
			}
		}
		return false
	})
}

// transferMetrics are the metrics of transfers, which papers define.
func transferMetrics(v *report.Analysis) []Block {
	g := metricGrid("Metrics of transfers")
	if hasRow(v, func(r *report.Row) bool { return r.AverageKBps != nil }) {
		g.add("throughput", "breedy-2015, section V", "payload over the time from just after its size was sent until its acknowledgement, without connecting; of several flows, from the first start to the last end. Mean over the trials that succeeded and whose payload the server verified", "")
	}
	if hasRow(v, report.HasDelivery) {
		g.add("time to delivery", "Kaplan and Meier (1958)", "time from the first attempt to connect until the payload was there; a trial that failed was not delivered by the horizon", "")
	}
	if hasRow(v, report.HasIdeal) {
		g.add("share of Ideal", "this report", "time that a sender who knows the channel beforehand would need on the same channel realisation, over the time taken with connecting; mean of the trials", "known on emulated radios alone")
	}
	if hasRow(v, report.HasCodedBound) {
		g.add("share of the coded bound", "this report", "the same of a sender who knows the statistics of the channel, not its future, and has an ideal code", "known on emulated radios alone; the luck of one trial can exceed it")
	}
	if hasRow(v, func(r *report.Row) bool { return r.Comparison != nil && r.Comparison.GainPercent != nil }) {
		g.add("gain", "decola-2006, equation 8", "how much less time than the reference's the transfers took, in percent of the reference's", "")
	}
	if hasRow(v, func(r *report.Row) bool { return r.Normalised != nil }) {
		g.add("normalised throughput", "decola-2006, equation 7", "average throughput over the rate of the slowest hop as emulated", "")
	}
	if hasRow(v, func(r *report.Row) bool { return r.Jain != nil }) {
		g.add("Jain's index", "Jain, Chiu and Hawe (1984)", "of the throughputs of the flows of a trial, mean over the trials", "")
	}
	return g.blocks()
}

// packetMetrics are those of the probes' packets.
func packetMetrics(v *report.Analysis) []Block {
	if !hasProbe(v, func(r *report.ProbeRow) bool { return r.Measured > 0 }) {
		return nil
	}
	g := metricGrid("Metrics of the packets of probes")
	clock := "sending time is taken just before the packet is handed to the kernel, arrival by the kernel: host times, and not the wire times of RFC 2330, section 10.2"
	if hasProbe(v, func(r *report.ProbeRow) bool { return r.ProcessTimes }) {
		clock += "; of probes that the tables name, arrival is when the driver got the packet"
	}
	if slices.ContainsFunc(v.Tables, func(t report.RunTable) bool { return t.ProbeClock != nil && t.ProbeClock.Unknown != "" }) {
		clock += "; where clocks were not compared, delays are those above the least one of the probe"
	}
	const stream = "; the packets are those of the probe's pattern (RFC 3432 has periodic ones), and no Poisson sample"
	g.add("one-way delay", "RFC 7679, sections 3 and 5", "least, mean and percentiles of the packets that arrived, by clocks that were compared before and after the run; errors: section 3.7", clock+stream)
	g.add("percentiles", "RFC 2330, section 11.3", "the least delay that so many percent of the packets do not exceed", "beyond a million packets of a trial, of a uniform sample of a million")
	g.add("one-way loss ratio", "RFC 7680, sections 2 and 4.1", "packets that had not arrived one second after the end was announced, over those sent", "the waiting time is one second after the end of the probe for every packet, and so longer for earlier ones")
	g.add("delay variation", "RFC 3393, section 4.5; RFC 3550, section 6.4.1", "the running estimate of the jitter of RFC 3550 over the packets in the order of arrival: its mean and its highest value", "smoothed by 1/16, unlike the mean of the absolute values of ipdv in RFC 3393")
	if hasProbe(v, func(r *report.ProbeRow) bool { return r.Reordered > 0 }) {
		g.add("reordering", "RFC 4737, section 3.3", "arrivals after a packet with a higher number", "")
	}
	if hasProbe(v, func(r *report.ProbeRow) bool { return r.Duplicated > 0 }) {
		g.add("duplication", "RFC 5560", "further arrivals of one packet", "counts, and not the ratio to the packets sent")
	}
	return append(g.blocks(), certainty(v)...)
}

// certainty says how certain the delays are, once for runs that say the same.
func certainty(v *report.Analysis) []Block {
	var said spread
	of := 0
	for i := range v.Tables {
		if text := v.Tables[i].ProbeCertainty(); text != "" {
			of++
			said.add(i, text)
		}
	}
	lines := spreadLines(&said, of, len(v.Tables))
	if more := len(lines) - mostSpread; more > 0 {
		lines = append(lines[:mostSpread], "The results of further runs say how certain their delays are.")
	}
	return listOf(lines)
}

// capacityMetrics is that of searches for the capacity.
func capacityMetrics(v *report.Analysis) []Block {
	if !hasProbe(v, func(r *report.ProbeRow) bool { return r.Capacity != nil }) {
		return nil
	}
	g := metricGrid("Metrics of searches for the capacity")
	g.add("maximum IP-layer capacity", "RFC 9097, section 6", "the most bits of IP packets, with headers, that arrived in a sub-interval of the time for which the rate found was held",
		"a sub-interval begins with an arrival and ends with the first that is at least a second, and on slow links 50 packets, later; RFC 9097 cuts at fixed times")
	g.add("search", "RFC 9097, section 8.1", "rates upwards until the delay grows, then between the highest rate without growth and the lowest with it, until they are within 1 %",
		"RFC 9097 leaves the method open; that of RFC 9946 reports every 50 ms, for which slow links have no room")
	g.add("loss and delay at the rate found", "RFC 9097, section 6", "of the packets sent while the rate was held", "one-way delay in place of the round trip")
	return g.blocks()
}

// voiceMetrics are those of the E-model.
func voiceMetrics(v *report.Analysis) []Block {
	if !hasProbe(v, func(r *report.ProbeRow) bool { return r.MOS != nil }) {
		return nil
	}
	g := metricGrid("Metrics of probes that are speech")
	g.add("transmission rating factor R", "ITU-T G.107 (06/2015), clause 7",
		"by the delays and losses of each trial: delay from mouth to ear is the playout deadline, the time of a packet of speech, and what the codec looks ahead; packets that are lost or later than the deadline count as lost; equipment impairment by ITU-T G.113, appendix I",
		"no echo, noise or loudness was measured: they have the default values (clause 7.7); one direction, and no conversation")
	g.add("mean opinion score (MOS)", "ITU-T G.107 (06/2015), annex B", "of R of each trial, mean over the trials", "an estimate for planning; no person listened")
	g.add("playout deadline", "this report", "the one-way delay at which a fixed de-jitter buffer ends: of the percentiles of a trial's delays, the one that gives the highest R", "known only afterwards: a buffer that does not know the delays beforehand gives at most this R")
	return append(g.blocks(), codecsOf(v)...)
}

// codecsOf says which codecs the probes were.
func codecsOf(v *report.Analysis) []Block {
	var names []string
	sheetsOf(v, func(_ int, _ *report.Run, s *runsheet.Sheet) {
		for i := range s.Treatments {
			t := &s.Treatments[i]
			text, known := codecTexts[optionText(t.Options["pattern"])]
			if text = s.Label(t.Name) + ": " + text + "."; known && t.Probe && !slices.Contains(names, text) {
				names = append(names, text)
			}
		}
	})
	return paragraphs(strings.Join(names, " "))
}
