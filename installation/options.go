package installation

import (
	"errors"
	"slices"
	"strings"
)

// errOpenQuote says that a list of flags cannot be told apart.
var errOpenQuote = errors.New("a quote is not closed")

// splitOptions reads words as systemd does where a unit names a variable without braces
// (systemd.service(5), "Command lines"): spaces part them, quotes hold them together, and
// after a backslash the next character is itself.
func splitOptions(text string) (words []string, err error) {
	var word strings.Builder
	var quote byte
	within := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			i++
			word.WriteByte(text[i])
			within = true
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, within = c, true
		case quote == 0 && blank(c):
			if within {
				words = append(words, word.String())
			}
			word.Reset()
			within = false
		default:
			word.WriteByte(c)
			within = true
		}
	}
	if quote != 0 {
		return nil, errOpenQuote
	}
	if within {
		words = append(words, word.String())
	}
	return words, nil
}

// joinOptions is the text that [splitOptions] reads as these words.
func joinOptions(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		if out[i] = w; w == "" || strings.ContainsAny(w, " \t\n\r\"'\\") {
			out[i] = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(w) + `"`
		}
	}
	return strings.Join(out, " ")
}

// option returns the value of a flag among words, the last one's where it is given several
// times, and the words without it. Flags without a value of their own are not for this.
func option(words []string, flag string) (value string, rest []string) {
	rest = slices.Clone(words)
	for i := 0; i < len(rest); {
		v, ok := strings.CutPrefix(rest[i], flag+"=")
		switch {
		case ok:
			value, rest = v, slices.Delete(rest, i, i+1)
		case rest[i] == flag && i+1 < len(rest):
			value, rest = rest[i+1], slices.Delete(rest, i, i+2)
		default:
			i++
		}
	}
	return value, rest
}
