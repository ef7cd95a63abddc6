package document

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

func rendered(tb testing.TB, d *Document) string {
	tb.Helper()
	var b bytes.Buffer
	require.NoError(tb, HTML(&b, d))
	return b.String()
}

func parsed(tb testing.TB, page string) *html.Node {
	tb.Helper()
	tree, err := html.Parse(strings.NewReader(page))
	require.NoError(tb, err)
	return tree
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// all returns the elements of a name, in order.
func all(tree *html.Node, name string) (out []*html.Node) {
	for n := range tree.Descendants() {
		if n.Type == html.ElementNode && n.Data == name {
			out = append(out, n)
		}
	}
	return out
}

func textOf(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

// What elements and attributes a page has: neither runs or loads anything.
var (
	pageElements = strings.Fields(`html head meta title link style body a p strong header h1 div table caption thead tbody tr th td nav h2 h3 ol ul li
		span main section blockquote footer dl dt dd figure figcaption b ` + strings.Join(drawingElements, " "))
	pageAttributes = append(strings.Fields(`lang charset http-equiv content name rel href class id aria-hidden aria-label aria-labelledby role scope
		colspan tabindex`), drawingAttributes...)
)

// checkPage holds a page against what all pages have in common, whatever was written on them.
func checkPage(t *testing.T, page string) *html.Node {
	t.Helper()
	tree := parsed(t, page)
	ids := map[string]bool{}
	for n := range tree.Descendants() {
		if n.Type == html.CommentNode {
			t.Errorf("a comment: %q", n.Data)
		}
		if n.Type != html.ElementNode {
			continue
		}
		if !slices.Contains(pageElements, n.Data) {
			t.Errorf("an element %q", n.Data)
		}
		for _, a := range n.Attr {
			if !slices.Contains(pageAttributes, a.Key) {
				t.Errorf("an attribute %s=%q of %s", a.Key, a.Val, n.Data)
			}
			if a.Key == "id" {
				require.False(t, ids[a.Val], "two elements have the id %q", a.Val)
				ids[a.Val] = true
			}
		}
	}
	for n := range tree.Descendants() {
		if href := attribute(n, "href"); href != "" && href != "data:," {
			require.True(t, strings.HasPrefix(href, "#") && ids[href[1:]], "a link leads to %q, which is not there", href)
		}
		for id := range strings.FieldsSeq(attribute(n, "aria-labelledby")) {
			require.True(t, ids[id], "a label %q is not there", id)
		}
	}
	checkPolicy(t, tree)
	return tree
}

// checkPolicy holds the page's policy against its style.
func checkPolicy(t *testing.T, tree *html.Node) {
	t.Helper()
	styles := all(tree, "style")
	require.Len(t, styles, 1)
	sum := sha256.Sum256([]byte(textOf(styles[0])))
	for _, meta := range all(tree, "meta") {
		if attribute(meta, "http-equiv") == "Content-Security-Policy" {
			require.Equal(t, "default-src 'none'; img-src data:; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'; base-uri 'none'; form-action 'none'",
				attribute(meta, "content"))
			return
		}
	}
	t.Error("no Content-Security-Policy")
}

func TestHTMLIsOneFileWithoutRequests(t *testing.T) {
	page := rendered(t, sample(t, 300))
	checkPage(t, page)
	for _, address := range regexp.MustCompile(`(?i)[a-z]+://[^"'\s]*|@import|url\(`).FindAllString(page, -1) {
		require.Equal(t, svgSpace, address)
	}
	require.Equal(t, page, rendered(t, sample(t, 300)), "another time there were other bytes")
}

// The outline is what a screen reader goes by: one h1, and no level is left out.
func TestHTMLHasAnOutline(t *testing.T) {
	tree := checkPage(t, rendered(t, sample(t, 3)))
	require.Equal(t, "en", attribute(all(tree, "html")[0], "lang"))
	require.Len(t, all(tree, "h1"), 1)
	for _, name := range []string{"header", "nav", "main"} {
		require.Len(t, all(tree, name), 1, name)
	}
	require.Equal(t, "#"+attribute(all(tree, "main")[0], "id"), attribute(all(tree, "a")[0], "href"), "the skip link")
	contents := make([]string, 0, 7)
	for _, a := range all(all(tree, "nav")[0], "a") {
		contents = append(contents, textOf(a))
	}
	require.Equal(t, []string{"1 Conclusion", "2 Conditions", "3 Results", "3.1 K Lot", "3.2 Drawings", "3.3 Requirements", "4 Every trial"}, contents)
	var headings []string
	for _, s := range all(tree, "section") {
		for _, name := range []string{"h2", "h3"} {
			for _, h := range all(s, name) {
				headings = append(headings, name+" "+textOf(h))
			}
		}
	}
	require.Equal(t, []string{"h2 1 Conclusion", "h2 2 Conditions", "h2 3 Results", "h3 3.1 K Lot", "h3 3.2 Drawings", "h3 3.3 Requirements", "h2 4 Every trial"}, headings)
	drawings := 0
	for _, n := range all(tree, "div") {
		if attribute(n, "role") == "img" {
			drawings++
			require.NotEmpty(t, attribute(n, "aria-label"))
		}
	}
	require.Equal(t, 4, drawings)
	require.Len(t, all(tree, "figcaption"), 4)
}

func TestHTMLTables(t *testing.T) {
	tables := all(checkPage(t, rendered(t, sample(t, 300))), "table")
	require.Len(t, tables, 4) // the first is signed
	require.Equal(t, "RoleNameDateSignature", textOf(all(tables[0], "thead")[0]))
	require.Equal(t, "PreparedReviewedApproved", textOf(all(tables[0], "tbody")[0]))
	results := tables[1]
	require.Equal(t, "Table 1. Throughput and time of delivery at K Lot", textOf(all(results, "caption")[0]))
	require.Equal(t, "n2 n3 n4 n5 n6 n7", attribute(results, "class"))
	var heads []string
	for _, h := range all(all(results, "thead")[0], "th") {
		heads = append(heads, strings.TrimSpace(attribute(h, "scope")+" "+attribute(h, "colspan")+" "+attribute(h, "class"))+": "+textOf(h))
	}
	require.Equal(t, []string{
		"colgroup 3: Throughput (KB/s)", "colgroup 3: Time of delivery (s)", "col: Treatment",
		"col  number: Minimum", "col  number: Mean ± SD", "col  number: Maximum", "col  number: Minimum", "col  number: Mean ± SD", "col  number: Maximum",
	}, heads)
	for _, row := range all(all(results, "tbody")[0], "tr") {
		require.Len(t, all(row, "td"), 6)
		require.Equal(t, "row", attribute(all(row, "th")[0], "scope"))
	}
	for i, want := range []struct{ page, area string }{{"section", "scroll"}, {"div", "scroll"}, {"section", "scroll long"}} {
		area := tables[i+1].Parent
		require.Equal(t, want.area, attribute(area, "class"))
		require.Equal(t, "0", attribute(area, "tabindex"), "who has no pointer cannot scroll it")
		require.Equal(t, want.page, area.Parent.Data, "a division has a landscape page")
	}
}

// A table that is wider than any page has its words broken; none of its columns is cut.
func TestHTMLOfATableWiderThanPaper(t *testing.T) {
	wide := wideTable()
	for i := range wide.Rows {
		wide.Rows[i].Cells = slices.Clone(wide.Rows[i].Cells)
		wide.Rows[i].Cells[0] = strings.Repeat("wide", 40)
	}
	require.Equal(t, "dense w1 n3 n4 n5 n6 n7 n8 n9 n10 n11 n12 n13 n14 n15 n16", tableOf(wideTable()).Class())
	require.Equal(t, "dense broken w1 b1 n3 n4 n5 n6 n7 n8 n9 n10 n11 n12 n13 n14 n15 n16", tableOf(wide).Class())
	for i := range wide.Rows {
		for j := range wide.Rows[i].Cells {
			wide.Rows[i].Cells[j] = strings.Repeat("wide", 4)
		}
	}
	require.True(t, strings.HasPrefix(tableOf(wide).Class(), "dense broken crammed n3"), tableOf(wide).Class())
	require.False(t, tableOf(throughputTable()).landscape())
	small := tableOf(&Table{Columns: []Column{{}, {Number: true}}, Rows: []Row{{Cells: []string{"CUBIC", "1"}}}})
	require.False(t, small.Scrolls())
}

// A drawing whose letters would be too small on an upright page has a landscape one: with the heading
// before it, and that of its chapter.
func TestHTMLLandscape(t *testing.T) {
	wide := func() Block {
		return figureBlock(&Figure{SVG: []byte(`<svg xmlns="` + svgSpace + `" width="901.0"/>`)})
	}
	d := &Document{Sections: []Section{
		{ID: "a", Level: 1, Blocks: []Block{paragraph("a"), wide()}}, {ID: "b", Level: 1}, {ID: "c", Level: 2, Blocks: []Block{wide(), paragraph("b")}},
	}}
	d.number()
	p, err := pageOf(d)
	require.NoError(t, err)
	a, b, c := p.Parts[0], p.Parts[1], p.Parts[2]
	require.True(t, a.Lead == nil && !a.Landscape && !a.Rest[0].Landscape && a.Rest[1].Landscape)
	require.True(t, b.Landscape)
	require.True(t, c.Lead != nil && c.Lead.Figure != nil && len(c.Rest) == 1)
	divisions := 0
	for _, n := range all(checkPage(t, rendered(t, d)), "div") {
		if attribute(n, "class") == "landscape" {
			divisions++
		}
	}
	require.Equal(t, 2, divisions)
}

// What every printed page has beside its text.
func TestHTMLMargins(t *testing.T) {
	d := sample(t, 3)
	d.Running = "a \"b\" \\ </style>\n· ü"
	style := textOf(all(checkPage(t, rendered(t, d)), "style")[0])
	require.Contains(t, style, `@top-left { content: "a \22 b\22  \5c  \3c \2f style\3e \a \b7  \fc "; }`)
	require.Contains(t, style, `@bottom-left { content: "Not the whole campaign\3a `)
	d.Partial = ""
	page := rendered(t, d)
	require.NotContains(t, page, "@bottom-left { content")
	require.NotContains(t, page, `class="partial"`)
	require.NotContains(t, page, `class="margin bottom"`)
}

func TestHTMLRefuses(t *testing.T) {
	for want, spoil := range map[string]func(d *Document){
		`section 1: expected an id of small letters, digits and hyphens, found "a b"`: func(d *Document) { d.Sections[0].ID = "a b" },
		`section 2: another section has its id "conclusion"`:                          func(d *Document) { d.Sections[1].ID = "conclusion" },
		`section 2: expected level 1 or 2, found 3`:                                   func(d *Document) { d.Sections[1].Level = 3 },
		`section 1: expected a chapter before the first part of one`:                  func(d *Document) { d.Sections[0].Level = 2 },
		`table 1: row 1 of its heads: expected 7 columns, found 6`: func(d *Document) {
			d.Sections[3].Blocks[0].Table.Heads[0] = d.Sections[3].Blocks[0].Table.Heads[0][1:]
		},
		`table 1: row 2: expected 7 cells, found 1`: func(d *Document) { d.Sections[3].Blocks[0].Table.Rows[1].Cells = []string{"a"} },
		`figure 2: there is no drawing in it`:       func(d *Document) { d.Sections[4].Blocks[1].Figure.SVG = nil },
	} {
		d := sample(t, 3)
		spoil(d)
		var b bytes.Buffer
		require.EqualError(t, HTML(&b, d), "the report as HTML: "+want)
		require.Zero(t, b.Len(), "something was written all the same")
	}
}

// The reports of all datasets, hostile ones among them, are pages.
func TestHTMLOfDatasets(t *testing.T) {
	for name, ds := range reporttest.Datasets() {
		t.Run(name, func(t *testing.T) {
			d, err := Of(report.Analyse(ds, report.Options{}))
			require.NoError(t, err)
			checkPage(t, rendered(t, d))
		})
	}
}

// BenchmarkHTML is a report with 10 000 trials.
func BenchmarkHTML(b *testing.B) {
	d := sample(b, 10_000)
	size := 0
	for b.Loop() {
		size = len(rendered(b, d))
	}
	b.ReportMetric(float64(size), "bytes")
}
