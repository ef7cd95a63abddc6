package render

import (
	"fmt"
	"strconv"
	"strings"

	"linktrial/internal/stats"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
	"linktrial/protocols/contract"
)

// voiceColumns are the quality of speech in probes.csv.
func voiceColumns() []column[probeLine] {
	of := func(name string, of func(*stats.Voice) float64) column[probeLine] {
		return column[probeLine]{name, func(r probeLine) string {
			v := r.run.Voice(r.Probe)
			if v == nil {
				return ""
			}
			x := of(v)
			return nine(&x)
		}}
	}
	return []column[probeLine]{
		of("r_factor", func(v *stats.Voice) float64 { return v.R }),
		of("mos", func(v *stats.Voice) float64 { return v.MOS }),
		of("playout_ms", func(v *stats.Voice) float64 { return v.PlayoutMS }),
	}
}

// capacityColumns are what a search for the capacity found in probes.csv.
func capacityColumns() []column[probeLine] {
	text := func(name string, of func(probeLine, *contract.Capacity) string) column[probeLine] {
		return column[probeLine]{name, func(r probeLine) string {
			if r.Metrics == nil || r.Metrics.Capacity == nil {
				return ""
			}
			return of(r, r.Metrics.Capacity)
		}}
	}
	count := func(name string, of func(*contract.Capacity) int64) column[probeLine] {
		return text(name, func(_ probeLine, c *contract.Capacity) string {
			if n := of(c); n > 0 {
				return strconv.FormatInt(n, 10)
			}
			return ""
		})
	}
	ms := func(name string, of func(report.DelaysMS) float64) column[probeLine] {
		return text(name, func(r probeLine, c *contract.Capacity) string {
			x := of(r.run.ProbeClock.Of(r.From).CorrectPart(c.HeldDelay, r.Metrics.Delay.MinNS))
			return nine(&x)
		})
	}
	return []column[probeLine]{
		count("capacity_bps", func(c *contract.Capacity) int64 { return c.MaximumBPS }),
		count("capacity_mean_bps", func(c *contract.Capacity) int64 { return c.MeanBPS }),
		count("capacity_payload_bps", func(c *contract.Capacity) int64 { return c.PayloadBPS }),
		count("capacity_bottleneck_bps", func(c *contract.Capacity) int64 { return c.BottleneckBPS }),
		count("capacity_rate_bps", func(c *contract.Capacity) int64 { return c.RateBPS }),
		count("capacity_high_bps", func(c *contract.Capacity) int64 { return c.HighBPS }),
		count("capacity_sent_packets", func(c *contract.Capacity) int64 { return c.HeldSent }),
		count("capacity_received_packets", func(c *contract.Capacity) int64 { return c.HeldReceived }),
		ms("capacity_delay_mean_ms", func(d report.DelaysMS) float64 { return d.Mean }),
		ms("capacity_delay_p95_ms", func(d report.DelaysMS) float64 { return d.P95 }),
		count("capacity_packet_bytes", func(c *contract.Capacity) int64 { return c.PacketBytes }),
		count("largest_payload_bytes", func(c *contract.Capacity) int64 { return c.LargestPayloadBytes }),
		text("capacity_interval_ms", func(_ probeLine, c *contract.Capacity) string {
			x := float64(c.IntervalNS) / 1e6
			return nine(&x)
		}),
		count("capacity_steps", func(c *contract.Capacity) int64 { return c.Steps }),
		text("capacity_end", func(_ probeLine, c *contract.Capacity) string { return string(c.End) }),
	}
}

// writeCapacities writes a table of what searches for the capacity found; nothing where
// there were none.
func writeCapacities(b *strings.Builder, t *report.RunTable) {
	g := grid{header: append([]string{"Search"}, report.CapacityHeader()...)}
	for i := range t.Probes {
		if p := &t.Probes[i]; p.Capacity != nil {
			g.rows = append(g.rows, gridRow{cells: append([]string{wording.Clean(p.Label)}, p.CapacityCells()...)})
		}
	}
	if len(g.rows) == 0 {
		return
	}
	g.write(b)
	b.WriteString("\n")
	paragraph(b, report.CapacityLegend)
}

// mdCapacities is [writeCapacities] in Markdown.
func mdCapacities(b *strings.Builder, t *report.RunTable) {
	var rows [][]string
	for i := range t.Probes {
		if p := &t.Probes[i]; p.Capacity != nil {
			rows = append(rows, append([]string{md(p.Label)}, p.CapacityCells()...))
		}
	}
	if len(rows) > 0 {
		mdTable(b, append([]string{"Search"}, report.CapacityHeader()...), rows)
		fmt.Fprintf(b, "%s\n\n", md(report.CapacityLegend))
	}
}
