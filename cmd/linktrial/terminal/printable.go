package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns text from outside, such as a label or a driver's message, with
// every control character but a line break and a tab as its escape, such as \x1b: a
// terminal would obey them. Characters that reverse the direction of writing are
// escaped, too.
func Printable(s string) string {
	if !strings.ContainsFunc(s, obeyed) && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !obeyed(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return b.String()
}

// obeyed reports whether a terminal acts on a character instead of showing it.
func obeyed(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// Escaped is a writer whose output is [Printable]. Each write must hold whole
// characters.
func Escaped(w io.Writer) io.Writer { return escaper{w} }

// escaper writes what is [Printable]. Each write must hold whole characters.
type escaper struct{ w io.Writer }

func (e escaper) Write(b []byte) (int, error) {
	if _, err := io.WriteString(e.w, Printable(string(b))); err != nil {
		return 0, err
	}
	return len(b), nil
}
