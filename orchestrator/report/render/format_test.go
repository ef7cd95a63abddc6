package render

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/internal/docpart"
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
	docpart.Hold(t, "docs/exports.md", "formats", documented())
}

func documented() string {
	var rows [][]string
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
		rows = append(rows, []string{name, "`" + f.File + "`", f.Holds, of})
	}
	return docpart.Table([]string{"format", "file", "what it holds", "of"}, rows)
}
