package document_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/journal"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/document"
	"linktrial/orchestrator/report/reporttest"
)

// sampled gives so many runs samples, as a report is made of them.
func sampled(t *testing.T, ds *report.Dataset, runs int) *report.Dataset {
	t.Helper()
	for i := range runs {
		r := &ds.Runs[i]
		r.Sampled = report.SequenceIteration(r)
		_, trials, err := report.Sequence(r, r.Sampled.Iteration)
		require.NoError(t, err)
		for _, trial := range trials {
			a := &trial.Attempts[len(trial.Attempts)-1]
			s := report.Series{Trial: trial.Index, Attempt: a.Attempt}
			for k := range int64(10) {
				s.Points = append(s.Points, report.SeriesPoint{Elapsed: time.Duration(k) * a.Elapsed / 10, Bytes: k * a.SizeBytes / 10, Retransmits: &k})
			}
			r.Sampled.Series = append(r.Sampled.Series, s)
		}
	}
	return ds
}

// figuresOf are those of a section, and its paragraphs.
func figuresOf(t *testing.T, ds *report.Dataset, o report.Options, id string) (figures []*document.Figure, text string) {
	t.Helper()
	for _, s := range of(t, report.Analyse(ds, o)).Sections {
		if s.ID != id {
			continue
		}
		for _, b := range s.Blocks {
			if text += b.Paragraph + "\n"; b.Figure != nil {
				figures = append(figures, b.Figure)
			}
		}
	}
	return figures, text
}

func TestSequencesOfRuns(t *testing.T) {
	ds := sampled(t, reporttest.Campaign(reporttest.Quickstart()), 1)
	figures, text := figuresOf(t, ds, report.Options{}, "results-sequence")
	require.Len(t, figures, 1)
	require.Contains(t, text, "Each diagram shows one iteration")
	f := figures[0]
	require.Contains(t, f.Caption, "in iteration 1, the first in which every treatment has a valid trial. Other iterations: linktrial results "+ds.Runs[0].ID+" --format sequence-svg:N")
	require.Contains(t, string(f.SVG), "packets sent again")
	require.NotContains(t, string(f.SVG), "sent again by")
	require.Contains(t, f.Alt, ", iteration 1: TCP CUBIC: 256 KiB after 2.90 s; ")

	// What is left out of a report is not in the drawing; the others keep their looks.
	without, _ := figuresOf(t, ds, report.Options{LeaveOut: []string{"udt"}}, "results-sequence")
	require.Contains(t, string(f.SVG), "UDT")
	require.NotContains(t, string(without[0].SVG), "UDT")
	require.Contains(t, string(without[0].SVG), `stroke="#009e73"`) // SCTP, the third
	var all []string
	for _, x := range ds.Runs[0].Sheet.Treatments {
		all = append(all, x.Name)
	}
	none, _ := figuresOf(t, ds, report.Options{LeaveOut: all}, "results-sequence")
	require.Empty(t, none)

	// A failure in each iteration: the one with the most valid trials.
	r := &ds.Runs[0]
	for i := range r.Trials {
		if x := &r.Trials[i]; x.Treatment == "udt" || x.Iteration == 1 && x.Treatment == "sctp" {
			reporttest.Spoil(x, journal.Failed, "reset", "", true)
		}
	}
	ds = sampled(t, ds, 1)
	figures, _ = figuresOf(t, ds, report.Options{}, "results-sequence")
	require.Contains(t, figures[0].Caption, "in iteration 2, the first of those in which the most treatments have a valid trial (3 of 4)")
	require.Contains(t, figures[0].Alt, "UDT: failed (reset)")
}

// Runs without samples say so, and a report without any of them says nothing.
func TestRunsWithoutSequence(t *testing.T) {
	figures, text := figuresOf(t, reporttest.Campaign(reporttest.Quickstart()), report.Options{}, "results-sequence")
	require.Empty(t, figures)
	require.Empty(t, text)

	const first = 12
	var runs []report.Run
	for i := range first + 4 {
		r := reporttest.Quickstart()
		r.ID = fmt.Sprint("r-", i)
		runs = append(runs, r)
	}
	ds := sampled(t, reporttest.Campaign(runs...), first+1)
	ds.Runs[1].Sampled.Series = nil
	ds.Runs[15].Imported = &report.Import{Campaign: "their4xq", Origin: "B", File: "results.json", At: time.Unix(0, 0)}
	for i := range ds.Runs[14].Trials {
		ds.Runs[14].Trials[i].Attempts, ds.Runs[14].Trials[i].Verdict = nil, ""
	}
	figures, text = figuresOf(t, ds, report.Options{}, "results-sequence")
	require.Len(t, figures, first)
	require.Contains(t, text, "No time–sequence diagram of run 2: no samples of the iteration that it would show are stored. They were deleted by their age, or never arrived.")
	require.Contains(t, text, "No time–sequence diagram of run 16: an import has no samples.")
	require.Contains(t, text, "The time–sequence diagrams of run 14 are left out: a report has 12. To draw the one of a run: linktrial results RUN --format sequence-svg")
	require.NotContains(t, text, "15")
}
