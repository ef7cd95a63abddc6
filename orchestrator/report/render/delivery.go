package render

import (
	"fmt"
	"strings"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// deliveryTable is the table of times to delivery for people; all also has intervals for which
// a terminal has no room.
func deliveryTable(t *report.RunTable, rate wording.RateUnit, all bool) (header []string, rows [][]string) {
	mean := "mean"
	if h := deliveryHorizon(t); h != "" {
		mean += " to " + h
	}
	header = []string{"delivery, s", "delivered", mean, "95 % CI", "median", "goodput"}
	if all {
		header = []string{"Treatment", "Delivered", "95 % CI", strings.Replace(mean, "mean", "Mean", 1), "95 % CI", "Median, s", "95 % CI", "Goodput, " + rate.Name}
	}
	compared := t.Has(hasDeliveryDifference)
	if compared {
		header = append(header, map[bool]string{false: "sooner", true: "Sooner, s"}[all], "95 % CI", "p")
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Delivery == nil {
			continue
		}
		d := r.Delivery
		cells := []string{wording.Clean(r.Label), wording.Percent(d.Share, 0), wording.Number(d.MeanSeconds), narrow(d.MeanCI), wording.Number(d.MedianSeconds), rate.Write(d.GoodputKBps)}
		if all {
			cells = []string{md(r.Label), wording.Percent(d.Share, 0), shares(d.ShareCI), wording.Number(d.MeanSeconds), span(d.MeanCI, wording.Number), wording.Number(d.MedianSeconds), medianSpan(d), rate.Write(d.GoodputKBps)}
		}
		switch x := d.Difference; {
		case !compared:
		case r.Treatment == t.Reference:
			cells = append(cells, "0", "", "")
		case x == nil:
			cells = append(cells, wording.None, wording.None, wording.None)
		default:
			cells = append(cells, wording.Number(x.SoonerSeconds), span(x.SoonerCI, wording.Number), wording.PValue(x.PHolm))
		}
		rows = append(rows, cells)
	}
	return header, rows
}

func hasDeliveryDifference(r *report.Row) bool {
	return r.Delivery != nil && r.Delivery.Difference != nil
}

// deliveryHorizon is that of all rows; empty: they have several.
func deliveryHorizon(t *report.RunTable) (text string) {
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

func shares(r *report.Range) string {
	if r == nil {
		return wording.None
	}
	return fmt.Sprintf("%.0f to %.0f %%", 100*r.Low, 100*r.High)
}

func narrow(r *report.Range) string {
	if r == nil {
		return wording.None
	}
	return wording.Number(&r.Low) + "–" + wording.Number(&r.High)
}

func medianSpan(d *report.Delivery) string {
	switch {
	case d.MedianLow == nil:
		return wording.None
	case d.MedianHigh == nil:
		return "from " + wording.Number(d.MedianLow)
	}
	return wording.Number(d.MedianLow) + " to " + wording.Number(d.MedianHigh)
}

func deliveryLegendOf(t *report.RunTable) string {
	until := "the horizon"
	if h := deliveryHorizon(t); h != "" {
		until += " of " + h
	}
	s := "delivery: from the first attempt to connect until the payload was there, over valid and failed trials; one that failed counts as not delivered by " + until + ", up to which the mean is restricted. goodput: payload delivered over the time spent, of all these trials."
	if t.Has(hasDeliveryDifference) {
		s += " sooner: than " + t.ReferenceLabel() + ", by iteration, also where one failed; Student's t for pairs, p Holm-corrected."
	}
	return s
}

func writeDelivery(b *strings.Builder, t *report.RunTable, rate wording.RateUnit) {
	header, rows := deliveryTable(t, rate, false)
	g := grid{header: header}
	for _, cells := range rows {
		g.rows = append(g.rows, gridRow{cells: cells})
	}
	g.write(b)
}

func mdDelivery(b *strings.Builder, t *report.RunTable, rate wording.RateUnit) {
	fmt.Fprintf(b, "Time to delivery in seconds. %s\n\n", md(wording.Sentence(deliveryLegendOf(t))))
	header, rows := deliveryTable(t, rate, true)
	mdTable(b, header, rows)
}
