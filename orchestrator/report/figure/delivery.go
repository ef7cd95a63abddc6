package figure

import (
	"fmt"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wording"
)

// Delivery draws by when payloads were there: for each run and treatment the share of the
// valid and failed trials that had been delivered by a time, up to the horizon.
func Delivery(a *report.Analysis) ([]byte, error) {
	return (&stepFigure{
		title: "Time to delivery", share: "share delivered", none: "nothing was delivered in time",
		fromZero: true,
		reach: func(t *report.RunTable) (top float64) {
			for i := range t.Rows {
				if d := t.Rows[i].Delivery; d != nil {
					top = max(top, d.HorizonSeconds)
				}
			}
			return top
		},
		of: func(t *report.RunTable, _ *report.Run) [][]step {
			out := make([][]step, len(t.Rows))
			for i := range t.Rows {
				if d := t.Rows[i].Delivery; d != nil {
					out[i] = []step{}
					for _, s := range d.Curve {
						out[i] = append(out[i], step{s.Seconds, s.Delivered, d.Trials, s.ShareCI})
					}
				}
			}
			return out
		},
		unit: func(float64) (string, func(float64) float64) {
			return "Time since the first attempt to connect (s)", func(x float64) float64 { return x }
		},
		hint: func(r *report.Row, s step, _ float64) string {
			text := fmt.Sprintf("%s: %d of %d trials delivered by %s s", wording.Clean(r.Label), s.trials, s.of, wording.Number(&s.at))
			if s.ci != nil {
				text += fmt.Sprintf(" (%.0f to %.0f %% at 95 %%)", 100*s.ci.Low, 100*s.ci.High)
			}
			return text
		},
		note: func(float64) string {
			return "Of valid and failed trials; one that failed was not delivered."
		},
		bands: " Bands: 95 % intervals (Wilson).",
	}).draw(a)
}
