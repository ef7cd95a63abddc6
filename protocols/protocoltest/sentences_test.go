package protocoltest

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of sentences to README.md")

const (
	contractPage = "../../docs/driver-contract.md"
	tablePage    = "README.md"
	tableHead    = "| sentence | held by |\n|---|---|\n"
)

// splitPage returns the page of the table of sentences: what is before it, the table's
// rows, and what follows.
func splitPage(t *testing.T) (before, rows, after string) {
	t.Helper()
	before, rest, found := strings.Cut(readPage(t, tablePage), tableHead)
	if !found {
		t.Fatalf("%s has no table that begins with\n%s", tablePage, tableHead)
	}
	for strings.HasPrefix(rest, "|") {
		row, more, _ := strings.Cut(rest, "\n")
		rows, rest = rows+row+"\n", more
	}
	return before, rows, rest
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// numbered are the sentences of a text by their numbers, in its order.
func numbered(text string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`\[([A-Z][0-9]+)\][ ]`).FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// TestSentences holds the contract against the checks: every sentence with a number is
// held by a check or has the reason why not, and the table lists which.
func TestSentences(t *testing.T) {
	before, rows, after := splitPage(t)
	sentences := numbered(readPage(t, contractPage))
	by := map[string][]string{}
	for _, c := range checks {
		if len(c.holds) == 0 {
			t.Errorf("the check %s holds no sentence of the contract", c.name)
		}
		for _, n := range c.holds {
			by[n] = append(by[n], "`"+c.name+"`")
		}
	}
	for _, n := range slices.Concat(keys(by), keys(untested)) {
		if !slices.Contains(sentences, n) {
			t.Errorf("%s has no sentence %s", contractPage, n)
		}
	}
	var want strings.Builder
	seen := map[string]bool{}
	for _, n := range sentences {
		if seen[n] {
			t.Errorf("%s has the number %s twice", contractPage, n)
		}
		seen[n] = true
		reason := untested[n]
		switch {
		case len(by[n]) > 0 && reason != "":
			t.Errorf("%s is held by %s, and has a reason why nothing holds it", n, strings.Join(by[n], ", "))
		case len(by[n]) > 0:
			fmt.Fprintf(&want, "| %s | %s |\n", n, strings.Join(by[n], ", "))
		case reason != "":
			fmt.Fprintf(&want, "| %s | nothing: %s |\n", n, reason)
		default:
			t.Errorf("no check holds the sentence %s, and untested has no reason", n)
		}
	}
	if t.Failed() || want.String() == rows {
		return
	}
	if !*update {
		t.Fatalf("the table of sentences in %s is not what the checks declare: go test ./protocols/protocoltest -run TestSentences -update", tablePage)
	}
	if err := os.WriteFile(tablePage, []byte(before+tableHead+want.String()+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

func keys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func TestNumbered(t *testing.T) {
	got := numbered("[A1] One. [A2] Two, [B10] and\n[C3] three, not [link](x), `b[D4]` nor [x] y")
	if want := []string{"A1", "A2", "B10", "C3"}; !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
}
