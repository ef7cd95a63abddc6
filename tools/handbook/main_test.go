package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/html"
)

// small is a checkout with little more than the files that a handbook needs.
func small(t *testing.T, files map[string]string) fs.FS {
	t.Helper()
	out := fstest.MapFS{}
	for name, content := range map[string]string{
		"README.md": "# Linktrial\n", "CONTRIBUTING.md": "# Contributing\n", "plans/README.md": "# Plans\n", "radio-profiles/README.md": "# Profiles\n",
		"protocols/protocoltest/README.md": "# Suite\n", "docs/a.md": "# A\n", "web/public/mark.svg": "<svg/>",
		"web/src/style.css": ":root {\n  --bg: #fff;\n}\n:root[data-theme='dark'] {\n  --bg: #000;\n}\n:root[data-theme='sun'] {\n  --bg: #eee;\n}\n",
	} {
		out[name] = &fstest.MapFile{Data: []byte(content)}
	}
	for name, content := range files {
		out[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return out
}

// references returns the ids and the attributes with addresses of an HTML file.
func references(t *testing.T, page []byte) (ids map[string]bool, links []string) {
	t.Helper()
	ids = map[string]bool{}
	tree, err := html.Parse(bytes.NewReader(page))
	require.NoError(t, err)
	for n := range tree.Descendants() {
		for _, a := range n.Attr {
			switch a.Key {
			case "id":
				require.False(t, ids[a.Val], "two elements have the id %s", a.Val)
				ids[a.Val] = true
			case "href", "src":
				links = append(links, a.Val)
			case "style", "srcset", "action", "data", "poster", "background", "formaction", "ping", "onclick", "onload":
				t.Errorf("an attribute that no page of a handbook has: %s=%q", a.Key, a.Val)
			}
		}
	}
	return ids, links
}

// Of the documents of this checkout every link leads to a file of the handbook, and to a heading
// that is there; nothing is fetched from elsewhere; every document has its page.
func TestDocumentsOfThisCheckout(t *testing.T) {
	checkout := os.DirFS("../..")
	files, err := handbook(checkout)
	require.NoError(t, err)
	ids, links := map[string]map[string]bool{}, map[string][]string{}
	for name, content := range files {
		switch path.Ext(name) {
		case ".html":
			ids[name], links[name] = references(t, content)
		case ".css":
			require.NotRegexp(t, `url\(|@import`, string(content), name)
		case ".svg":
			require.NotRegexp(t, `href|src=|url\(|<script`, string(content), name)
		}
	}
	seen := 0
	for from, all := range links {
		for _, link := range all {
			u, err := url.Parse(link)
			require.NoError(t, err, "%s: %s", from, link)
			to := from
			if u.Path != "" {
				to = path.Join(path.Dir(from), u.Path)
			}
			if u.Scheme != "" || u.Host != "" || files[to] == nil || u.Fragment != "" && !ids[to][u.Fragment] {
				t.Errorf("%s: the link %s leads nowhere", from, link)
			}
			seen++
		}
	}
	require.Greater(t, seen, 2000)
	names, err := fs.Glob(checkout, "docs/*/*.md")
	require.NoError(t, err)
	more, err := fs.Glob(checkout, "docs/*.md")
	require.NoError(t, err)
	for _, name := range slices.Concat(names, more) {
		if path.Base(name) != "README.md" {
			require.Contains(t, files, strings.TrimSuffix(name, ".md")+".html")
		}
	}
	for _, name := range []string{"index.html", "CONTRIBUTING.html", "docs/decisions/index.html", "docs/pictures/day-run.png", styleSheet, script, headingList, mark} {
		require.Contains(t, files, name)
	}
	list, ok := strings.CutPrefix(string(files[headingList]), "var linktrialHeadings = ")
	require.True(t, ok)
	var rows [][3]string
	require.NoError(t, json.Unmarshal([]byte(list), &rows))
	require.Greater(t, len(rows), 300)
	for _, r := range rows {
		page, id, _ := strings.Cut(r[0], "#")
		id, err := url.PathUnescape(id)
		require.NoError(t, err)
		require.True(t, ids[page][id], "the search leads to %s, which is not there", r[0])
	}
	again, err := handbook(checkout)
	require.NoError(t, err)
	require.Equal(t, files, again, "a second handbook of the same documents differs")
}

// GitHub's rule; the examples are headings of ours, and what GitHub makes of them.
func TestHeadingIDs(t *testing.T) {
	d, err := parse("x.md", []byte("# A run's way\n## `linktrial run` & [links](x.md)\n## Same\n## Same\n## Same 1\n## snake_case – dash\n### 4. Run *it*\n## Größe\n## a \\* b &amp; c\n"))
	require.NoError(t, err)
	var got []string
	for _, h := range d.headings {
		got = append(got, h.id)
	}
	require.Equal(t, []string{"a-runs-way", "linktrial-run--links", "same", "same-1", "same-1-1", "snake_case--dash", "4-run-it", "größe", "a--b--c"}, got)
	require.Equal(t, "a * b & c", d.headings[8].text)
	require.Equal(t, "A run's way", d.title)
}

func TestLinks(t *testing.T) {
	files, err := handbook(small(t, map[string]string{
		"README.md": "# Linktrial\n\n[A](docs/a.md#two-words), [here](#linktrial), [licence](LICENSE), [at](https://example.com/x?a=1&b=2), <https://example.com/y>\n",
		"docs/a.md": "# A\n\n## Two words\n\n[home](../README.md), [*the* plan](../plans/x.yaml), [plans](../plans), [code](../lab/a.go), [values](v.csv), ![look](pictures/p.png)\n\n" +
			"| a |\n|--:|\n| `<table>` |\n",
		"LICENSE": "", "plans/x.yaml": "", "lab/a.go": "", "docs/v.csv": "1,2", "docs/pictures/p.png": "p", "docs/pictures/q.png": "nobody shows it",
	}))
	require.NoError(t, err)
	require.Contains(t, string(files["index.html"]), `<p><a href="docs/a.html#two-words">A</a>, <a href="#linktrial">here</a>, licence, `+
		`at <span class="place">(https://example.com/x?a=1&amp;b=2)</span>, https://example.com/y</p>`)
	require.Contains(t, string(files["docs/a.html"]), `<p><a href="../index.html">home</a>, <em>the</em> plan <span class="place">(/usr/share/linktrial/plans/x.yaml)</span>, `+
		`plans <span class="place">(/usr/share/linktrial/plans)</span>, code, <a href="v.csv">values</a>, <img src="pictures/p.png" alt="look"></p>`)
	require.Contains(t, string(files["docs/a.html"]), `<div class="table-scroll" tabindex="0"><table>`)
	require.Contains(t, string(files["docs/a.html"]), `<td align="right"><code>&lt;table&gt;</code></td>`)
	require.Equal(t, "1,2", string(files["docs/v.csv"]))
	require.Contains(t, files, "docs/pictures/p.png")
	require.NotContains(t, files, "docs/pictures/q.png")
}

// All links that lead nowhere are named at once, each with its line.
func TestProblems(t *testing.T) {
	_, err := handbook(small(t, map[string]string{
		"README.md": "# Linktrial\n\n[a](docs/gone.md)\n[b](docs/a.md#gone)\n",
		"docs/a.md": "# A\n\n[c](#gone)\n\n![d](gone.png)\n\n![e](../plans/README.md)\n\n[f](../../out.md)\n\n[g](%zz)\n",
	}))
	require.EqualError(t, err, `README.md:3: the link "docs/gone.md" has no target in the checkout
README.md:4: the link "docs/a.md#gone" names no heading of docs/a.md
docs/a.md:3: the link "#gone" names no heading of docs/a.md
docs/a.md:5: the link "gone.png" has no target in the checkout
docs/a.md:7: the link "../plans/README.md" is no picture of docs/
docs/a.md:9: the link "../../out.md" has no target in the checkout
docs/a.md:11: the link "%zz" is no address`)
	_, err = handbook(small(t, map[string]string{"README.md": "## No title\n", "docs/a.md": "# A\n\n<b>bold</b>\n", "docs/b.md": "# A\n\n<table>\n"}))
	require.EqualError(t, err, `README.md: expected a title (a heading of level 1) before every other heading
docs/a.md:3: raw HTML, expected Markdown: "<b>"
docs/b.md:3: raw HTML, expected Markdown: "<table>"`)
	_, err = handbook(small(t, map[string]string{"web/src/style.css": "body {\n}\n"}))
	require.ErrorContains(t, err, "web/src/style.css: expected the colours of a theme")
}

// The contents have the order of the README's table; what it does not name comes last.
func TestContents(t *testing.T) {
	files, err := handbook(small(t, map[string]string{
		"README.md": "# Linktrial\n\n[A](docs/a.md)\n\n## Where things are\n\n| | |\n|---|---|\n| [z](docs/z.md) | [d](docs/decisions/README.md) |\n\n## Other\n\n[b](docs/b.md)\n",
		"docs/b.md": "# B\n", "docs/z.md": "# Z\n\n## One\n\n### Deep\n\n## Two\n",
		"docs/decisions/README.md": "# Decisions\n", "docs/decisions/x.md": "# X\n",
	}))
	require.NoError(t, err)
	require.Equal(t, []string{"Linktrial ../index.html", "Z page z.html", "One #one", "Two #two", "Decisions decisions/index.html", "Contributing ../CONTRIBUTING.html",
		"A a.html", "B b.html", "Plans ../plans/index.html", "Suite ../protocols/protocoltest/index.html", "Profiles ../radio-profiles/index.html"}, entries(t, files["docs/z.html"]))
	below := []string{"Decisions index.html", "X below page x.html", "Contributing ../../CONTRIBUTING.html"}
	require.Equal(t, below, entries(t, files["docs/decisions/x.html"])[2:5])
}

// entries are the contents of a page: of each its text and attributes.
func entries(t *testing.T, page []byte) (got []string) {
	t.Helper()
	tree, err := html.Parse(bytes.NewReader(page))
	require.NoError(t, err)
	for n := range tree.Descendants() {
		if n.Data == "a" && n.Parent.Data == "li" {
			line := n.FirstChild.Data
			for _, a := range slices.Concat(n.Parent.Attr, n.Attr) {
				line += " " + a.Val
			}
			got = append(got, line)
		}
	}
	return got
}

// The pages' colours are those of the handbook in each theme.
func TestColours(t *testing.T) {
	files, err := handbook(small(t, nil))
	require.NoError(t, err)
	style := string(files[styleSheet])
	require.NotContains(t, style, "colours of :root")
	require.Equal(t, []int{1, 2, 2}, []int{strings.Count(style, "--bg: #fff;"), strings.Count(style, "--bg: #000;"), strings.Count(style, "--bg: #eee;")})
}

// An older handbook is replaced as a whole; a folder of something else is left alone.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, keep), nil, 0o600))
	require.NoError(t, write(dir, map[string][]byte{styleSheet: []byte("a"), "docs/old.html": nil, firstPage: nil}))
	require.NoError(t, write(dir, map[string][]byte{styleSheet: []byte("b"), "new.html": nil, firstPage: nil}))
	got := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			b, err := os.ReadFile(filepath.Join(dir, name))
			got[name] = string(b)
			return err
		}
		return err
	}))
	require.Equal(t, map[string]string{keep: "", styleSheet: "b", "new.html": "", firstPage: ""}, got)
	other := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(other, "thesis.txt"), nil, 0o600))
	require.ErrorContains(t, write(other, map[string][]byte{styleSheet: nil}), "is not empty, and it is no handbook")
	require.Equal(t, []string{"thesis.txt"}, slices.Collect(maps.Keys(folder(t, other))))
}

func folder(t *testing.T, dir string) map[string]bool {
	t.Helper()
	all, err := os.ReadDir(dir)
	require.NoError(t, err)
	out := map[string]bool{}
	for _, e := range all {
		out[e.Name()] = true
	}
	return out
}
