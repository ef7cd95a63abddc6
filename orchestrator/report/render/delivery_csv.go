package render

import (
	"io"
	"strconv"

	"linktrial/orchestrator/report"
)

// deliveryRow is a step of a treatment's share delivered.
type deliveryRow struct {
	ds   *report.Dataset
	run  *report.RunTable
	row  *report.Row
	step *report.DeliveryStep // nil: nothing was delivered by the horizon
}

// ofStep is a column that only rows of steps have.
func ofStep(name string, value func(*report.DeliveryStep) string) column[deliveryRow] {
	return column[deliveryRow]{name, func(r deliveryRow) string {
		if r.step == nil {
			return ""
		}
		return value(r.step)
	}}
}

func deliveryCurveColumns() []column[deliveryRow] {
	return []column[deliveryRow]{
		{"campaign", func(r deliveryRow) string { return r.ds.Campaign }},
		{"plan", func(r deliveryRow) string { return r.ds.Plan }},
		{"run", func(r deliveryRow) string { return r.run.Run }},
		{"place", func(r deliveryRow) string { return r.run.Place }},
		{"radio", func(r deliveryRow) string { return r.run.Radio }},
		{"topology", func(r deliveryRow) string { return r.run.Topology }},
		{"size_bytes", func(r deliveryRow) string { return strconv.FormatInt(r.run.SizeBytes, 10) }},
		{"treatment", func(r deliveryRow) string { return r.row.Treatment }},
		{"label", func(r deliveryRow) string { return r.row.Label }},
		{"trials", func(r deliveryRow) string { return whole(r.row.Delivery.Trials) }},
		{"horizon_s", func(r deliveryRow) string { return nine(&r.row.Delivery.HorizonSeconds) }},
		ofStep("delivery_s", func(s *report.DeliveryStep) string { return nine(&s.Seconds) }),
		ofStep("delivered", func(s *report.DeliveryStep) string { return whole(s.Delivered) }),
		ofStep("delivered_share", func(s *report.DeliveryStep) string { return nine(s.Share) }),
		ofStep("delivered_share_ci95_low", func(s *report.DeliveryStep) string { return nine(low(s.ShareCI)) }),
		ofStep("delivered_share_ci95_high", func(s *report.DeliveryStep) string { return nine(high(s.ShareCI)) }),
		{"imported", func(r deliveryRow) string { return r.run.Imported.Text() }},
	}
}

var deliveryCSVFormat = &Format{Name: "delivery-csv", Title: "CSV, time to delivery", File: "delivery.csv", MediaType: csvText,
	Holds: "the curves of `delivery-svg`: a row for each time by which more trials of a treatment were delivered, up to the horizon; one row without a time where none were",
	write: renderDeliveryCSV}

func renderDeliveryCSV(w io.Writer, v *report.Analysis) error {
	var rows []deliveryRow
	for i := range v.Tables {
		t := &v.Tables[i]
		for j := range t.Rows {
			r := &t.Rows[j]
			switch {
			case r.Delivery == nil:
			case len(r.Delivery.Curve) == 0:
				rows = append(rows, deliveryRow{v.Dataset, t, r, nil})
			default:
				for k := range r.Delivery.Curve {
					rows = append(rows, deliveryRow{v.Dataset, t, r, &r.Delivery.Curve[k]})
				}
			}
		}
	}
	return writeCSV(w, deliveryCurveColumns(), rows)
}
