package typeset

import (
	"slices"
	"strings"
	"unicode/utf8"

	"linktrial/orchestrator/report/document"
	"linktrial/orchestrator/report/wording"
)

// mostCells is how many cells a document may have for all of its tables to be set cell by
// cell. Typst takes about 9 KiB and 60 µs for each, and longer with the length of a table. In
// a document with more, tables of more than longTable rows are set as lines of text in a type
// of one width, each a row.
const (
	mostCells = 25000
	longTable = 200
)

// Widths, in points of 1/72 inch: of the text on a page (A4 without its margins), and of an
// average character and one of fixed width, in type sizes.
const (
	uprightWidth, flippedWidth = 481, 728
	averageWidth, fixedWidth   = 0.5, 0.602
)

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
	// HeadLines and Lines are the table set plainly, and then instead of heads and rows.
	HeadLines []string `json:"head_lines"`
	Lines     []string `json:"lines"`
	Notes     []any    `json:"notes"`
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

func cellsOf(d *document.Document) (n int) {
	for _, s := range d.Sections {
		for _, b := range s.Blocks {
			if b.Table != nil {
				n += len(b.Table.Rows) * len(b.Table.Columns)
			}
		}
	}
	return n
}

func (s *setter) table(t *document.Table) tableData {
	out := tableData{Kind: "table", Number: t.Number, Caption: s.text(t.Caption), Columns: []column{}, Heads: [][]head{}, Rows: [][]any{}, Groups: []int{},
		HeadLines: []string{}, Lines: []string{}, Notes: s.texts(t.Notes)}
	for _, c := range t.Columns {
		out.Columns = append(out.Columns, column(c))
	}
	if s.plainly && len(t.Rows) > longTable {
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
	for i, row := range t.Rows {
		out.Rows = append(out.Rows, s.texts(row.Cells))
		if row.Group && i > 0 {
			out.Groups = append(out.Groups, i)
		}
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

// setPlainly sets a table as lines: one for each row of heads, and one or more for each row,
// as the text of a cell that is longer than its column goes on in the next line. Groups have
// no line above.
func (s *setter) setPlainly(out *tableData, t *document.Table) {
	widths := s.widths(t, utf8.RuneCountInString)
	total := 2 * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	out.Size, out.Landscape = fitting(float64(total)*fixedWidth, 7.5, 5)
	for _, row := range t.Heads {
		var line []string
		at := 0
		for _, h := range row {
			width := -2
			for range max(h.Span, 1) {
				width += widths[at] + 2
				at++
			}
			line = append(line, padded(s.plain(wording.Clip(h.Text, mostInHead)), width, t.Columns[at-1].Number && h.Span <= 1))
		}
		out.HeadLines = append(out.HeadLines, joined(line))
	}
	for _, row := range t.Rows {
		cells, lines := make([][]string, len(row.Cells)), 1
		for j, cell := range row.Cells {
			cells[j] = wrapped(s.plain(cell), widths[j])
			lines = max(lines, len(cells[j]))
		}
		for k := range lines {
			line := make([]string, len(cells))
			for j, parts := range cells {
				part := ""
				if k < len(parts) {
					part = parts[k]
				}
				line[j] = padded(part, widths[j], t.Columns[j].Number)
			}
			out.Lines = append(out.Lines, joined(line))
		}
	}
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
