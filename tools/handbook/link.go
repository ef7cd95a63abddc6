package main

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// place says where a package has installed what is in a folder, or is a file, of the checkout.
type place struct{ checkout, installed string }

// places is what a link to no document becomes: the installed file, where there is one.
var places = []place{
	{"plans", "/usr/share/linktrial/plans"},
	{"radio-profiles", "/usr/share/linktrial/radio-profiles"},
	{"topologies", "/usr/share/linktrial/topologies"},
	{"monitoring", "/usr/share/linktrial/monitoring"},
}

// installed is where a package has a file of the checkout; empty: nowhere.
func installed(name string) string {
	for _, p := range places {
		if rest, ok := strings.CutPrefix(name, p.checkout); ok && (rest == "" || rest[0] == '/') {
			return p.installed + rest
		}
	}
	return ""
}

// pictures are the endings of files that documents show.
var pictures = map[string]bool{".png": true, ".svg": true}

// book is a handbook while it is made.
type book struct {
	checkout  fs.FS
	documents map[string]*document
	copied    map[string]bool // files of docs/ that documents show or link
}

// resolve makes every link lead to where its target is in the handbook, or leaves its text.
// Its error names every link whose target does not exist.
func (b *book) resolve() error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(b.documents)) {
		d := b.documents[name]
		var links []ast.Node
		// Only the function's own errors end a walk, and it has none.
		_ = ast.Walk(d.tree, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			switch n.(type) {
			case *ast.Link, *ast.Image, *ast.AutoLink:
				if entering {
					links = append(links, n)
				}
			}
			return ast.WalkContinue, nil
		})
		for _, n := range links {
			if err := b.resolveNode(d, n); err != nil {
				problems = append(problems, err)
			}
		}
	}
	return errors.Join(problems...)
}

func (b *book) resolveNode(d *document, n ast.Node) error {
	switch n := n.(type) {
	case *ast.AutoLink:
		n.Parent().ReplaceChild(n.Parent(), n, verbatim(html.EscapeString(string(n.URL(d.source)))))
		return nil
	case *ast.Image:
		to, err := b.target(d, string(n.Destination))
		if err != nil {
			return err
		}
		if !pictures[path.Ext(to.href)] {
			return d.problem(n.Destination, "is no picture of docs/")
		}
		n.Destination = []byte(to.href)
		return nil
	case *ast.Link:
		to, err := b.target(d, string(n.Destination))
		if err != nil {
			return err
		}
		if to.href != "" {
			n.Destination = []byte(to.href)
			return nil
		}
		unlink(n, to.beside)
	}
	return nil
}

// unlink leaves the text of a link in its place, with what is to be said beside it.
func unlink(n *ast.Link, beside string) {
	parent := n.Parent()
	for c := n.FirstChild(); c != nil; c = n.FirstChild() {
		n.RemoveChild(n, c)
		parent.InsertBefore(parent, n, c)
	}
	if beside != "" {
		parent.InsertBefore(parent, n, verbatim(` <span class="place">(`+html.EscapeString(beside)+`)</span>`))
	}
	parent.RemoveChild(parent, n)
}

// verbatim is HTML as a node.
func verbatim(html string) ast.Node {
	s := ast.NewString([]byte(html))
	s.SetCode(true)
	return s
}

// target is what a link leads to: a place of the handbook, or text beside the link's own.
type target struct{ href, beside string }

func (b *book) target(d *document, destination string) (target, error) {
	u, err := url.Parse(destination)
	if err != nil {
		return target{}, d.problem([]byte(destination), "is no address")
	}
	if u.Scheme != "" || u.Host != "" {
		return target{beside: destination}, nil
	}
	name := d.name
	if u.Path != "" {
		name = path.Join(path.Dir(d.name), u.Path)
	}
	if to := b.documents[name]; to != nil {
		if u.Fragment != "" && !to.has(u.Fragment) {
			return target{}, d.problem([]byte(destination), "names no heading of "+name)
		}
		return target{href: relative(d.page(), to.page(), u.Fragment)}, nil
	}
	info, err := fs.Stat(b.checkout, name)
	if err != nil {
		return target{}, d.problem([]byte(destination), "has no target in the checkout")
	}
	if strings.HasPrefix(name, "docs/") && !info.IsDir() {
		b.copied[name] = true
		return target{href: relative(d.page(), name, "")}, nil
	}
	return target{beside: installed(name)}, nil
}

// relative is the link from one file of the handbook to another one, or within it.
func relative(from, to, fragment string) string {
	rel, err := filepath.Rel(path.Dir(from), to)
	if err != nil {
		panic(err) // both are relative
	}
	u := url.URL{Path: filepath.ToSlash(rel), Fragment: fragment}
	if from == to && fragment != "" {
		u.Path = ""
	}
	return u.String()
}

// problem is an error of a link, at the line on which the document first has it.
func (d *document) problem(destination []byte, what string) error {
	line := 0
	if at := bytes.Index(d.source, append([]byte("]("), destination...)); at >= 0 {
		line = d.line(at)
	}
	return fmt.Errorf("%s:%d: the link %q %s", d.name, line, destination, what)
}
