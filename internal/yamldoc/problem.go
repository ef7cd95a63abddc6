package yamldoc

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Problem is one thing wrong with a document.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`   // from 1; 0 where the whole document is meant
	Column  int    `json:"column"` // from 1
	Message string `json:"message"`
	// Path names the value that is meant, also one that is missing:
	// "treatments[1].options.mss"; empty where no single value is.
	Path string `json:"path,omitempty"`

	more int // one less than it stands for, where it is the last of a list that was cut
}

// At is a problem at a place of a file, its text fit for a terminal.
func At(file string, line, column int, format string, args ...any) Problem {
	return Problem{File: file, Line: line, Column: column, Message: message(format, args...)}
}

func (p Problem) String() string {
	file := Printable(p.File)
	if p.Line == 0 {
		return file + ": " + p.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", file, p.Line, p.Column, p.Message)
}

// Problems is all that is wrong with a document, in the order of its lines. Where
// there are more than [MaxProblems], the last one says how many more.
type Problems []Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// Number is how many problems there are, those included that are not listed.
func (ps Problems) Number() int {
	n := len(ps)
	if n > 0 {
		n += ps[n-1].more
	}
	return n
}

// Bounds of what a document's problems say: a list that nobody could read helps
// nobody, and the whole of it travels to the pages and to the terminal.
const (
	MaxProblems = 100
	maxMessage  = 1500 // bytes of one message
	maxArgument = 500  // bytes of one text in it
	maxQuoted   = 200  // bytes of a value in it
)

// Printable is a text for a terminal and a page: every character that is not
// printable is written as in Go's source ("\x1b"), so that a text from outside
// moves no cursor and hides nothing.
func Printable(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return !printable(r) }) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if printable(r) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRune(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}

func printable(r rune) bool { return unicode.IsPrint(r) && r != utf8.RuneError }

// shortened is a text of at most n bytes, with its length where it was longer.
func shortened(s string, n int) string {
	if len(s) <= n {
		return s
	}
	cut := n
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s… (%d bytes)", s[:cut], len(s))
}

// message formats what is said of a value. What the document gave is shortened.
func message(format string, args ...any) string {
	for i, a := range args {
		if s, ok := a.(string); ok && len(s) > maxArgument {
			args[i] = shortened(s, maxArgument)
		}
	}
	return shortened(Printable(fmt.Sprintf(format, args...)), maxMessage)
}

// missing names a value that a document lacks.
type missing struct {
	parent *yaml.Node
	name   string
}

// notes is the problems of a document while it is read.
type notes struct {
	list Problems
	more int                 // beyond MaxProblems
	said map[uint64]bool     // hashes of problems: groups of a plan read some values again
	bad  map[*yaml.Node]bool // values and keys with a problem
	gone map[missing]bool    // required values that are absent
	seed maphash.Seed
}

func (ns *notes) add(p Problem) {
	if ns.said == nil {
		ns.said, ns.seed = map[uint64]bool{}, maphash.MakeSeed()
	}
	h := maphash.Comparable(ns.seed, p)
	if ns.said[h] {
		return
	}
	ns.said[h] = true
	if len(ns.list) == MaxProblems {
		ns.more++
		return
	}
	ns.list = append(ns.list, p)
}

func (ns *notes) mark(n *yaml.Node) {
	if ns.bad == nil {
		ns.bad = map[*yaml.Node]bool{}
	}
	ns.bad[n] = true
}

// follows reports whether a problem with a value would only follow from one that
// is noted: with the same number or text, or with an element of the same list.
func (ns *notes) follows(n *yaml.Node) bool {
	switch {
	case n == nil || len(ns.bad) == 0:
		return false
	case ns.bad[n]:
		return true
	case n.Kind == yaml.AliasNode:
		n = n.Alias
	}
	return n.Kind == yaml.SequenceNode && slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return ns.bad[c] })
}

// Err is the [Problems] found so far, sorted by line, or nil.
func (d *Document) Err() error {
	if len(d.notes.list) == 0 {
		return nil
	}
	out := slices.Clone(d.notes.list)
	slices.SortStableFunc(out, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	if n := d.notes.more; n > 0 {
		out = append(out, Problem{File: d.file, Message: fmt.Sprintf("and %d more problems; the first %d that were found are listed", n, MaxProblems), more: n - 1})
	}
	return out
}

func (d *Document) note(n *yaml.Node, path, format string, args ...any) {
	p := Problem{File: d.file, Path: shortened(path, maxArgument), Message: message(format, args...)}
	if n != nil {
		p.Line, p.Column = n.Line, n.Column
	}
	d.notes.add(p)
}

// Problem notes a problem that the caller has found with the value. It notes none
// where the value has one already, or an element of a list has: one mistake
// is said once.
func (v Value) Problem(format string, args ...any) {
	n := v.node
	switch {
	case v.broken, v.doc.notes.follows(n):
		return
	case n == nil:
		if v.doc.notes.gone[missing{v.parent, v.name}] {
			return
		}
		n = v.parent
	default:
		v.doc.notes.mark(n)
	}
	msg := message(format, args...)
	if v.name != "" {
		msg = v.name + ": " + msg
	}
	path := v.name
	if v.key != "" {
		path = v.key
	}
	v.doc.note(n, path, "%s", msg)
}

// Include notes the problems of another file that the value names, as they are there.
func (v Value) Include(others Problems) {
	if v.node != nil {
		v.doc.notes.mark(v.node)
	}
	for _, p := range others {
		v.doc.notes.add(p)
	}
}

// Required notes a problem when the value is absent.
func (v Value) Required() Value {
	if v.Present() || v.doc.root == nil || v.broken {
		return v
	}
	if v.doc.notes.gone == nil {
		v.doc.notes.gone = map[missing]bool{}
	}
	v.doc.notes.gone[missing{v.parent, v.name}] = true
	v.doc.note(v.parent, v.name, "%s is missing", v.name)
	return v
}

// OK reports whether the value is present and has no problem so far: whether
// something can be concluded from it.
func (v Value) OK() bool { return v.Present() && !v.broken && !v.doc.notes.follows(v.node) }
