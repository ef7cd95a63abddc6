package document

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

// TestChaptersOfAllDatasets: whatever a campaign is, its chapters have no empty table, list,
// paragraph or section, each row has a cell a column, and texts have no control character.
func TestChaptersOfAllDatasets(t *testing.T) {
	chapters := map[string]func(*report.Analysis) ([]Section, error){"conclusion": conclusion, "conditions": conditions, "method": method, "definitions": definitions, "provenance": provenance}
	sets := reporttest.Datasets()
	sets["described"] = described()
	aborted := reporttest.Campaign(reporttest.Quickstart())
	aborted.Runs[0].State, aborted.Complete = "aborted", false
	for i := range aborted.Runs[0].Trials {
		aborted.Runs[0].Trials[i].Attempts, aborted.Runs[0].Trials[i].Verdict = nil, ""
	}
	sets["aborted"] = aborted
	for name, ds := range sets {
		v := report.Analyse(ds, report.Options{Bootstrap: true})
		for chapter, of := range chapters {
			sections, err := of(v)
			require.NoError(t, err)
			for i := range sections {
				checkSection(t, name+", "+chapter, &sections[i], i+1 < len(sections) && sections[i+1].Level == 2)
			}
		}
	}
}

func checkSection(t *testing.T, of string, s *Section, parts bool) {
	t.Helper()
	assert.True(t, len(s.Blocks) > 0 || s.Level == 1 && parts, "%s: section %s has no content", of, s.ID)
	for _, b := range s.Blocks {
		assert.True(t, b.Paragraph != "" || len(b.List) > 0 || len(b.Facts) > 0 || b.Table != nil || b.Figure != nil, "%s: empty block in %s", of, s.ID)
		if b.Table == nil {
			continue
		}
		require.NotEmpty(t, b.Table.Rows, "%s: empty table %s", of, b.Table.Caption)
		require.Len(t, b.Table.Heads[0], len(b.Table.Columns))
		for _, r := range b.Table.Rows {
			require.Len(t, r.Cells, len(b.Table.Columns))
		}
	}
	for _, text := range textsOf([]Section{*s}) {
		assert.NotContains(t, text, "<nil>")
		assert.False(t, strings.ContainsFunc(text, unicode.IsControl), "%s: control character in %q", of, text)
	}
}

func TestSpreadText(t *testing.T) {
	var s spread
	s.add(0, "a")
	s.add(1, "a")
	assert.Equal(t, "a", s.text(2, 2))
	assert.Equal(t, "a (runs 1, 2)", s.text(3, 3), "the third run says nothing")
	s.add(2, "b")
	s.add(2, "b")
	assert.Equal(t, "a (runs 1, 2); b (run 3)", s.text(3, 3))
	for i := range 20 {
		s.add(3+i, strings.Repeat("x", i+1))
	}
	assert.True(t, strings.HasSuffix(s.text(23, 23), "; 14 more"), s.text(23, 23))
}

func TestExact(t *testing.T) {
	for text, x := range map[string]float64{"4110000": 4110000.0000000005, "0.000472": 0.000472, "0": 0, "-76.96": -76.96, "6800000": 6.8e6, "0.1": 0.1} {
		assert.Equal(t, text, exact(x))
	}
}
