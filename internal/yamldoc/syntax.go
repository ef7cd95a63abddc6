package yamldoc

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"linktrial/internal/unit"
)

// unreadable is the problem of a text that is too long or no text: the library
// names neither line nor column of these.
func unreadable(data []byte) *Problem {
	if len(data) > MaxText {
		return &Problem{Message: fmt.Sprintf("%s long, expected at most %s", unit.FormatBytes(int64(len(data))), unit.FormatBytes(MaxText))}
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return &Problem{Line: 1, Column: 1, Message: "not YAML: the text is encoded in UTF-16; save it as UTF-8"}
	}
	line, column := 1, 1
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			return &Problem{Line: line, Column: column, Message: fmt.Sprintf("not YAML: the byte 0x%02x is not UTF-8", data[i])}
		case r < ' ' && r != '\n' && r != '\r' && r != '\t', r == 0x7f, r >= 0x80 && r < 0xa0 && r != 0x85:
			return &Problem{Line: line, Column: column, Message: fmt.Sprintf("not YAML: the control character %U is in the text", r)}
		}
		if column++; r == '\n' {
			line, column = line+1, 1
		}
		i += n
	}
	return nil
}

// mark is a place in a text, from 1.
type mark struct{ line, column int }

// libraryError is what the YAML library knows of a syntax error. Its error has
// only a line, which is one off for some errors and that of the enclosing
// collection for others; the marks are in fields that it does not export.
type libraryError struct {
	problem, context         string
	problemMark, contextMark mark
	known                    bool
}

func readLibraryError(dec *yaml.Decoder) (e libraryError) {
	p := reflect.ValueOf(dec).Elem().FieldByName("parser")
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return e
	}
	if p = p.Elem().FieldByName("parser"); p.Kind() != reflect.Struct {
		return e
	}
	text := func(name string) string {
		if f := p.FieldByName(name); f.Kind() == reflect.String {
			return f.String()
		}
		return ""
	}
	at := func(name string) mark {
		m := p.FieldByName(name)
		if m.Kind() != reflect.Struct {
			return mark{}
		}
		line, column := m.FieldByName("line"), m.FieldByName("column")
		if !line.CanInt() || !column.CanInt() {
			return mark{}
		}
		return mark{int(line.Int()) + 1, int(column.Int()) + 1}
	}
	e = libraryError{problem: text("problem"), context: text("context"), problemMark: at("problem_mark"), contextMark: at("context_mark")}
	e.known = e.problem != "" && e.problemMark.line > 0
	return e
}

var (
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
	// blockKey is a line that begins a key of a block mapping.
	blockKey = regexp.MustCompile(`^\s*(- +)*("[^"]*"|'[^']*'|[A-Za-z0-9_.-]+)\s*:(\s|$)`)
)

// syntaxProblem says where and why a text is not YAML.
func syntaxProblem(data []byte, dec *yaml.Decoder, err error) Problem {
	msg := strings.TrimPrefix(err.Error(), "yaml: ")
	lines := strings.Split(string(data), "\n")
	if m := unknownAnchor.FindStringSubmatch(msg); m != nil {
		at := findAlias(lines, m[1])
		return problemAt(at, fmt.Sprintf("not YAML: the alias *%s refers to no anchor before it", m[1]))
	}
	e := readLibraryError(dec)
	if !e.known {
		return problemAt(clamp(lineOf(&msg), lines), "not YAML: "+msg)
	}
	open := openings(lines)
	if q := open.quote; q.line > 0 && q.line < e.problemMark.line {
		return problemAt(q, "not YAML: the quotation mark here is not closed on its line")
	}
	inFlow := strings.Contains(e.context, "flow ") // the library's word for brackets and braces
	if b := open.bracket; b.line > 0 && b.line <= e.problemMark.line && (inFlow || atEnd(e.problemMark, lines)) {
		what := "mapping in braces"
		if open.list {
			what = "list in brackets"
		}
		return problemAt(b, "not YAML: the "+what+" that begins here is not closed")
	}
	at := clamp(e.problemMark, lines)
	said := e.problem
	if strings.Contains(e.context, "simple key") {
		at = clamp(e.contextMark, lines)
		said = "a key without a colon: " + said
	}
	return problemAt(at, "not YAML: "+said)
}

func problemAt(at mark, msg string) Problem {
	return Problem{Line: at.line, Column: at.column, Message: message("%s", msg)}
}

// lineOf takes the line out of an error of the library, as far as it has one.
func lineOf(msg *string) mark {
	at := mark{1, 1}
	if rest, ok := strings.CutPrefix(*msg, "line "); ok {
		if num, after, ok := strings.Cut(rest, ": "); ok {
			if n, err := strconv.Atoi(num); err == nil {
				at.line, *msg = n, after
			}
		}
	}
	return at
}

// clamp brings a place beyond the text back to the end of its last line that has something.
func clamp(at mark, lines []string) mark {
	last := len(lines)
	for last > 1 && strings.TrimSpace(lines[last-1]) == "" {
		last--
	}
	if at.line > last {
		return mark{last, utf8.RuneCountInString(strings.TrimRight(lines[last-1], " \t\r")) + 1}
	}
	return mark{max(at.line, 1), max(at.column, 1)}
}

func atEnd(at mark, lines []string) bool {
	return at.line > clamp(at, lines).line || at.line >= len(lines)
}

func findAlias(lines []string, name string) mark {
	for i, line := range lines {
		for from := 0; ; {
			k := strings.Index(line[from:], "*"+name)
			if k < 0 {
				break
			}
			k += from
			if end := k + 1 + len(name); end == len(line) || strings.ContainsRune(" \t\r,]}:", rune(line[end])) {
				return mark{i + 1, utf8.RuneCountInString(line[:k]) + 1}
			}
			from = k + 1
		}
	}
	return mark{1, 1}
}

// opened is what a text leaves open at the end of a line.
type opened struct {
	quote mark // the first quoted text that does not end on its line
	// bracket is the first bracket or brace that is open where the block structure
	// goes on: with an entry or a key that is not farther in than its own line.
	bracket mark
	list    bool // whether it is a bracket
}

// openings goes through a text as far as quotes, brackets and comments go.
func openings(lines []string) opened {
	type place struct {
		line, offset, indent int // lines from 0, the offset in bytes
		list                 bool
	}
	var o opened
	var open []place
	// Columns are counted only for what is reported: a line may be long, and full of brackets.
	at := func(line, offset int) mark {
		return mark{line + 1, utf8.RuneCountInString(lines[line][:offset]) + 1}
	}
	bracket := func(p place) opened {
		return opened{bracket: at(p.line, p.offset), list: p.list}
	}
	for i, line := range lines {
		indent := len(line) - len(strings.TrimLeft(line, " "))
		if n := len(open); n > 0 && indent <= open[n-1].indent && (strings.HasPrefix(line[indent:], "- ") || blockKey.MatchString(line)) {
			return bracket(open[n-1])
		}
		quote, begins := byte(0), 0
		for k := 0; k < len(line); k++ {
			c := line[k]
			starts := k == 0 || strings.IndexByte(" \t[{,:", line[k-1]) >= 0 // a value, and not the middle of one
			switch {
			case quote == '"' && c == '\\':
				k++
			case quote != 0 && c == quote:
				quote = 0
			case quote != 0:
			case c == '#' && (k == 0 || line[k-1] == ' ' || line[k-1] == '\t'):
				k = len(line)
			case (c == '"' || c == '\'') && starts:
				quote, begins = c, k
			case (c == '[' || c == '{') && (starts || len(open) > 0):
				open = append(open, place{i, k, indent, c == '['})
			case (c == ']' || c == '}') && len(open) > 0:
				open = open[:len(open)-1]
			}
		}
		if quote != 0 {
			o.quote = at(i, begins)
			return o
		}
	}
	if n := len(open); n > 0 {
		return bracket(open[n-1])
	}
	return o
}
