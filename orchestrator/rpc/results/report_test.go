package results

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	"linktrial/internal/radiocontrol"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/render"
	"linktrial/orchestrator/report/reporttest"
	"linktrial/orchestrator/report/typeset"
)

// FuzzFormat: iterations and parts are numbers from 1, and only of what has them.
func FuzzFormat(f *testing.F) {
	for _, s := range []string{"csv", "sequence-svg", "sequence-svg:3", "sequence-svg:0", "sequence-svg:x", "sequence-svg:99999999999999999999", "svg:2", "csv:2", "csv:", "parquet"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		format, n, err := formatOf(text)
		switch {
		case err != nil:
			require.Nil(t, format)
		case n == 0:
			require.Equal(t, text, format.Name)
		default:
			require.NotEqual(t, render.ByNothing, format.Numbered)
			again, m, err := formatOf(fmt.Sprintf("%s:%d", format.Name, n))
			require.NoError(t, err)
			require.Equal(t, format, again)
			require.Equal(t, n, m)
			require.Positive(t, n)
		}
	})
}

// Each file of rows has what writes it, and nothing else has.
func TestRowWriters(t *testing.T) {
	var want []string
	for _, f := range render.Formats() {
		if f.Source == render.FromRows {
			want = append(want, f.Name)
		}
	}
	require.ElementsMatch(t, want, slices.Collect(maps.Keys(rowWriters)))
}

// A report for people is told from the files that are written where no format is named.
func TestReportsAreDocuments(t *testing.T) {
	var documents []string
	for _, f := range render.Formats() {
		if asFormat(f).Document {
			documents = append(documents, f.Name)
		}
	}
	require.Contains(t, documents, "report")
	require.NotContains(t, documents, "json")
	require.NotContains(t, documents, "markdown")
}

// TestNoTypesetter: an orchestrator without what sets a PDF says in one sentence what to do.
func TestNoTypesetter(t *testing.T) {
	t.Setenv(typeset.Variable, t.TempDir())
	file, err := renderAs(reporttest.Eventful(), render.Find("report-pdf"), report.Options{})
	require.NoError(t, err)
	_, err = file.Content()
	require.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err))
	require.ErrorContains(t, err, "the typesetter Typst is not in")
}

// FuzzChannels: a report of an emulated radio gives as many series as it has, each no
// longer than what was sent.
func FuzzChannels(f *testing.F) {
	b, err := json.Marshal(map[string]any{"channels": []radiocontrol.ChannelHistory{{From: "client", To: "server", Step: time.Second, AtUS: []int64{0, 1}, Loss: []float64{0, 0.5}}}})
	require.NoError(f, err)
	f.Add(b)
	f.Add([]byte(`{"channels":[null]}`))
	f.Add([]byte(`{"channels":null}`))
	f.Add([]byte("["))
	f.Fuzz(func(t *testing.T, report []byte) {
		series, err := channels(report)
		if err != nil {
			require.Empty(t, series)
			return
		}
		for _, s := range series {
			require.LessOrEqual(t, len(s.At)+len(s.Loss)+len(s.DelayMs), len(report))
		}
	})
}
