package render

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/reporttest"
)

// A file without a treatment is the whole file less its rows: what is computed over several
// treatments stays, and the reader is told.
func TestLeaveOut(t *testing.T) {
	const left = "tcp-cubic"
	for name, ds := range map[string]*report.Dataset{"eventful": reporttest.Eventful(), "probed": reporttest.Probed()} {
		content := func(format string, o report.Options) string {
			f, err := As(ds, format, o)
			require.NoError(t, err)
			b, err := f.Content()
			require.NoError(t, err)
			return string(b)
		}
		rows := func(text string) [][]string {
			all, err := csv.NewReader(strings.NewReader(text)).ReadAll()
			require.NoError(t, err)
			return all
		}
		for _, format := range []string{"csv", "trials-csv"} {
			want := rows(content(format, report.Options{}))
			k := slices.Index(want[0], "treatment")
			before := len(want)
			want = slices.DeleteFunc(want, func(r []string) bool { return r[k] == left })
			require.Less(t, len(want), before, "%s, %s", name, format)
			require.Equal(t, want, rows(content(format, report.Options{LeaveOut: []string{left}})), "%s, %s", name, format)
		}
		if name == "eventful" { // it is partial: how far the run is does not depend on what is shown
			partial := func(text string) string {
				_, after, _ := strings.Cut(text, "partial: ")
				line, _, _ := strings.Cut(after, "\n")
				return line
			}
			want := partial(content("table", report.Options{}))
			require.NotEmpty(t, want)
			require.Equal(t, want, partial(content("table", report.Options{LeaveOut: []string{left}})))
		}
		note := "Left out on request: " + left + "."
		table := content("table", report.Options{LeaveOut: []string{left}})
		require.Contains(t, table, note)
		require.NotContains(t, content("table", report.Options{}), note)

		// What is made of its JSON again has the same rows.
		again, err := report.ReadJSON([]byte(content("json", report.Options{LeaveOut: []string{left}})))
		require.NoError(t, err)
		f, err := As(again, "trials-csv", report.Options{})
		require.NoError(t, err)
		b, err := f.Content()
		require.NoError(t, err)
		require.Equal(t, content("trials-csv", report.Options{LeaveOut: []string{left}}), string(b), name)
	}
}
