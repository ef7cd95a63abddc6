package report

import (
	"fmt"
	"slices"
	"strconv"

	"linktrial/orchestrator/report/wording"
)

// Cells of tables for people, which every format has alike. A header is of the columns after
// the name of the row.

// Text is an interval for people: "1.20 to 3.40".
func (r *Range) Text(number func(*float64) string) string {
	if r == nil {
		return wording.None
	}
	return number(&r.Low) + " to " + number(&r.High)
}

// sharesText is an interval of shares in percent.
func (r *Range) sharesText() string {
	if r == nil {
		return wording.None
	}
	return fmt.Sprintf("%.0f to %.0f %%", 100*r.Low, 100*r.High)
}

// ComparisonMethod says how treatments of a run are compared, after "Against X, ".
const ComparisonMethod = "paired by iteration. Ratio: Hodges–Lehmann, with the interval that inverts the two-sided Wilcoxon signed-rank test of the same ratios, whose p is beside it; from six pairs on. Difference: mean, with the interval that inverts Student's test for pairs, whose p is beside it. Gain: less time, in percent of the reference's"

// ComparisonHeader names the columns of [Comparison.Cells].
func ComparisonHeader() []string {
	return []string{"Pairs", "Difference", "95 % CI, t", "p, t", "Ratio", "95 % CI, signed-rank", "p, signed-rank", "p, Holm-corrected", "Rank-biserial r", "Gain"}
}

// Cells are its values.
func (c *Comparison) Cells(rate wording.RateUnit) []string {
	return []string{fmt.Sprint(c.Pairs), rate.Write(c.DifferenceKBps), c.DifferenceCI.Text(rate.Write), wording.PValue(c.DifferenceP),
		wording.Number(c.Ratio), c.RatioCI.Text(wording.Number), wording.PValue(c.P), wording.PValue(c.PHolm), wording.Number(c.RankBiserial), wording.Decimals(c.GainPercent, 1) + " %"}
}

// HasDeliveryDifference: see [HasComparison].
func HasDeliveryDifference(r *Row) bool { return r.Delivery != nil && r.Delivery.Difference != nil }

// HorizonText is that of all rows; empty: they have several.
func (t *RunTable) HorizonText() (text string) {
	for i := range t.Rows {
		d := t.Rows[i].Delivery
		if d == nil {
			continue
		}
		s := wording.Short(&d.HorizonSeconds) + " s"
		if text != "" && text != s {
			return ""
		}
		text = s
	}
	return text
}

// DeliveryHeader names the columns of [Delivery.Cells]; horizon is [RunTable.HorizonText].
func DeliveryHeader(horizon string, rate wording.RateUnit) []string {
	mean := "Mean"
	if horizon != "" {
		mean += " to " + horizon
	}
	return []string{"Delivered", "95 % CI", mean, "95 % CI", "Median, s", "95 % CI", "Goodput, " + rate.Name}
}

// Cells are its values.
func (d *Delivery) Cells(rate wording.RateUnit) []string {
	return []string{wording.Percent(d.Share, 0), d.ShareCI.sharesText(), wording.Number(d.MeanSeconds), d.MeanCI.Text(wording.Number), wording.Number(d.MedianSeconds), d.medianText(), rate.Write(d.GoodputKBps)}
}

func (d *Delivery) medianText() string {
	switch {
	case d.MedianLow == nil:
		return wording.None
	case d.MedianHigh == nil:
		return "from " + wording.Number(d.MedianLow)
	}
	return wording.Number(d.MedianLow) + " to " + wording.Number(d.MedianHigh)
}

// DeliveryLegend says what the values of deliveries are.
func (t *RunTable) DeliveryLegend() string {
	until := "the horizon"
	if h := t.HorizonText(); h != "" {
		until += " of " + h
	}
	return "delivery: from the first attempt to connect until the payload was there, over valid and failed trials; one that failed counts as not delivered by " + until + ", up to which the mean is restricted. goodput: payload delivered over the time spent, of all these trials."
}

// SoonerLegend says how times to delivery are compared.
func (t *RunTable) SoonerLegend() string {
	return "sooner: than " + t.ReferenceLabel() + ", by iteration, also where one failed; Student's t for pairs, p Holm-corrected."
}

// ProbeGroups are the rows of each probe and direction: alone, and beside each treatment.
func (t *RunTable) ProbeGroups() (out [][]ProbeRow) {
	for first, k := 0, 0; k < len(t.Probes); k++ {
		if k+1 < len(t.Probes) && t.Probes[k+1].Probe == t.Probes[first].Probe && t.Probes[k+1].From == t.Probes[first].From {
			continue
		}
		out = append(out, t.Probes[first:k+1])
		first = k + 1
	}
	return out
}

// HasSpeech reports whether any of the rows has a quality of voice.
func HasSpeech(rows []ProbeRow) bool {
	return slices.ContainsFunc(rows, func(r ProbeRow) bool { return r.MOS != nil })
}

// Cells are a probe's values: measured, delays (least, mean, 50th, 95th and 99th percentile,
// longest), jitter, loss, longest burst, reordered, duplicated.
func (r *ProbeRow) Cells() []string {
	return []string{
		fmt.Sprintf("%d/%d", r.Measured, r.Trials), wording.Delay(r.DelayMinMS), wording.Delay(r.DelayMeanMS), wording.Delay(r.DelayP50MS), wording.Delay(r.DelayP95MS), wording.Delay(r.DelayP99MS), wording.Delay(r.DelayMaxMS),
		wording.Delay(r.JitterMS), wording.Percent(r.LossShare, 2), strconv.FormatInt(r.LongestLossBurst, 10), strconv.FormatInt(r.Reordered, 10), strconv.FormatInt(r.Duplicated, 10),
	}
}

// ProbeLegend says what the values are, and how certain.
func (t *RunTable) ProbeLegend() string {
	s := "Probes: one-way delays in ms, least and longest of all packets, the others means over the trials; jitter: RFC 3550; burst: the longest run of lost packets. They verify nothing and are compared with no transfer."
	if HasSpeech(t.Probes) {
		s += " " + VoiceNote
	}
	if c := t.ProbeCertainty(); c != "" {
		s += " " + wording.Clean(c)
	}
	return s
}

// CapacityHeader names the columns of [ProbeRow.CapacityCells].
func CapacityHeader() []string {
	return []string{"n", "capacity", "mean", "payload", "bottleneck", "loss", "delay min", "mean", "95 %", "packet", "largest"}
}

// CapacityCells are what the searches of a row with [ProbeRow.Capacity] found.
func (r *ProbeRow) CapacityCells() []string {
	c := r.Capacity
	kilobits := func(bps *float64) string {
		if bps == nil {
			return wording.Number(nil)
		}
		x := *bps / 1e3
		return wording.Number(&x)
	}
	largest := wording.Number(nil)
	if c.LargestPayloadBytes > 0 {
		largest = strconv.FormatInt(c.LargestPayloadBytes, 10)
	}
	return []string{fmt.Sprintf("%d/%d", c.Measured, r.Trials), kilobits(c.MaximumBPS), kilobits(c.MeanBPS), kilobits(c.PayloadBPS), kilobits(c.BottleneckBPS),
		wording.Percent(c.LossShare, 2), wording.Delay(r.DelayMinMS), wording.Delay(c.DelayMeanMS), wording.Delay(c.DelayP95MS), wording.Decimals(c.PacketBytes, 0), largest}
}

// CapacityLegend says what the values are.
const CapacityLegend = "Capacity: the most IP packets received in a sub-interval (RFC 9097), with their headers, in kbit/s, and of it the payload of UDP; mean, loss, and mean and 95th percentile of the delay in ms: of all packets at the rate that the search found; bottleneck: by the times between arrivals of packets that waited; packet: length in bytes; largest: payload of UDP in bytes that passes without fragments."

// MessageHeader names the columns of [MessagesRow.Cells].
func MessageHeader() []string {
	return []string{"bytes", "packets", "sent", "delivered", "share", "95 % interval", "min", "50 %", "95 %", "max"}
}

// Cells are its values.
func (m *MessagesRow) Cells() []string {
	interval := wording.None
	if c := m.DeliveredCI; c != nil {
		interval = wording.Percent(&c.Low, 1) + " to " + wording.Percent(&c.High, 1)
	}
	whole := func(n int64) string { return strconv.FormatInt(n, 10) }
	return []string{whole(m.Bytes), whole(m.Packets), whole(m.Sent), whole(m.Delivered), wording.Percent(m.DeliveredShare, 2), interval,
		wording.Delay(m.TimeMinMS), wording.Delay(m.TimeP50MS), wording.Delay(m.TimeP95MS), wording.Delay(m.TimeMaxMS)}
}

// MessageLegend says what the values are.
const MessageLegend = "Messages: payload of UDP in bytes, and packets of each, which leave at once; delivered: all packets arrived, and none is sent again; interval: Wilson's, as if losses were independent; times in ms from the first packet's sending to the last one's arrival, least and longest of all messages, percentiles means over the trials."
