package document

import "linktrial/orchestrator/report"

func method(v *report.Analysis) ([]Section, error) {
	return []Section{{ID: "method", Title: "Method", Level: 1}}, nil
}
