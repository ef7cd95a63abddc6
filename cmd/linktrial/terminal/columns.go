package terminal

import (
	"bytes"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Measures of tables, in characters.
const (
	columnGap      = 2
	narrowestTable = 40 // a terminal that says it is narrower is not asked to hold a table
	usualColumn    = 14 // what needs no more is folded only where there is no other way
	leastColumn    = 8  // no column is folded to less
)

// Columns prints an aligned table to standard output: head and rows are lines whose cells
// are divided by tabs. On a terminal that is narrower than the table, the widest cells are
// folded; into a file or a pipe each row is one line, for programs that read it. Values may
// come from anywhere: see [Printable].
func Columns(head string, rows func(w io.Writer)) error {
	width := 0
	if fd := int(os.Stdout.Fd()); term.IsTerminal(fd) {
		if w, _, err := term.GetSize(fd); err == nil && w >= narrowestTable {
			width = w
		}
	}
	return writeColumns(escaper{os.Stdout}, width, head, rows)
}

// writeColumns prints a table of at most width characters a line; 0: of any width.
func writeColumns(to io.Writer, width int, head string, rows func(w io.Writer)) error {
	var text bytes.Buffer
	text.WriteString(head + "\n")
	rows(&text)
	var table [][]string
	for line := range strings.Lines(text.String()) {
		table = append(table, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	widths := columnWidths(table, utf8.RuneCountInString)
	if width > 0 {
		widths = shrink(widths, columnWidths(table, longestPart), width)
	}
	var out bytes.Buffer
	for _, row := range table {
		if len(row) == 1 && len(widths) > 1 {
			out.WriteString(row[0] + "\n")
			continue
		}
		writeRow(&out, row, widths, width > 0)
	}
	_, err := out.WriteTo(to)
	return err
}

// columnWidths returns the greatest size of a cell in each column. A line without a tab, such
// as a remark between rows, belongs to no column.
func columnWidths(table [][]string, size func(cell string) int) []int {
	var widths []int
	for _, row := range table {
		if len(row) == 1 && len(table[0]) > 1 {
			continue
		}
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], size(cell))
		}
	}
	return widths
}

// shrink returns narrower columns than need, so that the table has at most total characters
// a line. Columns that need no more than usualColumn keep what they need where there is
// room. What is left goes first to columns whose longest part would be broken, then to
// those that would have the most lines.
func shrink(need, parts []int, total int) []int {
	left := total - columnGap*(len(need)-1)
	most := usualColumn
	for ; most > leastColumn && bounded(need, most) > left; most-- {
	}
	widths := make([]int, len(need))
	for i := range widths {
		widths[i] = min(need[i], most)
		left -= widths[i]
	}
	for i := range widths {
		if more := parts[i] - widths[i]; more > 0 && more <= left {
			widths[i] += more
			left -= more
		}
	}
	for ; left > 0; left-- {
		fullest := -1
		for i, w := range widths {
			if w < need[i] && (fullest < 0 || need[i]*widths[fullest] > need[fullest]*w) {
				fullest = i
			}
		}
		if fullest < 0 {
			break
		}
		widths[fullest]++
	}
	return widths
}

// bounded is the sum of widths of which each is at most most.
func bounded(widths []int, most int) int {
	sum := 0
	for _, w := range widths {
		sum += min(w, most)
	}
	return sum
}

// writeRow prints a row, whose last cell is not padded, in as many lines as its cells need.
func writeRow(out *bytes.Buffer, row []string, widths []int, folds bool) {
	cells := make([][]string, len(row))
	lines := 1
	for i, cell := range row {
		cells[i] = []string{cell}
		if folds {
			cells[i] = fold(cell, widths[i])
		}
		lines = max(lines, len(cells[i]))
	}
	for l := range lines {
		var line strings.Builder
		for i := range row {
			part := ""
			if l < len(cells[i]) {
				part = cells[i][l]
			}
			line.WriteString(part)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]+columnGap-utf8.RuneCountInString(part)))
			}
		}
		out.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

// dividers are characters behind which a value may be broken.
const dividers = "|,/"

// longestPart is the length of the longest part of a text that [fold] need not break.
func longestPart(text string) int {
	longest, part := 0, 0
	for _, r := range text {
		if r == ' ' {
			part = 0
			continue
		}
		part++
		longest = max(longest, part)
		if strings.ContainsRune(dividers, r) {
			part = 0
		}
	}
	return longest
}

// fold breaks a text into lines of at most width characters: at spaces, which are left
// out, behind dividers, or anywhere where there is neither.
func fold(text string, width int) []string {
	rest := []rune(text)
	var lines []string
	for len(rest) > width {
		at, skip := width, 0
		for i := width; i > 0; i-- {
			if rest[i] == ' ' {
				at, skip = i, 1
				break
			}
			if strings.ContainsRune(dividers, rest[i-1]) {
				at = i
				break
			}
		}
		lines = append(lines, string(rest[:at]))
		rest = rest[at+skip:]
	}
	return append(lines, string(rest))
}
