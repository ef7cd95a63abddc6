package document

import "linktrial/orchestrator/report"

func comparisons(v *report.Analysis) ([]Section, error) {
	return []Section{{ID: "comparisons", Title: "Comparisons", Level: 1}}, nil
}
