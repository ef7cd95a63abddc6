package render

import (
	"fmt"
	"strconv"
	"strings"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
	"linktrial/protocols/contract"
)

// messageColumns are the messages of a probe in probes.csv: in each cell a value for each
// size, apart by spaces, and "-" where none was delivered.
func messageColumns() []column[probeLine] {
	list := func(name string, of func(probeLine, *contract.MessagesOfSize) string) column[probeLine] {
		return column[probeLine]{name, func(r probeLine) string {
			if r.Metrics == nil {
				return ""
			}
			var all []string
			for i := range r.Metrics.Messages {
				all = append(all, of(r, &r.Metrics.Messages[i]))
			}
			return strings.Join(all, " ")
		}}
	}
	count := func(name string, of func(*contract.MessagesOfSize) int64) column[probeLine] {
		return list(name, func(_ probeLine, m *contract.MessagesOfSize) string { return strconv.FormatInt(of(m), 10) })
	}
	ms := func(name string, of func(report.DelaysMS) float64) column[probeLine] {
		return list(name, func(r probeLine, m *contract.MessagesOfSize) string {
			if m.Time == nil || r.Metrics.Delay == nil {
				return "-"
			}
			x := of(r.run.ProbeClock.Of(r.From).CorrectPart(m.Time, r.Metrics.Delay.MinNS))
			return nine(&x)
		})
	}
	return []column[probeLine]{
		count("message_bytes", func(m *contract.MessagesOfSize) int64 { return m.Bytes }),
		count("message_packets", func(m *contract.MessagesOfSize) int64 { return m.Packets }),
		count("messages_sent", func(m *contract.MessagesOfSize) int64 { return m.Sent }),
		count("messages_delivered", func(m *contract.MessagesOfSize) int64 { return m.Delivered }),
		ms("message_p50_ms", func(d report.DelaysMS) float64 { return d.P50 }),
		ms("message_p95_ms", func(d report.DelaysMS) float64 { return d.P95 }),
	}
}

// writeMessages writes a table for each probe of messages, with a row for each size; nothing
// where there were none.
func writeMessages(b *strings.Builder, t *report.RunTable) {
	some := false
	for i := range t.Probes {
		p := &t.Probes[i]
		if len(p.Messages) == 0 {
			continue
		}
		g := grid{header: append([]string{wording.Clean(p.Name())}, report.MessageHeader()[1:]...)}
		for k := range p.Messages {
			cells := p.Messages[k].Cells()
			cells[0] += " B"
			g.rows = append(g.rows, gridRow{cells: cells})
		}
		g.write(b)
		b.WriteString("\n")
		some = true
	}
	if some {
		paragraph(b, report.MessageLegend)
	}
}

// mdMessages is [writeMessages] in Markdown.
func mdMessages(b *strings.Builder, t *report.RunTable) {
	var rows [][]string
	for i := range t.Probes {
		p := &t.Probes[i]
		for k := range p.Messages {
			rows = append(rows, append([]string{md(p.Name())}, p.Messages[k].Cells()...))
		}
	}
	if len(rows) > 0 {
		mdTable(b, append([]string{"Messages"}, report.MessageHeader()...), rows)
		fmt.Fprintf(b, "%s\n\n", md(report.MessageLegend))
	}
}
