package document

import "linktrial/orchestrator/report"

func conditions(v *report.Analysis) ([]Section, error) {
	return []Section{{ID: "conditions", Title: "Conditions", Level: 1}}, nil
}
