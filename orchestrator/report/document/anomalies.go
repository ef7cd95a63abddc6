package document

import "linktrial/orchestrator/report"

func anomalies(v *report.Analysis) ([]Section, error) {
	return []Section{{ID: "anomalies", Title: "Anomalies", Level: 1}}, nil
}
