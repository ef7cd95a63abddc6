package document

import "linktrial/orchestrator/report"

func provenance(v *report.Analysis) ([]Section, error) {
	return []Section{{ID: "provenance", Title: "Provenance", Level: 1}}, nil
}
