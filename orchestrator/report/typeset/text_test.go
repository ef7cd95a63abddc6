package typeset

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/internal/testkind"
	"linktrial/orchestrator/report/document"
)

// Settable calls f with each character that is set as it is.
func Settable(f func(rune)) {
	for _, r := range settable.R16 {
		for c := r.Lo; c <= r.Hi; c++ {
			f(rune(c))
		}
	}
}

// TestParts: the parts of a text are the text, and only long words are cut.
func TestParts(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "pure")
	for text, want := range map[string][]string{
		"":                                     nil,
		"short words of a text that is longer": {"short words of a text that is longer"},
		"a " + strings.Repeat("x", 25) + " b":  {"a xxxxxxxx", "xxxxxxxx", "xxxxxxxx", "x b"},
		strings.Repeat("y", 32):                {"yyyyyyyy", "yyyyyyyy", "yyyyyyyy", "yyyyyyyy"},
		strings.Repeat("é", 25) + " end":       {"éééééééé", "éééééééé", "éééééééé", "é end"},
	} {
		got := slices.Collect(parts(text))
		require.Equal(t, want, got, text)
	}
}

// TestPage: wide tables are set smaller, then on a page on its side; long ones of a large
// table is one whose cells are all the same.
func table(rows, columns int, cell string) *document.Table {
	out := &document.Table{Heads: [][]document.Head{make([]document.Head, columns)}, Columns: make([]document.Column, columns)}
	for range rows {
		out.Rows = append(out.Rows, document.Row{Cells: slices.Repeat([]string{cell}, columns)})
	}
	return out
}

// document in lines, whose columns stay below each other.
func TestPage(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "pure")
	for _, c := range []struct {
		columns   int
		size      float64
		landscape bool
	}{{3, 9, false}, {9, 8.5, false}, {11, 7, false}, {16, 7.5, true}, {40, 6.5, true}} {
		got := (&setter{}).table(table(3, c.columns, "0123456789"))
		require.Equal(t, c.size, got.Size, c)
		require.Equal(t, c.landscape, got.Landscape, c)
		require.Empty(t, got.Lines)
	}
}

// TestPlain: a table that is set plainly has lines that fit onto a page, one or more for each
// row and for each row of heads.
func TestPlain(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "pure")
	plainly := func(of *document.Table) tableData {
		return (&setter{plainly: map[*document.Table]bool{of: true}}).table(of)
	}
	long := table(3, 2, "ab")
	long.Columns[0].Number = true
	long.Heads[0][0].Text = "Head"
	long.Rows[2].Group = true
	got := plainly(long)
	require.Equal(t, []string{"Head"}, got.HeadLines)
	ab := []string{"\u00a0\u00a0ab \u00a0ab"}
	require.Equal(t, [][]string{ab, ab, ab}, got.Lines)
	require.Equal(t, []int{2}, got.Groups)
	require.Empty(t, got.Rows)

	// What is longer than its column goes on below, in the column.
	long.Rows[1].Cells[1] = "run 13, bandwidth 16 kbit/s, at Point to point"
	long.Heads[0][1].Text = "The run's number, and its conditions"
	got = plainly(long)
	require.Equal(t, [][]string{ab, {"\u00a0\u00a0ab \u00a0run 13, bandwidth 16 kbit/s, at", "\u00a0\u00a0\u00a0\u00a0 \u00a0Point to point"}, ab}, got.Lines)
	require.Equal(t, []string{"Head \u00a0The run's number, and its", "\u00a0\u00a0\u00a0\u00a0 \u00a0conditions"}, got.HeadLines)
	require.Equal(t, []string{"abc", "de", "f"}, wrapped("abcde f", 3))
	require.Equal(t, []string{""}, wrapped("", 3))

	// The widest columns give way where a page has no room.
	wide := table(1, 20, strings.Repeat("w", mostWide))
	wide.Rows[0].Cells[0] = "0"
	got = plainly(wide)
	require.Len(t, got.Lines[0], 4)
	require.Len(t, []rune(got.Lines[0][0]), mostLine)
	require.True(t, got.Landscape)
	require.Equal(t, leastPlain, got.Size)
}

// TestPlainTables: tables of most rows are lines, with those of their section that have the
// same columns, until few enough cells are left.
func TestPlainTables(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "pure")
	small, first, second, other := table(10, 4, "x"), table(2000, 4, "x"), table(1000, 4, "x"), table(2500, 4, "x")
	other.Heads[0][0].Text = "Another head"
	of := func(tables ...*document.Table) map[*document.Table]bool {
		d := &document.Document{Sections: []document.Section{{}, {}}}
		for i, one := range tables {
			d.Sections[i/3].Blocks = append(d.Sections[i/3].Blocks, document.Block{Paragraph: "x"}, document.Block{Table: one})
		}
		return plainTables(d)
	}
	require.Empty(t, of(small, first, second))
	require.Equal(t, map[*document.Table]bool{first: true, second: true}, of(first, other, second, small), "3000 rows in the same columns")
	require.Equal(t, map[*document.Table]bool{other: true}, of(first, other, small, second), "another section")
}

// TestPlaced: a drawing is as wide as it can be read and fits.
func TestPlaced(t *testing.T) {
	testkind.OfTest(t, testkind.Exact, "pure")
	for size, want := range map[string]struct {
		width     float64
		landscape bool
	}{
		`width="400" height="300"`:  {320, false},
		`width="860" height="400"`:  {481, false},
		`width="1000" height="300"`: {728, true},
		`width="1000" height="700"`: {1000 * 380 / 700.0, true},
		`width="700" height="2000"`: {217, false},
		`width="0" height="0"`:      {481, false},
		`viewBox="0 0 1 1"`:         {481, false},
	} {
		width, landscape := placed([]byte(`<svg xmlns="http://www.w3.org/2000/svg" ` + size + `>`))
		require.InDelta(t, want.width, width, 0.01, size)
		require.Equal(t, want.landscape, landscape, size)
	}
}
