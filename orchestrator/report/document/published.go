package document

import "linktrial/orchestrator/report"

func published(v *report.Analysis) ([]Section, error) {
	return []Section{{ID: "published", Title: "Published values", Level: 1}}, nil
}
