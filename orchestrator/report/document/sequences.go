package document

import (
	"cmp"
	"fmt"
	"strings"

	"linktrial/internal/unit"
	"linktrial/orchestrator/report"
	"linktrial/orchestrator/report/figure"
	"linktrial/orchestrator/report/wording"
)

// sequencePart is the time–sequence diagrams, one a run, and why runs have none.
func sequencePart(v *report.Analysis, names []string) (Section, error) {
	s := Section{ID: "results-sequence", Title: "Time–sequence", Level: 2}
	var without, imported, further []int // runs
	looked, drawn := false, 0
	for i := range v.Dataset.Runs {
		r := &v.Dataset.Runs[i]
		iteration, trials, err := sequenceOf(r)
		switch {
		case err != nil: // no trial with a transfer has begun, or is shown
		case r.Imported != nil:
			imported = append(imported, i)
		case r.Sampled == nil:
			further = append(further, i)
		case len(r.Sampled.Series) == 0:
			looked, without = true, append(without, i)
		default:
			looked = true
			svg, err := figure.SampledSequence(v, i)
			if err != nil {
				return s, fmt.Errorf("time–sequence of run %s: %w", r.ID, err)
			}
			drawn++
			s.Blocks = append(s.Blocks, figureBlock(&Figure{Caption: sequenceCaption(r, names[i]), Alt: sequenceText(&v.Tables[i], iteration, trials), SVG: svg}))
		}
	}
	all := len(v.Dataset.Runs)
	if len(without) > 0 {
		s.Blocks = append(s.Blocks, paragraph("No time–sequence diagram of "+runsText(without, all)+": no samples of the iteration that it would show are stored. They were deleted by their age, or never arrived."))
	}
	if len(imported) > 0 {
		s.Blocks = append(s.Blocks, paragraph("No time–sequence diagram of "+runsText(imported, all)+": an import has no samples."))
	}
	if looked && len(further) > 0 {
		s.Blocks = append(s.Blocks, paragraph(fmt.Sprintf("The time–sequence diagrams of %s are left out: a report has %d. To draw the one of a run: linktrial results RUN --format sequence-svg", runsText(further, all), report.MostSequences)))
	}
	if drawn > 0 {
		s.Blocks = append([]Block{paragraph("Each diagram shows one iteration of its run: the first in which every treatment has a valid trial or, where there is none, the first of those in which the most have one. All treatments of an iteration on emulated radios meet the same channel at the same moments. Long series are drawn with fewer points, which keep every extreme. Another iteration is drawn by: linktrial results RUN --format sequence-svg:N")}, s.Blocks...)
	}
	return s, nil
}

// sequenceOf is what the diagram of a run shows.
func sequenceOf(r *report.Run) (iteration int, trials []*report.Trial, err error) {
	if r.Sampled != nil {
		iteration = r.Sampled.Iteration
	}
	return report.Sequence(r, iteration)
}

func sequenceCaption(r *report.Run, name string) string {
	x, why := r.Sampled, "the first in which every treatment has a valid trial"
	if x.Valid < x.Treatments {
		why = fmt.Sprintf("the first of those in which the most treatments have a valid trial (%d of %d)", x.Valid, x.Treatments)
	}
	return wording.Clean(fmt.Sprintf("Time–sequence, %s: payload acknowledged over time in iteration %d, %s. Other iterations: linktrial results %s --format sequence-svg:N", name, x.Iteration, why, r.ID))
}

// sequenceText says how each treatment of an iteration ended.
func sequenceText(t *report.RunTable, iteration int, trials []*report.Trial) string {
	var said []string
	for _, trial := range trials {
		a := &trial.Attempts[len(trial.Attempts)-1]
		label := trial.Treatment
		if row := t.RowOf(trial.Treatment); row != nil {
			label = cmp.Or(row.Label, label)
		}
		how := "not ended"
		switch {
		case a.Valid():
			seconds := (a.Connect + a.Elapsed).Seconds()
			how = unit.FormatPayload(a.SizeBytes) + " after " + wording.Number(&seconds) + " s"
		case a.Verdict != "":
			how = report.Failure{Verdict: a.Verdict, Reason: a.Why()}.Name()
		}
		said = append(said, wording.Clean(label)+": "+how)
	}
	return fmt.Sprintf("%s, iteration %d: %s.", t.Where(), iteration, strings.Join(said, "; "))
}
