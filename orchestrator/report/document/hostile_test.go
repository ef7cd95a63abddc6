package document

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/figure"
	"linktrial/orchestrator/report/reporttest"
	"linktrial/orchestrator/report/wording"
)

// typed is a document with the text in every field that may have what people typed.
func typed(text string, svg []byte) *Document {
	d := &Document{Title: text, Subtitle: text, Author: text, Claim: text, Running: text, Partial: text, Sections: []Section{
		{ID: "one", Title: text, Level: 1, Blocks: []Block{
			paragraph(text), list(text), facts(Fact{Name: text, Value: text}, Fact{Name: text, Value: text, Mono: true}),
			tableBlock(&Table{Caption: text, Heads: [][]Head{{{Text: text, Span: 2}}, {{Text: text}, {Text: text}}}, Columns: []Column{{}, {Number: true, Mono: true}},
				Rows: []Row{{Cells: []string{text, text}, Group: true}}, Notes: []string{text}}),
			figureBlock(&Figure{Caption: text, Alt: text, SVG: svg}),
			{Words: &Words{Head: text, Paragraphs: []string{text, text}, Source: text}},
		}},
		{ID: "two", Title: text, Level: 2},
	}}
	d.number()
	return d
}

var hostileTexts = []string{
	`</svg><script>alert(1)</script>`, `</style><script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onload='alert(1)`,
	`</title></textarea><iframe src="https://a.example/">`, `<!--`, `]]>`, `<![CDATA[ ><script>`, `{{.Title}}`, `javascript:alert(1)`, `\22 } body { display: none }`,
	"a\nb\x1b[2J\x00", "\u202e\u2028", "&lt;script&gt;", "<plaintext>", "<math><mi><style><a title=\"</style><img onerror=alert(1)>\">", "\xff\xfe", "",
}

// labelled draws results of a treatment with the label.
func labelled(tb testing.TB, label string) []byte {
	tb.Helper()
	ds := reporttest.Campaign(reporttest.NewRun("r-1", "x", label, "y", label, 1000, 2,
		reporttest.Treatment{Name: "one", Label: label, Protocol: "tcp", KBps: 10}, reporttest.Treatment{Name: "two", Label: "b", Protocol: "tcp", KBps: 20}))
	ds.Plan = label
	svg, err := figure.Throughput(report.Analyse(ds, report.Options{}))
	require.NoError(tb, err)
	return svg
}

// FuzzHTML: whatever people typed, and whatever is said to be a drawing, the page has no element and no
// attribute but its own, and shows the text.
func FuzzHTML(f *testing.F) {
	for _, text := range hostileTexts {
		f.Add(text, []byte(svgStart+"<title>a</title></svg>"))
	}
	for _, svg := range refusedDrawings {
		f.Add("a", []byte(svg))
	}
	f.Fuzz(func(t *testing.T, text string, svg []byte) {
		if _, err := inlined(svg); err != nil {
			svg = []byte(`<svg xmlns="` + svgSpace + `"/>`)
		}
		tree := checkPage(t, rendered(t, typed(text, svg)))
		require.Len(t, all(tree, "h1"), 1)
		require.Len(t, all(tree, "section"), 2)
		// What a parser makes of a carriage return, of no character and of what is no UTF-8 is its own.
		if strings.ContainsAny(text, "\r\x00") || strings.ToValidUTF8(text, "") != text {
			return
		}
		require.Equal(t, text, textOf(all(tree, "h1")[0]))
		require.Equal(t, text, textOf(all(tree, "title")[0]))
		require.Equal(t, text+text, textOf(all(all(tree, "table")[1], "tbody")[0].FirstChild))
	})
}

// A label of a treatment stays a text of its drawing.
func TestLabelsInDrawings(t *testing.T) {
	for _, label := range hostileTexts {
		tree := checkPage(t, rendered(t, typed("a", labelled(t, label))))
		found := false
		for _, n := range all(tree, "title")[1:] {
			found = found || strings.Contains(textOf(n), wording.Clean(label))
		}
		require.True(t, found, "%q is in no text", label)
	}
}
