// Package docpart holds parts of the project's documents against the tables in the code that
// they follow from. A part stands between <!-- NAME --> and <!-- /NAME -->.
//
// It is for tests. Run with -update, they write the parts:
//
//	go test ./orchestrator/report/render -run TestDocumentListsFormats -update
package docpart

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"linktrial/internal/checkout"
)

// Update is set where tests are to write what they would compare.
var Update = flag.Bool("update", false, "write what documents, golden files and pages take from the code")

// Hold fails the test where the part of a document, a path within the checkout, is not want;
// with -update it writes the part. want ends with a line feed.
func Hold(t testing.TB, document, name, want string) {
	t.Helper()
	root, err := checkout.Root()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, filepath.FromSlash(document))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text, found := replaced(string(b), name, want)
	if !found {
		t.Fatalf("%s has no part <!-- %s -->", document, name)
	}
	if text == string(b) {
		return
	}
	if !*Update {
		t.Fatalf("%s: the part <!-- %s --> does not follow from the code; run this test with -update to write it. Expected:\n%s", document, name, want)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replaced is a text with another content of a part.
func replaced(text, name, want string) (string, bool) {
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	before, rest, found := strings.Cut(text, begin)
	if !found {
		return "", false
	}
	_, after, found := strings.Cut(rest, end)
	return before + begin + want + end + after, found
}

// Table is a Markdown table of a head and rows.
func Table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, r := range rows {
		line(r)
	}
	return b.String()
}
