package document

import "linktrial/orchestrator/report"

func definitions(v *report.Analysis) ([]Section, error) {
	return []Section{{ID: "definitions", Title: "Metrics and where they are defined", Level: 1}}, nil
}
