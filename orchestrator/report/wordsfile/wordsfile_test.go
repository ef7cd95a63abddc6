package wordsfile_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/internal/yamlschema/yamlschematest"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/wordsfile"
)

func TestRead(t *testing.T) {
	w, version, err := wordsfile.Read("w.yaml", []byte("version: 3\ntitle: A day\nauthor:\nsummary: |\n  One\n  line.\n\n  Two.\nremarks: {results: x, method: ''}\n"))
	require.NoError(t, err)
	require.Equal(t, 3, version)
	require.Equal(t, report.Words{Title: "A day", Summary: "One\nline.\n\nTwo.", Remarks: map[string]string{"results": "x"}}, w)
	_, version, err = wordsfile.Read("w.yaml", []byte("title: A day\n"))
	require.NoError(t, err)
	require.Equal(t, -1, version)
}

// Every problem is told, with its place.
func TestProblems(t *testing.T) {
	text := "titel: x\nversion: -1\nauthor: \"a\\nb\"\nsummary: " + strings.Repeat("x", report.MaxWordsSummary+1) + "\nremarks:\n  result: x\n  method: \"\\x1b[2J\"\n"
	_, _, err := wordsfile.Read("w.yaml", []byte(text))
	for _, want := range []string{
		`w.yaml:1:1: unknown key "titel" (did you mean "title"?); there are version, title, author, summary, remarks`,
		"w.yaml:2:10: version: expected a whole number from 0 to 2147483647, found \"-1\"",
		"w.yaml:3:9: author: it has the control character U+000A at byte 1",
		"w.yaml:4:10: summary: 10001 characters, expected at most 10000",
		`w.yaml:6:3: unknown key "result" (did you mean "results"?)`,
		"w.yaml:7:11: remarks.method: holds the control character U+001B",
	} {
		require.ErrorContains(t, err, want)
	}
	for text, want := range map[string]string{"[]": "expected a mapping", "title: [a]": "w.yaml:1:8: title: expected text", "remarks: x": "expected a mapping", "{": "w.yaml:1:", "version:": "version"} {
		_, _, err := wordsfile.Read("w.yaml", []byte(text))
		require.ErrorContains(t, err, want, text)
	}
}

// What is written is read again as it was, whatever people typed.
func FuzzWrite(f *testing.F) {
	for _, s := range []string{"", "a", "one\n\ntwo", " # x: y\n- z", "---\n...\n", "null", "3", "'\"\\", "\u2028x\n\ny", "a \n\tb", "{{x}} &a *b !c %d @e `f`", "中👩", strings.Repeat("long ", 100), "a\n b\n  c", "\ufeffx"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		w := report.Words{Title: strings.ReplaceAll(s, "\n", " "), Author: "x", Summary: s, Remarks: map[string]string{"results": s + "\n\n" + s}}
		w.Tidy()
		if w.Check() != nil {
			return // no words that are saved
		}
		b, err := wordsfile.Write(w, 7, []string{"Of a campaign\ntitle: y"})
		require.NoError(t, err)
		got, version, err := wordsfile.Read("w.yaml", b)
		require.NoError(t, err, "%s", b)
		require.Equal(t, 7, version)
		require.Equal(t, w, got, "%s", b)
	})
}

// The example of every key is right.
func TestExamplesOfKeys(t *testing.T) {
	e := yamlschematest.Examples{Of: wordsfile.Language, Basis: "title: x\n", Read: func(text []byte) error {
		_, _, err := wordsfile.Read("w.yaml", text)
		return err
	}}
	require.Equal(t, 5+len(report.Chapters), e.Run(t))
}

// The documentation has every key, and its example is read.
func TestKeysAreDocumented(t *testing.T) {
	b, err := os.ReadFile("../../../docs/report.md")
	require.NoError(t, err)
	for _, m := range wordsfile.Language.Mappings() {
		for _, k := range m.Keys {
			require.Contains(t, string(b), "`"+k.Name+"`")
		}
	}
	_, example, found := strings.Cut(string(b), "\n    version: 2\n")
	require.True(t, found)
	example, _, _ = strings.Cut("    version: 2\n"+example, "\n\nAll texts are plain")
	w, version, err := wordsfile.Read("w.yaml", []byte(strings.ReplaceAll(example, "\n    ", "\n")[4:]))
	require.NoError(t, err)
	require.Equal(t, 2, version)
	require.Len(t, report.Paragraphs(w.Summary), 2)
	require.NotEmpty(t, w.Remarks["results"])
}
