package document

import "linktrial/orchestrator/report"

func results(v *report.Analysis) ([]Section, error) {
	return []Section{{ID: "results", Title: "Results", Level: 1}}, nil
}
