package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

//go:embed assets
var assets embed.FS

// Files of the handbook beside its pages.
const (
	styleSheet  = "handbook.css"
	script      = "handbook.js"
	headingList = "headings.js"
	mark        = "mark.svg"
)

// contentsOf is the heading of the README below which the table is that gives the contents
// their order.
const contentsOf = "Where things are"

// layout is the page around a document.
var layout = template.Must(template.ParseFS(assets, "assets/page.html"))

// page is what the layout shows.
type page struct {
	Title, Root string // Root: from the page's folder to that of the handbook
	Contents    []entry
	Body        template.HTML
}

// entry is a document of the contents.
type entry struct {
	Href, Title string
	Current     bool
	Below       bool // of a folder whose README.md is another entry
	Sections    []section
}

// section is a heading of the page's own document.
type section struct{ Href, Title string }

// pages returns the HTML files of all documents, and the list of their headings.
func (b *book) pages() (map[string][]byte, error) {
	order := b.order()
	files := map[string][]byte{}
	for _, d := range order {
		var body, out bytes.Buffer
		if err := markdown.Renderer().Render(&body, d.source, d.tree); err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, err)
		}
		// Text has no "<" of its own: these are the tables and blocks of code, which scroll by themselves.
		scroll := strings.NewReplacer("<table>", `<div class="table-scroll" tabindex="0"><table>`, "</table>", "</table></div>", "<pre>", `<pre tabindex="0">`)
		p := page{Title: d.title, Root: strings.Repeat("../", strings.Count(d.page(), "/")), Contents: contents(order, d), Body: template.HTML(scroll.Replace(body.String()))}
		if err := layout.Execute(&out, p); err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, err)
		}
		files[d.page()] = out.Bytes()
	}
	list, err := listHeadings(order)
	files[headingList] = list
	return files, err
}

// order returns the documents in the order of the contents: the README, what its table
// names, each with the documents of its folder behind it, and the others by name.
func (b *book) order() []*document {
	readme := b.documents["README.md"]
	out := []*document{readme}
	add := func(d *document) {
		if d == nil || slices.Contains(out, d) {
			return
		}
		out = append(out, d)
		for _, name := range slices.Sorted(maps.Keys(b.documents)) {
			if below(d, b.documents[name]) && !slices.Contains(out, b.documents[name]) {
				out = append(out, b.documents[name])
			}
		}
	}
	byPage := map[string]*document{}
	for _, d := range b.documents {
		byPage[d.page()] = d
	}
	inside := false
	for n := readme.tree.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			inside = plainText(h, readme.source) == contentsOf
		}
		if !inside {
			continue
		}
		// Only the function's own errors end a walk, and it has none.
		_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if l, ok := n.(*ast.Link); ok && entering {
				add(byPage[string(l.Destination)])
			}
			return ast.WalkContinue, nil
		})
	}
	for _, name := range slices.Sorted(maps.Keys(b.documents)) {
		add(b.documents[name])
	}
	return out
}

// below reports whether a document is in the folder of a README.md that is not the checkout's.
func below(readme, d *document) bool {
	folder := path.Dir(readme.name)
	return path.Base(readme.name) == "README.md" && folder != "." && readme != d && path.Dir(d.name) == folder
}

// contents are the entries as the page of a document has them: what is below a README.md is
// there while that or one of them is read.
func contents(order []*document, of *document) (out []entry) {
	var readme *document
	for _, d := range order {
		if path.Base(d.name) == "README.md" {
			readme = d
		}
		under := below(readme, d)
		if under && path.Dir(of.name) != path.Dir(d.name) {
			continue
		}
		e := entry{Href: relative(of.page(), d.page(), ""), Title: d.title, Current: d == of, Below: under}
		if e.Current {
			e.Sections = sections(of)
		}
		out = append(out, e)
	}
	return out
}

// sections are the headings of a document that its own page has in the contents.
func sections(d *document) (out []section) {
	for _, h := range d.headings {
		if h.level == 2 {
			out = append(out, section{relative(d.page(), d.page(), h.id), h.text})
		}
	}
	return out
}

// listHeadings is the script with the headings that the search goes through: of each its
// place, its text and the title of its document.
func listHeadings(order []*document) ([]byte, error) {
	var rows [][3]string
	for _, d := range order {
		for _, h := range d.headings {
			rows = append(rows, [3]string{relative("", d.page(), h.id), h.text, d.title})
		}
	}
	b, err := json.Marshal(rows)
	return slices.Concat([]byte("var linktrialHeadings = "), b, []byte("\n")), err
}

// addAssets adds the files that all pages share.
func addAssets(checkout fs.FS, files map[string][]byte) error {
	colours, err := fs.ReadFile(checkout, "web/src/style.css")
	if err != nil {
		return err
	}
	style, err := assets.ReadFile("assets/" + styleSheet)
	if err != nil {
		return err
	}
	if files[styleSheet], err = withColours(style, colours); err != nil {
		return err
	}
	if files[script], err = assets.ReadFile("assets/" + script); err != nil {
		return err
	}
	files[mark], err = fs.ReadFile(checkout, "web/public/"+mark)
	return err
}

// colours is, in the handbook's style sheet, where the colours of one theme of the pages go.
var colours = regexp.MustCompile(`/\* colours of (.*?) \*/`)

// withColours puts the themes' colours of the pages' style sheet into that of the handbook.
func withColours(style, pages []byte) ([]byte, error) {
	var problem error
	out := colours.ReplaceAllFunc(style, func(m []byte) []byte {
		selector := string(colours.FindSubmatch(m)[1])
		_, rest, found := strings.Cut(string(pages), selector+" {\n")
		block, _, closed := strings.Cut(rest, "\n}")
		if !found || !closed || !strings.Contains(block, "--bg:") {
			problem = fmt.Errorf("web/src/style.css: expected the colours of a theme at the first %q", selector+" {")
		}
		return []byte(strings.TrimSpace(block))
	})
	return out, problem
}
