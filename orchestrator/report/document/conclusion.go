package document

import "linktrial/orchestrator/report"

func conclusion(v *report.Analysis) ([]Section, error) {
	return []Section{{ID: "conclusion", Title: "Conclusion", Level: 1}}, nil
}
