package typeset

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"linktrial/orchestrator/report/document"
)

// A word of more runes than this may break behind every partLength of them.
const (
	longWord   = 24
	partLength = 8
)

// setter turns texts into what the template sets.
type setter struct {
	plainly map[*document.Table]bool // tables that are set as lines
	spelled bool                     // a character was written as its number
}

// text is a string, or the parts between which its line may break.
func (s *setter) text(of string) any {
	t := s.plain(of)
	long := slices.ContainsFunc(strings.Fields(t), func(w string) bool { return len([]rune(w)) > longWord })
	if !long {
		return t
	}
	return slices.Collect(parts(t))
}

func (s *setter) texts(of []string) []any {
	out := make([]any, len(of))
	for i := range of {
		out[i] = s.text(of[i])
	}
	return out
}

// plain is a text of characters that the fonts of Typst have.
func (s *setter) plain(of string) string { return s.inFonts(norm.NFC.String(of)) }

// inFonts is a text, or the source of a drawing, with the number of each character that the
// fonts of Typst lack in its place: a PDF/UA has no such characters, and two texts should not
// look the same because of them.
func (s *setter) inFonts(of string) string {
	var b strings.Builder
	for _, r := range of { // what is no UTF-8 is U+FFFD
		switch {
		case unicode.IsSpace(r) && r != noBreakSpace:
			b.WriteByte(' ')
		case unicode.Is(settable, r):
			b.WriteRune(r)
		default:
			s.spelled = true
			fmt.Fprintf(&b, "[U+%04X]", r)
		}
	}
	return b.String()
}

const noBreakSpace = '\u00a0'

// parts cuts the long words of a text.
func parts(text string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		var part []rune
		for word := range strings.SplitAfterSeq(text, " ") {
			runes := []rune(word)
			if len([]rune(strings.TrimSuffix(word, " "))) <= longWord {
				part = append(part, runes...)
				continue
			}
			for ; len(runes) > partLength; runes = runes[partLength:] {
				if !yield(string(append(part, runes[:partLength]...))) {
					return
				}
				part = nil
			}
			part = slices.Clone(runes)
		}
		if len(part) > 0 {
			yield(string(part))
		}
	}
}

// settable are characters that the fonts in the wheel have and that Typst sets from left to
// right, one after the other: Latin, Greek, Cyrillic, and signs. Others it refuses, or fails
// at.
var settable = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x0020, 0x007e, 1}, {0x00a0, 0x00ac, 1}, {0x00ae, 0x02ff, 1},
		{0x0370, 0x0377, 1}, {0x037a, 0x037f, 1}, {0x0384, 0x038a, 1}, {0x038c, 0x038c, 1}, {0x038e, 0x03a1, 1}, {0x03a3, 0x03ff, 1},
		{0x0400, 0x0482, 1}, {0x048a, 0x04ff, 1}, {0x1e00, 0x1eff, 1},
		{0x2010, 0x2027, 1}, {0x2030, 0x2040, 1}, {0x2044, 0x2052, 1}, {0x2070, 0x2071, 1}, {0x2074, 0x208e, 1}, {0x2090, 0x209c, 1},
		{0x20a0, 0x20c0, 1}, {0x2100, 0x211e, 1}, {0x2126, 0x2126, 1}, {0x2153, 0x2184, 1}, {0x2190, 0x2328, 1}, {0x232b, 0x23ff, 1}, {0x2460, 0x2606, 1},
		{0x2713, 0x2714, 1}, {0x2717, 0x2718, 1}, {0x27e8, 0x27e9, 1}, {0xfffd, 0xfffd, 1},
	},
	LatinOffset: 2, // ranges of Latin-1 alone
}
