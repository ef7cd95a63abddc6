package document

import "linktrial/orchestrator/report"

func appendix(v *report.Analysis) ([]Section, error) {
	return []Section{{ID: "appendix", Title: "Every trial", Level: 1}}, nil
}
