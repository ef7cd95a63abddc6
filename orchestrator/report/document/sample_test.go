package document

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/figure"
	"linktrial/orchestrator/report/reporttest"
)

// sample is a document with every kind of block: drawings of results, a table with two rows of heads,
// one that no upright page holds, and one of many rows.
func sample(tb testing.TB, rows int) *Document {
	tb.Helper()
	const words = "The lead of BBR over CUBIC is 1.42 times at K Lot, and the 95 % interval from 1.31 to 1.55 does not have 1 in it. "
	d := &Document{
		Title: "Field trial quickstart", Subtitle: "Campaign c-20260314-1",
		Running: "quickstart · campaign c-20260314-1 · emulated, real time",
		Partial: "Not the whole campaign: runs of it were still under way, or did not come to their end.",
		Sections: []Section{
			{ID: "conclusion", Title: "Conclusion", Level: 1, Blocks: []Block{
				paragraph(words + words + words),
				list("At K Lot: BBR.", "At the Flag Pole: not decided. "+words),
			}},
			{ID: "conditions", Title: "Conditions", Level: 1, Blocks: []Block{facts(
				Fact{Name: "Radio", Value: "AN/PRC-117G, ANW2C"}, Fact{Name: "Run sheet", Value: fmt.Sprintf("%064x", 12345678), Mono: true},
				Fact{Name: "What was emulated and what was real", Value: words},
			)}},
			{ID: "results", Title: "Results", Level: 1, Blocks: []Block{paragraph(words)}},
			{ID: "results-k-lot", Title: "K Lot", Level: 2, Blocks: []Block{tableBlock(throughputTable())}},
			{ID: "results-drawings", Title: "Drawings", Level: 2, Blocks: sampleDrawings(tb)},
			{ID: "wide", Title: "Requirements", Level: 2, Blocks: []Block{paragraph(words), tableBlock(wideTable())}},
			{ID: "appendix", Title: "Every trial", Level: 1, Blocks: []Block{tableBlock(trialTable(rows)), paragraph(words)}},
		},
	}
	d.number()
	return d
}

// throughputTable has two rows of heads over seven columns.
func throughputTable() *Table {
	t := &Table{
		Caption: "Throughput and time of delivery at K Lot",
		Heads: [][]Head{
			{{}, {Text: "Throughput (KB/s)", Span: 3}, {Text: "Time of delivery (s)", Span: 3}},
			{{Text: "Treatment"}, {Text: "Minimum"}, {Text: "Mean ± SD"}, {Text: "Maximum"}, {Text: "Minimum"}, {Text: "Mean ± SD"}, {Text: "Maximum"}},
		},
		Columns: []Column{{}, {Number: true}, {Number: true}, {Number: true}, {Number: true}, {Number: true}, {Number: true}},
		Notes:   []string{"SD: standard deviation.", "Two trials of UDT were repeated after the limit of 300 s."},
	}
	for i, name := range []string{"CUBIC", "BBR", "SCTP", "UDT", "QUIC with a label that is much longer than others"} {
		t.Rows = append(t.Rows, Row{Group: i == 3, Cells: []string{name, "71.3", "82.8 ± 9.1", "99.0", "2.59", "3.11 ± 0.4", "3.62"}})
	}
	return t
}

// wideTable has more columns than an upright page holds.
func wideTable() *Table {
	t := &Table{Caption: "A table of many columns", Heads: [][]Head{nil}}
	row := Row{}
	for i := range 16 {
		t.Heads[0] = append(t.Heads[0], Head{Text: fmt.Sprintf("Metric %d, µs", i)})
		t.Columns = append(t.Columns, Column{Number: i > 1})
		row.Cells = append(row.Cells, fmt.Sprint("12.", 1000+i))
	}
	row.Cells[0] = "a name of a few words, as plans have them"
	t.Rows = []Row{row, row, row}
	return t
}

func trialTable(rows int) *Table {
	t := &Table{
		Caption: "Every trial, in the order in which they were run",
		Heads:   [][]Head{{{Text: "Trial"}, {Text: "Treatment"}, {Text: "Attempts"}, {Text: "Verdict"}, {Text: "KB/s"}, {Text: "Delivered (s)"}, {Text: "Digest"}, {Text: "Reason"}}},
		Columns: []Column{{Number: true}, {}, {Number: true}, {}, {Number: true}, {Number: true}, {Mono: true}, {}},
	}
	for i := range rows {
		t.Rows = append(t.Rows, Row{Group: i%4 == 0, Cells: []string{fmt.Sprint(i + 1), "CUBIC", "1", "succeeded", "82.81", "3.110", fmt.Sprintf("%012x", i*7919), ""}})
	}
	return t
}

func sampleDrawings(tb testing.TB) []Block {
	tb.Helper()
	var blocks []Block
	for _, name := range []string{"quickstart", "eventful"} {
		v := report.Analyse(reporttest.Datasets()[name], report.Options{})
		for what, draw := range []func(*report.Analysis) ([]byte, error){figure.Throughput, figure.Delivery} {
			svg, err := draw(v)
			require.NoError(tb, err)
			blocks = append(blocks, figureBlock(&Figure{Caption: fmt.Sprintf("Drawing %d of %s, with what was measured in every trial.", what, name), Alt: "Bars", SVG: svg}))
		}
	}
	return blocks
}
