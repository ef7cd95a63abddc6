package render

import (
	"fmt"
	"strings"

	"golang.org/x/text/unicode/norm"

	"linktrial/orchestrator/report/wording"
)

// latexSpecial is what TeX would read as markup, and the signs that our own
// texts use, in commands that plain LaTeX with its default fonts has.
var latexSpecial = map[rune]string{
	'[': `{[}`, '*': `{*}`, // at the begin of a row they would be options of the end of the one before
	'\\': `\textbackslash{}`, '{': `\{`, '}': `\}`, '$': `\$`, '&': `\&`, '#': `\#`, '%': `\%`, '_': `\_`,
	'^': `\textasciicircum{}`, '~': `\textasciitilde{}`, '<': `$<$`, '>': `$>$`, '|': `$|$`, '"': `''`,
	'–': `--`, '—': `---`, '−': `$-$`, '×': `$\times$`, '·': `$\cdot$`, '±': `$\pm$`, '°': `$^\circ$`, 'τ': `$\tau$`, 'µ': `$\mu$`, 'μ': `$\mu$`,
	'≤': `$\leq$`, '≥': `$\geq$`, '…': `\ldots{}`, '’': `'`, '‘': "`", '“': "``", '”': `''`, 'ß': `\ss{}`, 'æ': `\ae{}`, 'Æ': `\AE{}`,
	'ø': `\o{}`, 'Ø': `\O{}`, 'œ': `\oe{}`, 'Œ': `\OE{}`, 'ł': `\l{}`, 'Ł': `\L{}`, 'ı': `\i{}`, '²': `$^2$`, '³': `$^3$`,
}

// latexAccents are the commands for combining characters.
var latexAccents = map[rune]string{
	'\u0300': "`", '\u0301': `'`, '\u0302': `^`, '\u0303': `~`, '\u0304': `=`, '\u0306': `u`, '\u0307': `.`, '\u0308': `"`,
	'\u030A': `r`, '\u030B': `H`, '\u030C': `v`, '\u0323': `d`, '\u0327': `c`, '\u0331': `b`,
}

// tex writes text of others as LaTeX in ASCII. A character that needs further
// packages appears as its code point, so that nothing is lost and the document
// compiles.
func tex(s string) string {
	var b strings.Builder
	rs := []rune(norm.NFD.String(wording.Clean(s)))
	for i, r := range rs {
		next := rune(0)
		if i+1 < len(rs) {
			next = rs[i+1]
		}
		accent, combined := latexAccents[next]
		switch special := latexSpecial[r]; {
		case special == "" && r >= ' ' && r < 0x7f && combined:
			b.WriteString(`\` + accent + `{` + string(r) + `}`)
		case special != "":
			b.WriteString(special)
		case r >= ' ' && r < 0x7f:
			b.WriteRune(r)
			// "--" and "---" would become dashes, "?`" and "!`" turned marks.
			if strings.ContainsRune("-?!'`,", r) && strings.ContainsRune("-`',", next) && next != 0 {
				b.WriteString("{}")
			}
		case latexAccents[r] != "" && i > 0 && rs[i-1] >= ' ' && rs[i-1] < 0x7f && latexSpecial[rs[i-1]] == "":
			// written with the letter before it
		default:
			fmt.Fprintf(&b, `\texttt{U+%04X}`, r)
		}
	}
	return b.String()
}

// texBreaks writes text of others for a paragraph: TeX may break a word that has
// more than forty characters after each ten of them.
func texBreaks(s string) string {
	words := strings.Split(wording.Clean(s), " ")
	for i, w := range words {
		rs := []rune(w)
		if len(rs) <= 40 {
			words[i] = tex(w)
			continue
		}
		var pieces []string
		for _, line := range chunks(rs, 10) {
			pieces = append(pieces, tex(string(line)))
		}
		words[i] = strings.Join(pieces, `\hspace{0pt}`)
	}
	return strings.Join(words, " ")
}

// chunks divides characters into pieces of n; a combining character stays with its letter.
func chunks(rs []rune, n int) (pieces [][]rune) {
	for len(rs) > 0 {
		k := min(n, len(rs))
		for k < len(rs) && latexAccents[rs[k]] != "" {
			k++
		}
		pieces, rs = append(pieces, rs[:k]), rs[k:]
	}
	return pieces
}

// texWidths are the widths of the characters from the blank to the tilde in pt, in
// Computer Modern Roman of 7 pt (cmr7, the size \scriptsize of a document of 10 pt).
var texWidths = [...]float64{
	2.70, 2.27, 3.99, 6.57, 3.99, 6.57, 6.14, 2.27, 3.13, 3.13, 3.99, 6.14, 2.27, 2.70, 2.27, 3.99,
	3.99, 3.99, 3.99, 3.99, 3.99, 3.99, 3.99, 3.99, 3.99, 3.99, 2.27, 2.27, 2.27, 6.14, 3.78, 3.78,
	6.14, 5.91, 5.60, 5.71, 6.03, 5.38, 5.16, 6.19, 5.91, 2.89, 4.09, 6.12, 4.95, 7.20, 5.91, 6.14,
	5.38, 6.14, 5.81, 4.42, 5.71, 5.91, 5.91, 8.06, 5.91, 5.91, 4.85, 2.27, 3.99, 2.27, 3.99, 2.27,
	2.27, 3.99, 4.42, 3.56, 4.42, 3.56, 2.48, 3.99, 4.42, 2.27, 2.48, 4.21, 2.27, 6.57, 4.42, 3.99,
	4.42, 4.21, 3.13, 3.17, 3.13, 4.42, 4.21, 5.71, 4.21, 4.21, 3.56, 3.99, 7.98, 3.99, 3.99,
}

// texWidth is how wide s is as [tex] writes it in \scriptsize, in pt, and at least
// that: signs that are commands count as the widest of them.
func texWidth(s string) float64 {
	var w float64
	for _, r := range norm.NFD.String(wording.Clean(s)) {
		switch {
		case latexAccents[r] != "":
		case latexSpecial[r] != "":
			w += 9
		case r >= ' ' && r <= '~':
			w += texWidths[r-' ']
		default:
			w += 7 * 3.72 // \texttt{U+12345}
		}
	}
	return w
}

// texWrap divides text into lines that are at most width pt wide, at blanks, and
// within words that are wider.
func texWrap(s string, width float64) []string {
	lines := []string{""}
	for _, word := range strings.Fields(wording.Clean(s)) {
		last := &lines[len(lines)-1]
		if *last != "" && texWidth(*last+" "+word) > width {
			lines = append(lines, "")
			last = &lines[len(lines)-1]
		}
		if *last != "" {
			*last += " "
		}
		for _, r := range chunks([]rune(norm.NFD.String(word)), 1) {
			if *last != "" && texWidth(*last+string(r)) > width {
				lines = append(lines, "")
				last = &lines[len(lines)-1]
			}
			*last += string(r)
		}
	}
	return lines
}
