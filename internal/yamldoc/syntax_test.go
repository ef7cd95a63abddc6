package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// breaks is what hands do to a line so that it is no YAML any more. Each gives
// the broken line, or "" where it does not apply.
var breaks = map[string]func(line string) string{
	"a tab instead of the indentation": func(l string) string {
		if strings.HasPrefix(l, "  ") && !strings.HasPrefix(strings.TrimSpace(l), "#") {
			return "\t" + strings.TrimLeft(l, " ")
		}
		return ""
	},
	"no closing bracket":        without("]", "["),
	"no closing brace":          without("}", "{"),
	"no closing quotation mark": without(`"`, `"`),
	"a second colon":            func(l string) string { return plain(l, func(k, v string) string { return k + ": " + v + ": x" }) },
	"an at sign":                func(l string) string { return plain(l, func(k, v string) string { return k + ": @" + v }) },
	"a percent sign":            func(l string) string { return plain(l, func(k, v string) string { return k + ": %" + v }) },
	"a bracket too many":        func(l string) string { return plain(l, func(k, v string) string { return k + ": " + v + "\n]" }) },
	"an unknown alias":          func(l string) string { return plain(l, func(k, v string) string { return k + ": *nowhere" }) },
	"a control character":       func(l string) string { return plain(l, func(k, v string) string { return k + ": " + v + "\x01" }) },
	"a byte of another encoding": func(l string) string {
		return plain(l, func(k, v string) string { return k + ": caf\xe9" })
	},
	"an unknown escape": func(l string) string { return plain(l, func(k, v string) string { return k + `: "\q"` }) },
}

// without takes the last closing character off a line that has one, and its opening one.
func without(closing, opening string) func(string) string {
	return func(l string) string {
		i, o := strings.LastIndex(l, closing), strings.Index(l, opening)
		if c := strings.Index(l, "#"); i < 0 || o < 0 || o >= i || c >= 0 {
			return ""
		}
		return l[:i] + l[i+len(closing):]
	}
}

// plain is a line that has a key and a plain value, changed.
func plain(l string, change func(key, value string) string) string {
	k, v, ok := strings.Cut(l, ": ")
	if !ok || strings.ContainsAny(l, "#\"'[]{}|>&*") || strings.TrimSpace(v) == "" {
		return ""
	}
	return change(k, v)
}

// A syntax error is reported at the line that was broken, and at a column.
func TestSyntaxErrorsNameTheirLine(t *testing.T) {
	files, err := filepath.Glob("../../plans/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	profiles, err := filepath.Glob("../../radio-profiles/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tried, first := 0, 0
	for _, f := range append(files, profiles...) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		for i, l := range lines {
			for what, brk := range breaks {
				b := brk(l)
				if b == "" {
					continue
				}
				want := i + 1 + strings.Count(b, "\n")
				broken := strings.Join(lines[:i], "\n") + "\n" + b + "\n" + strings.Join(lines[i+1:], "\n")
				if i == 0 {
					broken = b + "\n" + strings.Join(lines[1:], "\n")
				}
				var ps Problems
				errors.As(Parse(filepath.Base(f), []byte(broken)).Err(), &ps)
				if len(ps) == 0 {
					continue // it is YAML still
				}
				tried++
				p := ps[0]
				if len(ps) != 1 || p.Line != want || p.Column < 1 {
					t.Errorf("%s:%d, %s: got\n%v\nfor\n%s", filepath.Base(f), want, what, ps, b)
				}
				if p.Column == 1 && !strings.HasPrefix(b, "\t") && !strings.HasSuffix(b, "\n]") && !strings.HasPrefix(b, "%") {
					first++
				}
			}
		}
	}
	if tried < 1000 || first > 0 {
		t.Errorf("%d broken texts, %d of them with column 1 although the break is farther in", tried, first)
	}
}

// A line full of brackets is as quick to refuse as any other text of its length:
// reading does not take the square of it.
func TestManyBrackets(t *testing.T) {
	// Quotation marks in pairs are text, as a comment is none.
	for _, s := range []string{"[", "{", "- [", "\"", "'", "a: ", "? ", "*a ", "&a ", "#"} {
		text := []byte("a: " + strings.Repeat(s, MaxText/len(s)-10))
		began := time.Now()
		if err := Parse("f", text).Err(); err == nil && s != "#" && s != "'" {
			t.Errorf("%s… was read", s)
		}
		// It takes tens of milliseconds; the square would take minutes.
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s… took %s", s, took)
		}
	}
}

// The library's marks are read from fields that it does not export: a version of
// it that names them otherwise would cost all columns.
func TestLibraryMarks(t *testing.T) {
	dec := yaml.NewDecoder(bytes.NewReader([]byte("a: 1\nb: [1, 2\nc: 3\n")))
	var n yaml.Node
	err := dec.Decode(&n)
	if err == nil {
		t.Fatal("no error")
	}
	e := readLibraryError(dec)
	if want := fmt.Sprint(libraryError{problem: "did not find expected ',' or ']'", context: "while parsing a flow sequence", problemMark: mark{3, 2}, contextMark: mark{2, 4}, known: true}); fmt.Sprint(e) != want {
		t.Errorf("got %v, want %s", e, want)
	}
}
