package document

import (
	"fmt"

	"linktrial/orchestrator/report"
)

// chapters make those of [report.Chapters], in that order. Each gives its sections, the
// chapter first; none: the results have nothing for it.
var chapters = []func(*report.Analysis) ([]Section, error){
	conclusion, conditions, method, results, comparisons, published, anomalies, definitions, appendix, provenance,
}

// Of makes the report of what was analysed. Its error is one sentence: a drawing that
// cannot be made.
func Of(v *report.Analysis) (*Document, error) {
	d := titled(v)
	d.Sections = summaries(v)
	for i, chapter := range chapters {
		sections, err := chapter(v)
		if err != nil {
			return nil, fmt.Errorf("report of %s: %w", v.Dataset.Campaign, err)
		}
		d.Sections = append(d.Sections, remarked(v, report.Chapters[i], sections)...)
	}
	d.Sections = append(d.Sections, references(d)...)
	d.number()
	return d, nil
}

// number gives sections, tables and figures their numbers.
func (d *Document) number() {
	var chapter, part, tables, figures int
	for i := range d.Sections {
		s := &d.Sections[i]
		if s.Level == 1 {
			chapter, part = chapter+1, 0
			s.Number = fmt.Sprint(chapter)
		} else {
			part++
			s.Number = fmt.Sprintf("%d.%d", chapter, part)
		}
		for j := range s.Blocks {
			switch b := &s.Blocks[j]; {
			case b.Table != nil:
				tables++
				b.Table.Number = tables
			case b.Figure != nil:
				figures++
				b.Figure.Number = figures
			}
		}
	}
}
