// Package yamldoc reads YAML documents that people write, and reports all problems
// of one at once, each with its file, line and column. Comes in:
// bytes. Goes out: typed values and [Problems].
//
// A reader walks the document by [Value] and [Mapping]; every getter returns a
// usable value and notes a problem on the document if there is one, so that
// reading goes on and finds the next.
package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"linktrial/internal/unit"
)

// Document is one parsed YAML document and the problems found in it so far.
type Document struct {
	file  string
	root  *yaml.Node
	notes notes
	reads int
}

// MaxText is the size of the largest document that is read, in bytes: some
// 17 times the largest plan that comes with Linktrial. Parsing allocates some 400
// bytes for each byte of a text that is all structure.
const MaxText = 256 << 10

// maxDepth and maxNodes bound the tree that is walked: aliases can
// expand a small file into a huge tree. maxReads bounds how often values of it are
// read: a plan of many groups reads what they share once for each.
const (
	maxDepth = 64
	maxNodes = 100_000
	maxReads = 1_000_000
)

// Parse reads one document. Syntax errors are problems of the document too;
// reading a document that has them yields only missing values.
func Parse(file string, data []byte) *Document {
	d := &Document{file: file}
	if p := unreadable(data); p != nil {
		p.File = file
		d.notes.add(*p)
		return d
	}
	var n, second yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	err := dec.Decode(&n)
	if err == nil {
		// A second document would be ignored silently.
		switch more := dec.Decode(&second); {
		case more == nil:
			d.note(&second, "", "a second document begins here; expected one a file")
			return d
		case !errors.Is(more, io.EOF):
			err = more
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		p := syntaxProblem(data, dec, err)
		p.File = file
		d.notes.add(p)
		return d
	}
	if n.Kind != yaml.DocumentNode || len(n.Content) != 1 {
		d.note(nil, "", "the document is empty")
		return d
	}
	return d.of(n.Content[0])
}

// FromTree is a document of a tree that was parsed already, so that a program
// can change some of it. Nodes without a line are those that it has put in.
func FromTree(file string, root *yaml.Node) *Document {
	d := &Document{file: file}
	return d.of(root)
}

func (d *Document) of(root *yaml.Node) *Document {
	count := 0
	if at := tooMuch(root, 0, &count); at != nil {
		d.note(at, "", "the document has more than %d values or is more than %d deep, or refers to itself by an alias", maxNodes, maxDepth)
		return d
	}
	d.root = root
	return d
}

func tooMuch(n *yaml.Node, depth int, count *int) *yaml.Node {
	*count++
	if depth > maxDepth || *count > maxNodes {
		return n
	}
	if n.Kind == yaml.AliasNode {
		return tooMuch(n.Alias, depth+1, count)
	}
	for _, c := range n.Content {
		if at := tooMuch(c, depth+1, count); at != nil {
			return at
		}
	}
	return nil
}

// File is the name of the document for messages.
func (d *Document) File() string { return d.file }

// Root is the document's outermost value.
func (d *Document) Root() Value { return Value{doc: d, node: d.root} }

// spend counts readings of values, and reports whether there may be more.
func (d *Document) spend(n int) bool {
	if d.reads > maxReads {
		return false
	}
	if d.reads += n; d.reads > maxReads {
		d.note(d.root, "", "the document takes more than %d steps to read; make it smaller, or let fewer groups share its lists", maxReads)
		return false
	}
	return true
}

// Value is one value of a document, or the absence of one.
type Value struct {
	doc    *Document
	node   *yaml.Node // nil where the value is absent
	parent *yaml.Node // where to point when it is absent and required
	name   string
	key    string // path of a key that is itself the value
	broken bool   // an empty element, or the parent is not a mapping, which has been noted already
}

// Present reports whether the document has the value; null counts as absent.
func (v Value) Present() bool { return v.node != nil && v.resolved().Tag != "!!null" }

// Given reports whether the document has the value or its key alone.
func (v Value) Given() bool { return v.node != nil }

// Position is line and column of the value, from 1; 0 when it is absent.
func (v Value) Position() (line, column int) {
	if v.node == nil {
		return 0, 0
	}
	return v.node.Line, v.node.Column
}

func (v Value) resolved() *yaml.Node {
	n := v.node
	for n != nil && n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

func (v Value) found() string {
	switch n := v.resolved(); n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
		return strconv.Quote(shortened(n.Value, maxQuoted))
	}
}

func (v Value) scalar(want string) (string, bool) {
	if !v.Present() || !v.doc.spend(1) {
		return "", false
	}
	n := v.resolved()
	if n.Kind != yaml.ScalarNode {
		v.Problem("expected %s, found %s", want, v.found())
		return "", false
	}
	return n.Value, true
}

// String reads text; absent is the default. Control characters other than those
// that end lines and separate columns are refused.
func (v Value) String(def string) string {
	s, ok := v.scalar("text")
	if !ok {
		return def
	}
	for _, r := range s {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			v.Problem("holds the control character %U; expected text without any", r)
			return def
		}
	}
	return s
}

// maxLabel is the length of the longest label or title, in characters.
const maxLabel = 200

// Label reads a line of text for tables and headings, that is not empty.
func (v Value) Label(def string) string {
	s := strings.TrimSpace(v.String(def))
	switch {
	case !v.OK():
		return def
	case s == "":
		v.Problem("expected text, found nothing")
	case strings.ContainsAny(s, "\n\t"):
		v.Problem("expected one line without tabs, found %q", s)
	case utf8.RuneCountInString(s) > maxLabel:
		v.Problem("expected at most %d characters, found %d", maxLabel, utf8.RuneCountInString(s))
	default:
		return s
	}
	return def
}

// OneOf reads one of the given words.
func (v Value) OneOf(def string, words ...string) string {
	s, ok := v.scalar("one of " + strings.Join(words, ", "))
	if !ok {
		return def
	}
	if !slices.Contains(words, s) {
		v.Problem("unknown %q%s; there are %s", s, Suggest(s, words), strings.Join(words, ", "))
		return def
	}
	return s
}

// Int reads a whole number from lo to hi.
func (v Value) Int(def, lo, hi int64) int64 {
	s, ok := v.scalar("a whole number")
	if !ok {
		return def
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(s, "_", ""), 0, 64)
	switch {
	case v.leadingZero(s):
		return def
	case err != nil || n < lo || n > hi:
		v.Problem("expected a whole number from %d to %d, found %q", lo, hi, s)
		return def
	}
	return n
}

// leadingZero notes a whole number that YAML 1.1 takes for octal, YAML 1.2 for decimal.
func (v Value) leadingZero(s string) bool {
	digits := strings.TrimLeft(s, "+-")
	if len(digits) < 2 || digits[0] != '0' || strings.Trim(digits, "0123456789_") != "" {
		return false
	}
	v.Problem("%q may mean two numbers, as some programs read a leading zero as octal; write it without (or as 0o10 for octal)", s)
	return true
}

// Uint64 reads a whole number that uses up to 64 bits: a seed.
func (v Value) Uint64(def uint64) uint64 {
	s, ok := v.scalar("a whole number")
	if !ok {
		return def
	}
	n, err := strconv.ParseUint(strings.ReplaceAll(s, "_", ""), 0, 64)
	if v.leadingZero(s) {
		return def
	}
	if err != nil {
		v.Problem("expected a whole number from 0 to 2^64-1, found %q", s)
		return def
	}
	return n
}

// Float reads a number from lo to hi.
func (v Value) Float(def, lo, hi float64) float64 {
	s, ok := v.scalar("a number")
	if !ok {
		return def
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if v.leadingZero(s) {
		return def
	}
	if err != nil || math.IsNaN(f) || f < lo || f > hi {
		v.Problem("expected a number from %g to %g, found %q", lo, hi, s)
		return def
	}
	return f
}

// Bool reads true or false.
func (v Value) Bool(def bool) bool {
	s, ok := v.scalar("true or false")
	if !ok {
		return def
	}
	switch s {
	case "true":
		return true
	case "false":
		return false
	}
	v.Problem("expected true or false, found %q", s)
	return def
}

// Duration reads a time such as "100ms" or "2m30s" that is not negative.
func (v Value) Duration(def time.Duration) time.Duration {
	s, ok := v.scalar(`a duration such as "100ms"`)
	if !ok {
		return def
	}
	d, err := time.ParseDuration(strings.ReplaceAll(s, " ", ""))
	if err != nil || d < 0 {
		v.Problem(`expected a duration such as "100ms" or "2m30s", found %q`, s)
		return def
	}
	return d
}

// SignedDuration reads a duration that may be negative, such as "-1h".
func (v Value) SignedDuration(def time.Duration) time.Duration {
	s, ok := v.scalar(`a duration such as "1h" or "-1h"`)
	if !ok {
		return def
	}
	d, err := time.ParseDuration(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		v.Problem(`expected a duration such as "1h" or "-1h", found %q`, s)
		return def
	}
	return d
}

// Bytes reads a size such as "256 KiB".
func (v Value) Bytes(def int64) int64 {
	return quantity(v, def, `a size such as "256 KiB"`, unit.Bytes)
}

// BitsPerSecond reads a rate such as "2 Mbit/s".
func (v Value) BitsPerSecond(def float64) float64 {
	return quantity(v, def, `a rate such as "2 Mbit/s"`, unit.BitsPerSecond)
}

// Metres reads a distance such as "673.1 ft".
func (v Value) Metres(def float64) float64 {
	return quantity(v, def, `a distance such as "673.1 ft"`, unit.Metres)
}

// SignedMetres reads a height such as "-430 m".
func (v Value) SignedMetres(def float64) float64 {
	return quantity(v, def, `a height such as "12 m" or "-430 m"`, unit.SignedMetres)
}

func quantity[T any](v Value, def T, want string, parse func(string) (T, error)) T {
	s, ok := v.scalar(want)
	if !ok {
		return def
	}
	q, err := parse(s)
	if err != nil {
		v.Problem("expected %s: %v", want, err)
		return def
	}
	return q
}

// List reads a list; absent is empty. An element without a value is a problem; what
// would be in it is not missed any more.
func (v Value) List() []Value {
	if !v.Present() {
		return nil
	}
	n := v.resolved()
	if n.Kind != yaml.SequenceNode {
		v.Problem("expected a list, found %s", v.found())
		return nil
	}
	if !v.doc.spend(len(n.Content)) {
		return nil
	}
	out := make([]Value, len(n.Content))
	for i, c := range n.Content {
		out[i] = Value{doc: v.doc, node: c, parent: n, name: v.name + "[" + strconv.Itoa(i) + "]"}
		if !out[i].Present() {
			v.doc.note(c, out[i].name, "%s is empty; expected a value, or no such element", out[i].name)
			v.doc.notes.mark(c)
			out[i].broken = true
		}
	}
	return out
}

// IsList and IsMapping report the form of a value, for values that may have several.
func (v Value) IsList() bool    { return v.Present() && v.resolved().Kind == yaml.SequenceNode }
func (v Value) IsMapping() bool { return v.Present() && v.resolved().Kind == yaml.MappingNode }

// Any reads the value as plain Go data: string, int64, float64, bool, []any, map[string]any.
func (v Value) Any() any {
	if !v.Present() {
		return nil
	}
	return toAny(v.resolved())
}

func toAny(n *yaml.Node) any {
	switch n.Kind {
	case yaml.AliasNode:
		return toAny(n.Alias)
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, c := range n.Content {
			out[i] = toAny(c)
		}
		return out
	case yaml.MappingNode:
		out := make(map[string]any, len(n.Content)/2)
		for i := 0; i+1 < len(n.Content); i += 2 {
			out[n.Content[i].Value] = toAny(n.Content[i+1])
		}
		return out
	}
	switch n.Tag {
	case "!!int":
		if i, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 0, 64); err == nil {
			return i
		}
	case "!!float":
		if f, err := strconv.ParseFloat(strings.ReplaceAll(n.Value, "_", ""), 64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
			return f
		}
	case "!!bool":
		return n.Value == "true"
	case "!!null":
		return nil
	}
	return n.Value
}

// Mapping reads a mapping whose keys must be among known. With no known keys,
// any key is taken, and must have a value. Absent is empty; a key given twice is
// a problem.
func (v Value) Mapping(known ...string) Mapping {
	m := Mapping{doc: v.doc, name: v.name, broken: v.broken}
	if !v.Present() {
		m.node = v.parent
		return m
	}
	n := v.resolved()
	m.node = n
	if n.Kind != yaml.MappingNode {
		v.Problem("expected a mapping, found %s", v.found())
		m.node = v.node
		m.broken = true
		return m
	}
	if !v.doc.spend(1 + len(n.Content)/2) {
		m.broken = true
		return m
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, c := n.Content[i], n.Content[i+1]
		if m.fields[k.Value] != nil {
			v.doc.note(k, m.path(k.Value), "%s is given twice", m.path(k.Value))
			continue
		}
		if f := (Value{doc: v.doc, node: c}); len(known) == 0 && !f.Present() {
			v.doc.note(k, m.path(k.Value), "%s is empty; expected a value, or no such key", m.path(k.Value))
		}
		if len(known) > 0 && !slices.Contains(known, k.Value) {
			v.doc.note(k, m.path(k.Value), "unknown key %q%s; there are %s", k.Value, Suggest(k.Value, known), strings.Join(known, ", "))
			continue
		}
		if m.fields == nil {
			m.fields = map[string]*yaml.Node{}
		}
		if m.at == nil {
			m.at = map[string]*yaml.Node{}
		}
		m.fields[k.Value], m.at[k.Value] = c, k
		m.keys = append(m.keys, k)
	}
	return m
}

// Mapping is the fields of a mapping value.
type Mapping struct {
	doc    *Document
	node   *yaml.Node
	name   string
	fields map[string]*yaml.Node
	keys   []*yaml.Node
	at     map[string]*yaml.Node // the keys, by what they are
	broken bool
}

func (m Mapping) path(key string) string {
	if m.name == "" {
		return key
	}
	return m.name + "." + key
}

// Field is the value of a key, or an absent value.
func (m Mapping) Field(key string) Value {
	return Value{doc: m.doc, node: m.fields[key], parent: m.node, name: m.path(key), broken: m.broken}
}

// OK reports whether there is a mapping and no problem in the whole document so far.
func (m Mapping) OK() bool { return m.node != nil && !m.broken && len(m.doc.notes.list) == 0 }

// Keys lists the keys in the order of the document.
func (m Mapping) Keys() []string {
	out := make([]string, len(m.keys))
	for i, k := range m.keys {
		out[i] = k.Value
	}
	return out
}

// Key is the key itself as a value, to note a problem at its place.
func (m Mapping) Key(key string) Value {
	return Value{doc: m.doc, node: m.at[key], parent: m.node, name: m.name, key: m.path(key)}
}

// Suggest is ` (did you mean "x"?)` for the nearest word, or nothing.
func Suggest(s string, words []string) string {
	best, bestD := "", 3
	for _, w := range words {
		if d := distance(strings.ToLower(s), strings.ToLower(w)); d < bestD && d < len(w) {
			best, bestD = w, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// distance is the Levenshtein distance, for words of ordinary length.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return math.MaxInt
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diag := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			diag, row[j] = row[j], min(row[j]+1, row[j-1]+1, diag+cost)
		}
	}
	return row[len(b)]
}
