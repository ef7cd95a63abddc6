package wording

import (
	"strconv"
	"strings"
)

// Cell is a text as a cell of a CSV file. A spreadsheet takes what begins with =, +, -
// or @ for a formula and computes it, so an apostrophe stands before it, as it does
// where somebody types such a text there. Numbers stay as they are. A text that has the
// apostrophes itself gets one more: readers take one away before such a character
// ([Text]).
func Cell(s string) string {
	if isFormula(strings.TrimLeft(s, "'")) {
		return "'" + s
	}
	return s
}

// Text is the text of a [Cell].
func Text(cell string) string {
	if rest, ok := strings.CutPrefix(cell, "'"); ok && isFormula(strings.TrimLeft(rest, "'")) {
		return rest
	}
	return cell
}

// Cells makes cells of texts, in their place.
func Cells(texts []string) []string {
	for i, s := range texts {
		texts[i] = Cell(s)
	}
	return texts
}

// isFormula reports whether a spreadsheet would compute a text.
func isFormula(s string) bool {
	if s == "" || !strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return false
	}
	_, err := strconv.ParseFloat(s, 64)
	return err != nil
}
