package document

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// How wide a table may be, in characters (see [columnsOf]), and from how many rows on it is long.
const (
	narrowTable   = 40  // fits the width of a telephone
	largeTable    = 100 // fits an A4 page
	portraitTable = 120 // fits it in smaller letters
	// landscapeTable fits a landscape page in smaller letters.
	landscapeTable = 190
	longTable      = 40 // rows
)

// Widths of columns, in characters.
const (
	// mostText is what a column of words has where there is room: they go on in the next line.
	mostText = 24
	// leastText is what is left to it in a table that would be wider than a page (htmlstyle.go: 16ch).
	leastText = 16
	// leastMono is what is left together of a digest.
	leastMono = 12
	// beside is the space between columns.
	beside = 2
)

type htmlTable struct {
	*Table
	HeadRows         [][]htmlHead
	columns          []columnWidth
	width, narrowest int // of all columns
	shortest         int // with long words broken
}

type htmlHead struct {
	Text, Scope string
	Span        int
	Number      bool // above a column of numbers
}

// columnWidth is how wide a column is at most, and at least.
type columnWidth struct{ most, least int }

func tableOf(t *Table) *htmlTable {
	h := &htmlTable{Table: t, columns: columnsOf(t)}
	for _, c := range h.columns {
		h.width += c.most + beside
		h.narrowest += c.least + beside
		h.shortest += min(c.least, leastText) + beside
	}
	for _, row := range t.Heads {
		var heads []htmlHead
		at := 0
		for _, head := range row {
			c := htmlHead{Text: head.Text, Span: max(1, head.Span), Scope: "col"}
			if c.Span > 1 {
				c.Scope = "colgroup"
			}
			c.Number = c.Span == 1 && t.Columns[at].Number
			at += c.Span
			heads = append(heads, c)
		}
		h.HeadRows = append(h.HeadRows, heads)
	}
	return h
}

// columnsOf estimates the widths of columns, in characters: of each the widest cell and the longest word
// of its head, and with a line for every word.
func columnsOf(t *Table) []columnWidth {
	columns := make([]columnWidth, len(t.Columns))
	for i := range t.Rows {
		for j, cell := range t.Rows[i].Cells {
			w := widthOf(cell, t.Columns[j])
			columns[j] = columnWidth{max(columns[j].most, w.most), max(columns[j].least, w.least)}
		}
	}
	for _, row := range t.Heads {
		at := 0
		for _, h := range row {
			span := max(1, h.Span)
			word := (longestWord(h.Text) + span - 1) / span
			for j := at; j < at+span; j++ {
				columns[j] = columnWidth{max(columns[j].most, word), max(columns[j].least, word)}
			}
			at += span
		}
	}
	return columns
}

func widthOf(cell string, c Column) columnWidth {
	n := utf8.RuneCountInString(cell)
	switch {
	case c.Mono:
		return columnWidth{min(n, mostText), min(n, leastMono)}
	case c.Number:
		return columnWidth{n, n}
	}
	word := longestWord(cell)
	return columnWidth{max(min(n, mostText), word), max(min(n, leastText), word)}
}

func longestWord(s string) (n int) {
	for word := range strings.FieldsSeq(s) {
		n = max(n, utf8.RuneCountInString(word))
	}
	return n
}

func (t *htmlTable) landscape() bool { return t.narrowest > portraitTable }

// Scrolls reports whether there is a screen on which the table is scrolled: it can have the focus.
func (t *htmlTable) Scrolls() bool { return t.width > narrowTable || t.Long() }

// Long reports whether the table has an area of its own to scroll in, under its heads.
func (t *htmlTable) Long() bool { return len(t.Rows) > longTable }

// Class has the classes of the table, one for each column that is set in its own way: at its cells
// there would be 100 000 of them in a table of 10 000 rows. On paper no column is cut: of a broken
// table, words of its heads and long ones of its columns go on in the next line; of a crammed one, all.
func (t *htmlTable) Class() string {
	var words []string
	if t.width > largeTable {
		words = append(words, "dense")
	}
	if t.narrowest > landscapeTable {
		words = append(words, "broken")
	}
	if t.shortest > landscapeTable {
		words = append(words, "crammed")
	}
	for i, c := range t.Columns {
		if c.Number {
			words = append(words, numberClass(i))
		}
		if c.Mono {
			words = append(words, monoClass(i))
		}
		if t.wordy(i) {
			words = append(words, wordsClass(i))
		}
		if t.breaks(i) {
			words = append(words, breakClass(i))
		}
	}
	return strings.Join(words, " ")
}

// wordy reports whether others would leave a column of words less than it needs.
func (t *htmlTable) wordy(column int) bool {
	c := t.Columns[column]
	return t.width > portraitTable && !c.Number && !c.Mono && t.columns[column].most > leastText
}

// breaks reports whether a column has words that no page has room for.
func (t *htmlTable) breaks(column int) bool {
	return t.narrowest > landscapeTable && t.columns[column].least > leastText
}

func numberClass(column int) string { return fmt.Sprintf("n%d", column+1) }
func monoClass(column int) string   { return fmt.Sprintf("m%d", column+1) }
func wordsClass(column int) string  { return fmt.Sprintf("w%d", column+1) }
func breakClass(column int) string  { return fmt.Sprintf("b%d", column+1) }
