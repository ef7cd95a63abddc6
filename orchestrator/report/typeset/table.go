package typeset

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"linktrial/orchestrator/report/document"
	"linktrial/orchestrator/report/wording"
)

// mostCells is how many cells the tables of a document may have that are set cell by cell.
// Typst takes about 9 KiB and 60 µs for each. In a document with more, the tables of most
// rows are set as lines of text in a type of one width, each line or few a row, until the
// others have no more. A row of lines takes about 30 KiB.
const mostCells = 15000

// Widths, in points of 1/72 inch: of the text on a page (A4 without its margins), and of an
// average character and one of fixed width, in type sizes.
const (
	uprightWidth, flippedWidth = 481, 728
	averageWidth, fixedWidth   = 0.5, 0.602
)

// longTable is the rows from which columns are not measured cell by cell.
const longTable = 200

// Widths in characters: that from which a cell's text has several lines, and that to which
// words are rather set in several lines than in smaller type.
const (
	mostWide = 32
	fewWords = 20
)

// tableData is a table for the template.
type tableData struct {
	Kind      string   `json:"kind"`
	Number    int      `json:"number"`
	Caption   any      `json:"caption"`
	Size      float64  `json:"size"` // of the type, in points
	Landscape bool     `json:"landscape"`
	Weights   []int    `json:"weights"` // of columns; null: as wide as their cells
	Columns   []column `json:"columns"`
	Heads     [][]head `json:"heads"`
	Rows      [][]any  `json:"rows"`
	Groups    []int    `json:"groups"` // rows with a line above
	// HeadLines and Lines are the table set plainly, and then instead of heads and rows: of
	// each row its lines.
	HeadLines []string   `json:"head_lines"`
	Lines     [][]string `json:"lines"`
	Notes     []any      `json:"notes"`
}

type column struct {
	Number bool `json:"number"`
	Mono   bool `json:"mono"`
}

type head struct {
	Text   any `json:"text"`
	Span   int `json:"span"`
	Column int `json:"column"` // its first one
}

// plainTables are those of a document that are set as lines. Tables of a section that have the
// same columns, as one for each run, are set in the same way.
func plainTables(d *document.Document) map[*document.Table]bool {
	type alike struct {
		tables      []*document.Table
		rows, cells int
	}
	var all []*alike
	cells := 0
	for _, s := range d.Sections {
		known := map[string]*alike{}
		for _, b := range s.Blocks {
			if b.Table == nil {
				continue
			}
			key := fmt.Sprint(b.Table.Heads, b.Table.Columns)
			a := known[key]
			if a == nil {
				a = &alike{}
				known[key], all = a, append(all, a)
			}
			a.tables, a.rows, a.cells = append(a.tables, b.Table), a.rows+len(b.Table.Rows), a.cells+cellsOf(b.Table)
			cells += cellsOf(b.Table)
		}
	}
	slices.SortStableFunc(all, func(a, b *alike) int { return b.rows - a.rows })
	plain := map[*document.Table]bool{}
	for _, a := range all {
		if cells <= mostCells {
			break
		}
		cells -= a.cells
		for _, t := range a.tables {
			plain[t] = true
		}
	}
	return plain
}

func cellsOf(t *document.Table) int { return len(t.Rows) * len(t.Columns) }

func (s *setter) table(t *document.Table) tableData {
	out := tableData{Kind: "table", Number: t.Number, Caption: s.text(t.Caption), Columns: []column{}, Heads: [][]head{}, Rows: [][]any{}, Groups: []int{},
		HeadLines: []string{}, Lines: [][]string{}, Notes: s.texts(t.Notes)}
	for _, c := range t.Columns {
		out.Columns = append(out.Columns, column(c))
	}
	for i, row := range t.Rows {
		if row.Group && i > 0 {
			out.Groups = append(out.Groups, i)
		}
	}
	if s.plainly[t] {
		s.setPlainly(&out, t)
		return out
	}
	widths := s.widths(t, longestWord)
	total := 2 * float64(len(widths)) // what is between columns
	for i, w := range widths {
		if c := t.Columns[i]; !c.Number && !c.Mono {
			w = min(w, fewWords)
		}
		total += float64(w)
	}
	out.Size, out.Landscape = fitting(total*averageWidth, 9, 6.5)
	if len(t.Rows) > longTable {
		out.Weights = widths
	}
	for _, row := range t.Heads {
		out.Heads = append(out.Heads, s.heads(row))
	}
	for _, row := range t.Rows {
		out.Rows = append(out.Rows, s.texts(row.Cells))
	}
	return out
}

func (s *setter) heads(row []document.Head) []head {
	out := make([]head, 0, len(row))
	at := 0
	for _, h := range row {
		span := max(h.Span, 1)
		// A head is on each page of its table, and must leave room there.
		out = append(out, head{s.text(wording.Clip(h.Text, mostInHead)), span, at})
		at += span
	}
	return out
}

// fitting returns the type size, from the largest to the least, at which what is width type
// sizes wide fits onto a page, and whether that is one on its side.
func fitting(width, largest, least float64) (size float64, landscape bool) {
	for _, page := range []float64{uprightWidth, flippedWidth} {
		for size = largest; size >= least; size -= 0.5 {
			if width*size <= page {
				return size, page == flippedWidth
			}
		}
	}
	return least, true
}

// widths are those of columns in characters, none above mostWide; headWidth is that which a head
// takes at least.
func (s *setter) widths(t *document.Table, headWidth func(string) int) []int {
	out := make([]int, len(t.Columns))
	for _, row := range t.Heads {
		at := 0
		for _, h := range row {
			if h.Span <= 1 {
				out[at] = max(out[at], headWidth(s.plain(h.Text)))
			}
			at += max(h.Span, 1)
		}
	}
	for _, row := range t.Rows {
		for i, cell := range row.Cells {
			out[i] = max(out[i], utf8.RuneCountInString(s.plain(cell)))
		}
	}
	for i := range out {
		out[i] = min(max(out[i], 1), mostWide)
	}
	return out
}

func longestWord(text string) (n int) {
	for _, w := range strings.Fields(text) {
		n = max(n, utf8.RuneCountInString(w))
	}
	return n
}

// Type sizes of lines, in points, and the characters that a line has at most: in the least
// size on a page on its side.
const (
	largestPlain, leastPlain = 7.5, 5.0

	mostLine = 240
)

// setPlainly sets a table as lines: one or more for each row, also of heads, as the text of a
// cell that is longer than its column goes on in the next line. The lines fit onto a page.
func (s *setter) setPlainly(out *tableData, t *document.Table) {
	widths := s.widths(t, utf8.RuneCountInString)
	total := narrowed(widths, mostLine)
	out.Size, out.Landscape = fitting(float64(total)*fixedWidth, largestPlain, leastPlain)
	for _, row := range t.Heads {
		cells := make([]plainCell, len(row))
		at := 0
		for i, h := range row {
			width := -gap
			for range max(h.Span, 1) {
				width += widths[at] + gap
				at++
			}
			cells[i] = plainCell{s.plain(wording.Clip(h.Text, mostInHead)), width, t.Columns[at-1].Number && h.Span <= 1}
		}
		out.HeadLines = append(out.HeadLines, linesOf(cells)...)
	}
	for _, row := range t.Rows {
		cells := make([]plainCell, len(row.Cells))
		for j, cell := range row.Cells {
			cells[j] = plainCell{s.plain(cell), widths[j], t.Columns[j].Number}
		}
		out.Lines = append(out.Lines, linesOf(cells))
	}
}

// gap is the spaces between the columns of lines.
const gap = 2

// narrowed takes from the widest columns until a line has at most so many characters, and
// returns how many it has.
func narrowed(widths []int, most int) int {
	total := gap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > most; total-- {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		if widths[widest] == 1 {
			break
		}
		widths[widest]--
	}
	return total
}

type plainCell struct {
	text  string
	width int // characters
	right bool
}

// linesOf are the lines of a row.
func linesOf(cells []plainCell) []string {
	wraps, lines := make([][]string, len(cells)), make([]string, 1)
	for j, c := range cells {
		wraps[j] = wrapped(c.text, c.width)
		lines = slices.Grow(lines, len(wraps[j]))[:max(len(lines), len(wraps[j]))]
	}
	for k := range lines {
		line := make([]string, len(cells))
		for j, c := range cells {
			part := ""
			if k < len(wraps[j]) {
				part = wraps[j][k]
			}
			line[j] = padded(part, c.width, c.right)
		}
		lines[k] = joined(line)
	}
	return lines
}

// wrapped divides a text into lines of at most so many characters, between words where
// words are no longer.
func wrapped(text string, width int) (lines []string) {
	rest := []rune(text)
	for len(rest) > width {
		at := width
		for at > 0 && rest[at] != ' ' {
			at--
		}
		if at == 0 { // a word that is longer
			lines, rest = append(lines, string(rest[:width])), rest[width:]
			continue
		}
		lines, rest = append(lines, string(rest[:at])), rest[at+1:]
	}
	return append(lines, string(rest))
}

// padded fills a text up to a width, with spaces that Typst keeps.
func padded(text string, width int, right bool) string {
	fill := strings.Repeat(string(noBreakSpace), max(0, width-utf8.RuneCountInString(text)))
	if right {
		return fill + text
	}
	return text + fill
}

func joined(cells []string) string {
	line := slices.Clone(cells)
	return strings.TrimRight(strings.Join(line, " "+string(noBreakSpace)), " "+string(noBreakSpace))
}
