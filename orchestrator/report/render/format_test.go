package render

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/internal/checkout"
)

// Every format says all that the API, the pages and the documents have of it, and no name
// stands for two.
func TestFormatsAreComplete(t *testing.T) {
	names, files, titles := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, f := range Formats() {
		require.False(t, names[f.Name] || files[f.File] || titles[f.Title], f.Name)
		names[f.Name], files[f.File], titles[f.Title] = true, true, true
		require.NotEmpty(t, f.Title, f.Name)
		require.NotEmpty(t, f.Holds, f.Name)
		require.NotContains(t, f.Holds, "|", f.Name)
		require.NotEmpty(t, f.MediaType, f.Name)
		require.Equal(t, f.Source == FromDataset, f.write != nil, "%s: what does not come from a data set is written elsewhere", f.Name)
		require.Equal(t, f.parts != nil, f.Numbered == ByPart, f.Name)
		require.Same(t, f, Find(f.Name))
		require.Same(t, f, OfFile(f.File))
	}
	require.Nil(t, Find("pdf"))
	require.Nil(t, OfFile("results.pdf"))
}

// The table in docs/exports.md is that of the formats. Write it with:
// go test ./orchestrator/report/render -run TestDocumentListsFormats -update
func TestDocumentListsFormats(t *testing.T) {
	const begin, end = "<!-- formats -->\n", "<!-- /formats -->"
	root, err := checkout.Root()
	require.NoError(t, err)
	path := filepath.Join(root, "docs", "exports.md")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found)
	want := before + begin + documented() + end + after
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text), "docs/exports.md has not the formats of format.go; write them with: go test ./orchestrator/report/render -run TestDocumentListsFormats -update")
}

func documented() string {
	var b strings.Builder
	b.WriteString("| format | file | what it holds | of |\n|---|---|---|---|\n")
	for _, f := range Formats() {
		name := "`" + f.Name + "`"
		if f.Numbered != ByNothing {
			name += fmt.Sprintf(", `%s:N` (N: the number of %s)", f.Name, f.Numbered)
		}
		of := string(f.Of)
		if f.Own() {
			of = strings.TrimPrefix(of+", own", ", ")
		}
		if of == "" {
			of = "all"
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", name, f.File, f.Holds, of)
	}
	return b.String()
}
