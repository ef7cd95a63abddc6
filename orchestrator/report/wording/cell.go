package wording

import (
	"strconv"
	"strings"
)

// Cell is a text as a cell of a CSV file. A spreadsheet takes what begins with =, +, -
// or @ for a formula and computes it, so an apostrophe stands before it, as it does
// where somebody types such a text there. Numbers stay as they are. A text that has the
// apostrophes itself gets one more: readers take one away where one of these characters
// follows the apostrophes ([Text]).
func Cell(s string) string {
	rest := strings.TrimLeft(s, "'")
	if beginsFormula(rest) && (rest != s || !isNumber(s)) {
		return "'" + s
	}
	return s
}

// Text is the text of a [Cell].
func Text(cell string) string {
	if rest, ok := strings.CutPrefix(cell, "'"); ok && beginsFormula(strings.TrimLeft(rest, "'")) {
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

// beginsFormula reports whether a text begins as a formula does, or a signed number.
func beginsFormula(s string) bool { return s != "" && strings.ContainsRune("=+-@\t\r", rune(s[0])) }

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}
