package render

import (
	"strings"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// narrowDelivery is the table of times to delivery without the intervals for which a terminal
// has no room.
func narrowDelivery(t *report.RunTable, rate wording.RateUnit) (header []string, rows [][]string) {
	mean := "mean"
	if h := t.HorizonText(); h != "" {
		mean += " to " + h
	}
	return deliveryTable(t, []string{"delivery, s", "delivered", mean, "95 % CI", "median", "goodput"}, "sooner", func(r *report.Row) []string {
		d := r.Delivery
		return []string{wording.Clean(r.Label), wording.Percent(d.Share, 0), wording.Number(d.MeanSeconds), narrow(d.MeanCI), wording.Number(d.MedianSeconds), rate.Write(d.GoodputKBps)}
	})
}

// deliveryTable adds how much sooner than the reference payloads were there to these columns
// of each row with deliveries.
func deliveryTable(t *report.RunTable, header []string, sooner string, of func(*report.Row) []string) (_ []string, rows [][]string) {
	compared := t.Has(report.HasDeliveryDifference)
	if compared {
		header = append(header, sooner, "95 % CI", "p")
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Delivery == nil {
			continue
		}
		cells := of(r)
		switch x := r.Delivery.Difference; {
		case !compared:
		case r.Treatment == t.Reference:
			cells = append(cells, "0", "", "")
		case x == nil:
			cells = append(cells, wording.None, wording.None, wording.None)
		default:
			cells = append(cells, wording.Number(x.SoonerSeconds), x.SoonerCI.Text(wording.Number), wording.PValue(x.PHolm))
		}
		rows = append(rows, cells)
	}
	return header, rows
}

func narrow(r *report.Range) string {
	if r == nil {
		return wording.None
	}
	return wording.Number(&r.Low) + "–" + wording.Number(&r.High)
}

func deliveryLegendOf(t *report.RunTable) string {
	s := t.DeliveryLegend()
	if t.Has(report.HasDeliveryDifference) {
		s += " " + t.SoonerLegend()
	}
	return s
}

func writeDelivery(b *strings.Builder, t *report.RunTable, rate wording.RateUnit) {
	header, rows := narrowDelivery(t, rate)
	g := grid{header: header}
	for _, cells := range rows {
		g.rows = append(g.rows, gridRow{cells: cells})
	}
	g.write(b)
}

func mdDelivery(b *strings.Builder, t *report.RunTable, rate wording.RateUnit) {
	b.WriteString("Time to delivery in seconds. " + md(wording.Sentence(deliveryLegendOf(t))) + "\n\n")
	header, rows := deliveryTable(t, append([]string{"Treatment"}, report.DeliveryHeader(t.HorizonText(), rate)...), "Sooner, s", func(r *report.Row) []string {
		return append([]string{md(r.Label)}, r.Delivery.Cells(rate)...)
	})
	mdTable(b, header, rows)
}
