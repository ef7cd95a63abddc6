package rebuild

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Of differences, as they are shown.
const (
	mostShown = 60 // bytes of a value or of the part of a line that differs
	headShown = 40 // bytes of how a line begins, which names its row
)

// shorten is a text within quotes, short enough for a sentence.
func shorten(s string) string {
	if len(s) > mostShown {
		s = s[:mostShown]
		for !utf8.ValidString(s) && len(s) > mostShown-utf8.UTFMax {
			s = s[:len(s)-1]
		}
		s += "…"
	}
	return "“" + printable(s) + "”"
}

// printable is a stranger's text as it can be shown, on a terminal too.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}

// lineReader reads bytes and knows where it is.
type lineReader struct {
	in   *bufio.Reader
	line int    // from 1
	head []byte // how the line begins
	cell []byte // what was read since the last separator
	col  int    // bytes of the line that were read
}

// separators are between the values of a line.
const separators = ",;\t |\"<>&"

func newLineReader(r io.Reader) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(r, 64<<10), line: 1}
}

func (l *lineReader) took(b byte) {
	if b == '\n' {
		l.line, l.head, l.cell, l.col = l.line+1, l.head[:0], l.cell[:0], 0
		return
	}
	if strings.IndexByte(separators, b) >= 0 || len(l.cell) >= mostShown {
		l.cell = l.cell[:0]
	} else {
		l.cell = append(l.cell, b)
	}
	if l.col++; len(l.head) < headShown {
		l.head = append(l.head, b)
	}
}

// rest is the value in which the difference is and what follows it in the line. last is the
// byte that was read last.
func (l *lineReader) rest(last byte, end bool) string {
	switch {
	case end && len(l.cell) == 0:
		return "nothing more"
	case last == '\n' && len(l.cell) == 0:
		return "the end of the line"
	}
	text := string(l.cell)
	if !end {
		b, _ := l.in.Peek(mostShown + 1)
		text, _, _ = strings.Cut(text+string(append([]byte{last}, b...)), "\n")
	}
	return shorten(strings.TrimSuffix(text, "\r"))
}

// differsInLine is the first difference of two texts in a sentence; empty: there is none.
func differsInLine(bag, again io.Reader) (string, error) {
	x, y := newLineReader(bag), newLineReader(again)
	for {
		a, errA := x.in.ReadByte()
		b, errB := y.in.ReadByte()
		for _, err := range []error{errA, errB} {
			if err != nil && !errors.Is(err, io.EOF) {
				return "", err
			}
		}
		switch {
		case errA != nil && errB != nil:
			return "", nil
		case errA == nil && errB == nil && a == b:
			x.took(a)
			y.took(b)
			continue
		}
		begins := ""
		if x.col > len(x.cell) {
			begins = fmt.Sprintf(", which begins with %s, from byte %d on", shorten(string(x.head)), x.col-len(x.cell)+1)
		}
		return fmt.Sprintf("line %d%s: the bag has %s, and from the journals follows %s", x.line, begins, x.rest(a, errA != nil), y.rest(b, errB != nil)), nil
	}
}

// jsonPath is where in a document a decoder is.
type jsonPath []pathStep

type pathStep struct {
	object bool
	key    string
	index  int  // of an array's next element
	value  bool // of an object: the next token is a value
}

func (p jsonPath) String() string {
	var out strings.Builder
	for i, s := range p {
		switch {
		case !s.object:
			fmt.Fprintf(&out, "[%d]", s.index)
		case s.value || i < len(p)-1:
			if out.Len() > 0 {
				out.WriteByte('.')
			}
			out.WriteString(s.key)
		}
	}
	if out.Len() == 0 {
		return "the document"
	}
	return out.String()
}

// after moves on by a token.
func (p *jsonPath) after(t json.Token) {
	if n := len(*p); n > 0 {
		if top := &(*p)[n-1]; top.object && !top.value && t != json.Delim('}') {
			top.key, _ = t.(string)
			top.value = true
			return
		}
	}
	switch t {
	case json.Delim('{'), json.Delim('['):
		*p = append(*p, pathStep{object: t == json.Delim('{')})
		return
	case json.Delim('}'), json.Delim(']'):
		*p = (*p)[:len(*p)-1]
	}
	if n := len(*p); n > 0 {
		top := &(*p)[n-1]
		top.index, top.value = top.index+1, false
	}
}

// differsInJSON is the first difference of two documents in a sentence; empty: their values
// are the same, or one of them does not read.
func differsInJSON(bag, again io.Reader) string {
	x, y := json.NewDecoder(bag), json.NewDecoder(again)
	x.UseNumber()
	y.UseNumber()
	var at jsonPath
	for {
		a, errA := x.Token()
		b, errB := y.Token()
		if errA != nil || errB != nil {
			return ""
		}
		if a == b {
			at.after(a)
			continue
		}
		if n := len(at); n > 0 && at[n-1].object && !at[n-1].value {
			return fmt.Sprintf("%s: in the bag %s follows, and in what follows from the journals %s", at, asKey(a), asKey(b))
		}
		return fmt.Sprintf("%s is %s in the bag, and %s follows from the journals", at, asValue(a), asValue(b))
	}
}

func asKey(t json.Token) string {
	if name, ok := t.(string); ok {
		return "the key " + shorten(name)
	}
	return "its end"
}

func asValue(t json.Token) string {
	switch x := t.(type) {
	case nil:
		return "no value"
	case string:
		return shorten(x)
	case json.Delim:
		switch x {
		case '{':
			return "an object"
		case '[':
			return "a list"
		}
		return "at its end"
	}
	return fmt.Sprint(t)
}
