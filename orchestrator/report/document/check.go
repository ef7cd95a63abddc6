package document

import (
	"fmt"
	"regexp"
)

var sectionID = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// check finds what no renderer could make anything of. Its error is one sentence: where it is, what
// was expected, and what was found.
func check(d *Document) error {
	seen := map[string]bool{}
	for i := range d.Sections {
		s := &d.Sections[i]
		switch {
		case !sectionID.MatchString(s.ID):
			return fmt.Errorf("section %s: expected an id of small letters, digits and hyphens, found %q", s.Number, s.ID)
		case seen[s.ID]:
			return fmt.Errorf("section %s: another section has its id %q", s.Number, s.ID)
		case s.Level != 1 && s.Level != 2:
			return fmt.Errorf("section %s: expected level 1 or 2, found %d", s.Number, s.Level)
		case i == 0 && s.Level != 1:
			return fmt.Errorf("section %s: expected a chapter before the first part of one", s.Number)
		}
		seen[s.ID] = true
		for j := range s.Blocks {
			if t := s.Blocks[j].Table; t != nil {
				if err := t.check(); err != nil {
					return fmt.Errorf("table %d: %w", t.Number, err)
				}
			}
		}
	}
	return nil
}

func (t *Table) check() error {
	for i, row := range t.Heads {
		columns := 0
		for _, h := range row {
			columns += max(1, h.Span)
		}
		if columns != len(t.Columns) {
			return fmt.Errorf("row %d of its heads: expected %d columns, found %d", i+1, len(t.Columns), columns)
		}
	}
	for i := range t.Rows {
		if n := len(t.Rows[i].Cells); n != len(t.Columns) {
			return fmt.Errorf("row %d: expected %d cells, found %d", i+1, len(t.Columns), n)
		}
	}
	return nil
}
