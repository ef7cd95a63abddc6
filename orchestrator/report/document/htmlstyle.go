package document

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"strings"

	"linktrial/orchestrator/report/wording"
)

//go:embed report.css
var style string

// wordsStyle is the style of what directors wrote.
//
//go:embed words.css
var wordsStyle string

// longestLine is how much of a line in a page's margin is shown, in characters: two lines.
const longestLine = 240

// styleOf is the whole style of a page: report.css, words.css where directors wrote something, the lines in the margins of printed pages
// (CSS Paged Media 3, 4.2), and a rule for every column that some table has of numbers or digests.
func styleOf(p *htmlPage) string {
	var b strings.Builder
	b.WriteString(style)
	if p.hasWords() {
		b.WriteString(wordsStyle)
	}
	fmt.Fprintf(&b, "@page {\n  @top-left { content: %s; }\n", cssString(wording.Clip(p.Running, longestLine)))
	if p.Partial != "" {
		fmt.Fprintf(&b, "  @bottom-left { content: %s; }\n", cssString(wording.Clip(p.Partial, longestLine)))
	}
	b.WriteString("}\n")
	var numbers, monos, words, broken int // columns
	for t := range p.tables() {
		for i, c := range t.Columns {
			if c.Number {
				numbers = max(numbers, i+1)
			}
			if c.Mono {
				monos = max(monos, i+1)
			}
			if t.wordy(i) {
				words = max(words, i+1)
			}
			if t.breaks(i) {
				broken = max(broken, i+1)
			}
		}
	}
	columnRules(&b, numbers, numberClass, "text-align: right; white-space: nowrap;")
	columnRules(&b, monos, monoClass, "font-family: var(--mono); overflow-wrap: anywhere;")
	columnRules(&b, words, wordsClass, "min-width: 16ch;")
	b.WriteString("@media print {\n")
	columnRules(&b, broken, breakClass, "min-width: 14ch; overflow-wrap: anywhere; white-space: normal;")
	b.WriteString("}\n")
	return b.String()
}

// columnRules gives the cells of a table's column what its class stands for. Rules of report.css for
// print come before these: they have more of a selector.
func columnRules(b *strings.Builder, columns int, class func(int) string, declarations string) {
	for i := range columns {
		fmt.Fprintf(b, ":where(.%s > tbody > tr) > :nth-child(%d)", class(i), i+1)
		if i+1 < columns {
			b.WriteString(",\n")
		}
	}
	if columns > 0 {
		fmt.Fprintf(b, " { %s }\n", declarations)
	}
}

// cssString quotes a text for a style: all but ASCII letters, digits and blanks as their numbers, each
// ended by a blank (CSS Syntax 3, 4.3.7), so that no text ends the string or the style.
func cssString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		if r == ' ' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, `\%x `, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// policyFor is a Content-Security-Policy (CSP 3) under which a page loads nothing, runs nothing,
// and has this style alone.
func policyFor(style string) string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'"
}
