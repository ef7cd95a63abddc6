package typeset_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/document"
	"linktrial/orchestrator/report/figure"
	"linktrial/orchestrator/report/reporttest"
)

const digest = "sha256:5f3a9c0d5f3a9c0d5f3a9c0d5f3a9c0d5f3a9c0d5f3a9c0d5f3a9c0d5f3a9c0d"

// sample has every kind of block; text is in every field that has one.
func sample(t *testing.T, text string) *document.Document {
	t.Helper()
	svg, err := figure.Throughput(report.Analyse(named(text), report.Options{}))
	require.NoError(t, err)
	narrow := &document.Table{Number: 1, Caption: text, Heads: [][]document.Head{{{Text: "Treatment"}, {Text: "Median"}, {Text: "Digest"}}},
		Columns: []document.Column{{}, {Number: true}, {Mono: true}}, Rows: []document.Row{{Cells: []string{text, "12.3", digest}}, {Cells: []string{"Haul", "1 234.5", digest}, Group: true}},
		Notes: []string{text}}
	wide := trials(60, 14)
	wide.Number, wide.Heads[0][0].Text, wide.Rows[3].Cells[2] = 2, text, text
	return &document.Document{Title: text, Subtitle: text, Author: text, Claim: text, Running: text, Partial: text, Sections: []document.Section{
		{ID: "conclusion", Title: text, Level: 1, Number: "1", Blocks: []document.Block{{Paragraph: text}, {List: []string{text, "second"}},
			{Words: &document.Words{Head: text, Paragraphs: []string{text, "third"}, Source: "Words of " + text}}}},
		{ID: "provenance", Title: "Provenance", Level: 1, Number: "2", Blocks: []document.Block{{Facts: []document.Fact{{Name: text, Value: text}, {Name: "Sheet", Value: digest, Mono: true}, {Name: text, Value: text, Mono: true}}}}},
		{ID: "results", Title: text, Level: 2, Number: "2.1", Blocks: []document.Block{{Table: narrow}, {Figure: &document.Figure{Number: 1, Caption: text, Alt: text, SVG: svg}}, {Table: wide}}},
		{ID: "appendix", Title: "Every trial", Level: 1, Number: "3", Blocks: []document.Block{{Table: trials(120, 8)}}},
	}}
}

// named is a dataset whose names are a text.
func named(text string) *report.Dataset {
	run := reporttest.NewRun("r1", "mpu4", text, "hill", text, 1<<20, 3, reporttest.BBR, reporttest.Treatment{Name: "t", Label: text, Protocol: "tcp", KBps: 90})
	return reporttest.Campaign(run)
}

// trials is a table of so many rows and columns, with a row of heads that span two columns.
func trials(rows, columns int) *document.Table {
	t := &document.Table{Number: 3, Caption: "Every trial", Heads: make([][]document.Head, 2)}
	for i := range columns {
		t.Columns = append(t.Columns, document.Column{Number: i%2 == 0})
		t.Heads[1] = append(t.Heads[1], document.Head{Text: fmt.Sprintf("Column %d", i)})
		if i%2 == 0 {
			t.Heads[0] = append(t.Heads[0], document.Head{Text: fmt.Sprintf("Pair %d", i/2), Span: 2})
		}
	}
	for i := range rows {
		cells := make([]string, columns)
		for j := range cells {
			cells[j] = fmt.Sprintf("%d.%d", i, j)
			if j == 1 {
				cells[j] = strings.Repeat("TCP Cubic ", 1+i%2)
			}
		}
		t.Rows = append(t.Rows, document.Row{Cells: cells, Group: i%10 == 0})
	}
	return t
}
