package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// alsoDocuments are documents of the handbook beside README.md, CONTRIBUTING.md and those
// of docs/.
var alsoDocuments = []string{"plans/README.md", "radio-profiles/README.md", "protocols/protocoltest/README.md"}

// markdown is GitHub's Markdown without links of bare addresses: a handbook links nothing
// elsewhere. Columns are aligned by an attribute, as the policy of the pages forbids styles.
var markdown = goldmark.New(goldmark.WithExtensions(
	extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
	extension.Strikethrough, extension.TaskList,
))

// document is one Markdown file of the handbook.
type document struct {
	name     string // in the checkout, with slashes
	source   []byte
	tree     ast.Node
	title    string
	headings []heading // in order, the title first
}

// heading is a heading of a document, with the id that links name.
type heading struct {
	level    int
	id, text string
}

// page is the name of the document's HTML file in the handbook.
func (d *document) page() string {
	if path.Base(d.name) == "README.md" {
		return path.Join(path.Dir(d.name), "index.html")
	}
	return strings.TrimSuffix(d.name, ".md") + ".html"
}

// has reports whether a heading of the document has the id.
func (d *document) has(id string) bool {
	for _, h := range d.headings {
		if h.id == id {
			return true
		}
	}
	return false
}

// readDocuments returns the documents of a checkout by name. Its error names all problems.
func readDocuments(checkout fs.FS) (map[string]*document, error) {
	names := append([]string{"README.md", "CONTRIBUTING.md"}, alsoDocuments...)
	err := fs.WalkDir(checkout, "docs", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && path.Ext(name) == ".md" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out := map[string]*document{}
	var problems []error
	for _, name := range names {
		source, err := fs.ReadFile(checkout, name)
		if err != nil {
			return nil, err
		}
		d, err := parse(name, source)
		problems = append(problems, err)
		out[name] = d
	}
	return out, errors.Join(problems...)
}

// parse reads a document, gives its headings their ids and leaves out comments.
func parse(name string, source []byte) (*document, error) {
	d := &document{name: name, source: source, tree: markdown.Parser().Parse(text.NewReader(source))}
	ids := map[string]bool{}
	var comments []ast.Node
	err := ast.Walk(d.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			t := plainText(n, source)
			h := heading{n.Level, headingID(t, ids), t}
			n.SetAttributeString("id", []byte(h.id))
			d.headings = append(d.headings, h)
		case *ast.HTMLBlock:
			if !bytes.HasPrefix(bytes.TrimSpace(n.Lines().Value(source)), []byte("<!--")) {
				return ast.WalkStop, d.rawHTML(n.Lines())
			}
			comments = append(comments, n)
		case *ast.RawHTML:
			return ast.WalkStop, d.rawHTML(n.Segments)
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, err
	}
	for _, c := range comments {
		c.Parent().RemoveChild(c.Parent(), c)
	}
	if len(d.headings) == 0 || d.headings[0].level != 1 {
		return nil, fmt.Errorf("%s: expected a title (a heading of level 1) before every other heading", name)
	}
	d.title = d.headings[0].text
	return d, nil
}

// rawHTML is the error of HTML in a document, which a page would show as nothing.
func (d *document) rawHTML(at *text.Segments) error {
	return fmt.Errorf("%s:%d: raw HTML, expected Markdown: %q", d.name, d.line(at.At(0).Start), bytes.TrimSpace(at.Value(d.source)))
}

// line is the number of the line with a byte of the source.
func (d *document) line(offset int) int { return 1 + bytes.Count(d.source[:offset], []byte("\n")) }

// plainText is the text of a node as a reader sees it.
func plainText(n ast.Node, source []byte) string {
	var b strings.Builder
	// Only the function's own errors end a walk, and it has none.
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		t, isText := n.(*ast.Text)
		if !isText || !entering {
			return ast.WalkContinue, nil
		}
		value := t.Segment.Value(source)
		if _, code := n.Parent().(*ast.CodeSpan); !code {
			value = util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(value)))
		}
		b.Write(value)
		if t.SoftLineBreak() {
			b.WriteByte(' ')
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// headingID is the id that GitHub gives a heading: in lower case, blanks as hyphens, without
// other punctuation, and with a number where another heading has it (taken, which it adds to).
func headingID(heading string, taken map[string]bool) string {
	base := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
	id := base
	for n := 1; taken[id]; n++ {
		id = base + "-" + strconv.Itoa(n)
	}
	taken[id] = true
	return id
}
