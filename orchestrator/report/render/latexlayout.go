package render

import "linktrial/orchestrator/report"

// Sizes of the page in pt, which the preamble sets in mm, and of what tables have on it.
const (
	latexPageWidth   = 788.0 // 277 mm
	latexTableHeight = 480.0 // 190 mm without the line over the first table
	latexLine        = 8.0   // \scriptsize
	latexSeparation  = 6.0   // twice \tabcolsep
	latexRule        = 0.4
	latexLabelWidth  = 120.0 // of treatments' names: longer ones take several lines
	latexHeadWidth   = 90.0  // of a column's heading
)

// latexColumn is one radio under one topology.
type latexColumn struct {
	table *report.RunTable
	lines []latexText // its heading
}

// latexText is text of a cell.
type latexText struct {
	text string
	emph bool
}

func (t latexText) tex() string {
	if t.emph {
		return `\emph{` + tex(t.text) + `}`
	}
	return tex(t.text)
}

// width is in pt, and at least what TeX takes: the slanted letters are up to a tenth wider.
func (t latexText) width() float64 {
	if t.emph {
		return 1.1 * texWidth(t.text)
	}
	return texWidth(t.text)
}

// width is what the column takes on the page, in pt.
func (c *latexColumn) width(look latexLook) float64 {
	var w float64
	for _, l := range c.lines {
		w = max(w, l.width())
	}
	for i := range c.table.Rows {
		for j, row := range look.rows {
			w = max(w, latexCell(c.table, c.table.Rows[i].Treatment, j, row, look.rate).width())
		}
	}
	return w + latexSeparation
}

// latexGroup is one topology with its runs.
type latexGroup struct {
	heading string
	columns []latexColumn
	width   float64 // of its columns together, in pt
}

// lines are the heading's lines: it may be as wide as its columns, or as a column's heading.
func (g *latexGroup) lines() []string {
	return texWrap(g.heading, max(g.width-latexSeparation, latexHeadWidth))
}

// total is what the group takes on the page, in pt.
func (g *latexGroup) total() float64 {
	w := g.width
	for _, l := range g.lines() {
		w = max(w, texWidth(l)+latexSeparation)
	}
	return w + latexRule
}

// latexPages divides the columns among tables that are as wide as the page at most.
func latexPages(groups []latexGroup, look latexLook) (pages [][]latexGroup) {
	for _, g := range groups {
		begun := false // on the last page
		for _, c := range g.columns {
			w := c.width(look)
			with := latexGroup{heading: g.heading, columns: []latexColumn{c}, width: w}
			if begun {
				page := pages[len(pages)-1]
				last := page[len(page)-1]
				with.columns, with.width = append(last.columns, c), last.width+w
				if pageWidth(page[:len(page)-1])+with.total() <= latexPageWidth {
					page[len(page)-1] = with
					continue
				}
				with.columns, with.width = []latexColumn{c}, w
			}
			if len(pages) == 0 || pageWidth(pages[len(pages)-1])+with.total() > latexPageWidth {
				pages = append(pages, nil)
			}
			pages[len(pages)-1] = append(pages[len(pages)-1], with)
			begun = true
		}
	}
	return pages
}

// pageWidth is what the names and these groups take, in pt.
func pageWidth(groups []latexGroup) float64 {
	w := latexLabelWidth + latexSeparation + texWidth(latexDelivery.name) + latexSeparation + 3*latexRule
	for i := range groups {
		w += groups[i].total()
	}
	return w
}

// latexGroups are the topologies in the order of the plan, each with its runs.
func latexGroups(tables []report.RunTable) (groups []latexGroup) {
	for _, g := range report.ByTopology(tables) {
		out := latexGroup{heading: g.Title}
		if g.SameSize {
			out.heading += " (" + kilobytes(g.Tables[0].SizeBytes) + ")"
		}
		for _, t := range g.Tables {
			out.columns = append(out.columns, latexColumn{table: t, lines: headingLines(t, !g.SameSize)})
		}
		groups = append(groups, out)
	}
	return groups
}

// headingLines are the lines of a column's heading: a title or setting of several
// parts takes a line each, so that columns stay narrow.
func headingLines(t *report.RunTable, withSize bool) (lines []latexText) {
	size := ""
	if withSize {
		size = kilobytes(t.SizeBytes)
	}
	for _, part := range t.ColumnParts(size) {
		for _, line := range texWrap(part, latexHeadWidth) {
			if line != "" {
				lines = append(lines, latexText{text: line})
			}
		}
	}
	if t.Partial {
		lines = append(lines, latexText{text: "partial", emph: true})
	}
	if x := t.Imported; x != nil {
		lines = append(lines, latexText{text: "imported", emph: true})
		for _, line := range texWrap(x.Campaign, latexHeadWidth) {
			lines = append(lines, latexText{text: line})
		}
	}
	return lines
}
