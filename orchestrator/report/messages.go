package report

import (
	"cmp"
	"math"
	"slices"

	"linktrial/internal/stats"
	"linktrial/protocols/contract"
)

// messagesSample is what the rows of a probe's messages are made of.
type messagesSample []*messagesOfSize

type messagesOfSize struct {
	row            MessagesRow
	p50, p95       []float64
	least, longest float64
}

// add takes the messages of one trial; the clock is that of their direction.
func (s *messagesSample) add(f *contract.ProbeMetrics, clock ProbeClock) {
	for i := range f.Messages {
		m := &f.Messages[i]
		o := s.of(m)
		o.row.Sent, o.row.Delivered = o.row.Sent+m.Sent, o.row.Delivered+m.Delivered
		if m.Time == nil || f.Delay == nil {
			continue
		}
		d := clock.CorrectPart(m.Time, f.Delay.MinNS)
		o.p50, o.p95 = append(o.p50, d.P50), append(o.p95, d.P95)
		o.least, o.longest = min(o.least, d.Min), max(o.longest, d.Max)
	}
}

func (s *messagesSample) of(m *contract.MessagesOfSize) *messagesOfSize {
	i := slices.IndexFunc(*s, func(o *messagesOfSize) bool { return o.row.Bytes == m.Bytes && o.row.Packets == m.Packets })
	if i >= 0 {
		return (*s)[i]
	}
	o := &messagesOfSize{row: MessagesRow{Bytes: m.Bytes, Packets: m.Packets}, least: math.Inf(1), longest: math.Inf(-1)}
	*s = append(*s, o)
	return o
}

// finish is the rows, the smallest messages first.
func (s messagesSample) finish() (out []MessagesRow) {
	for _, o := range s {
		row := o.row
		if row.Sent > 0 {
			row.DeliveredShare = Rounded(float64(row.Delivered) / float64(row.Sent))
			row.DeliveredCI = interval(stats.Wilson(int(row.Delivered), int(row.Sent), level))
		}
		row.TimeMinMS, row.TimeP50MS, row.TimeP95MS, row.TimeMaxMS = Rounded(o.least), Rounded(stats.Mean(o.p50)), Rounded(stats.Mean(o.p95)), Rounded(o.longest)
		out = append(out, row)
	}
	slices.SortFunc(out, func(a, b MessagesRow) int {
		return cmp.Or(cmp.Compare(a.Bytes, b.Bytes), cmp.Compare(a.Packets, b.Packets))
	})
	return out
}
