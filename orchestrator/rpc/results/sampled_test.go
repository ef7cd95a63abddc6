package results

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	linktrialv1 "linktrial/api/gen/linktrial/v1"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/store/synthetic"
)

// A report draws the samples of runs that are spread over the plan, and the same file follows from the same store.
func TestReportDrawsSamples(t *testing.T) {
	s, conn := filled(t, nil, synthetic.Shape{ID: "wide", Runs: report.MostSequences + 3, Iterations: 2, Treatments: 3, Samples: 900})
	made := func() string {
		_, html := exported(t, s, &linktrialv1.ResultsRequest{RunId: "wide", Format: "report"})
		return html
	}
	drawings := func(html string) int { return strings.Count(html, "<title>Time–sequence: ") }
	whole := made()
	require.Equal(t, report.MostSequences, drawings(whole))
	require.True(t, strings.Contains(whole, "The time–sequence diagrams of runs 2, 7, 12 are left out: a report has 12."))
	require.True(t, whole == made())

	// Of runs whose samples are gone the report says so, and draws those of other runs.
	_, err := conn.Exec(t.Context(), `DELETE FROM samples WHERE run_id IN ('wide-2', 'wide-4')`)
	require.NoError(t, err)
	html := made()
	require.Equal(t, report.MostSequences, drawings(html))
	require.True(t, strings.Contains(html, "No time–sequence diagram of runs 2, 4: "))
	require.True(t, strings.Contains(html, "The time–sequence diagrams of run 12 are left out"))
	_, err = conn.Exec(t.Context(), `DELETE FROM samples`)
	require.NoError(t, err)
	html = made()
	require.Zero(t, drawings(html))
	require.True(t, strings.Contains(html, "No time–sequence diagram of all 15 runs: "))

	// Other exports have none, and read no samples.
	_, without := exported(t, s, &linktrialv1.ResultsRequest{RunId: "wide", Format: "json"})
	require.False(t, strings.Contains(without, "ampled"))
}

// Long series are bounded and keep their ends.
func TestThinnedSeries(t *testing.T) {
	var points []report.SeriesPoint
	for i := range int64(10_000) {
		p := report.SeriesPoint{Elapsed: time.Duration(i) * 10 * time.Millisecond, Bytes: i * 1000, Sent: true}
		if again := i / 3; i > 5000 {
			p.Retransmits = &again
		}
		points = append(points, p)
	}
	out := thinnedSeries(points, 100)
	require.Len(t, out, 100)
	for i, p := range out {
		require.True(t, p.Sent)
		if i > 0 {
			require.GreaterOrEqual(t, p.Elapsed, out[i-1].Elapsed)
			require.GreaterOrEqual(t, p.Bytes, out[i-1].Bytes)
		}
	}
	require.Equal(t, points[0], out[0])
	require.Equal(t, points[9999].Bytes, out[99].Bytes)
	require.Equal(t, points[9999].Elapsed, out[99].Elapsed)
	require.EqualValues(t, 3333, *out[99].Retransmits)
	require.Nil(t, out[10].Retransmits)
	require.Equal(t, points[:100], thinnedSeries(points[:100], 100))
}
