package report

import (
	"fmt"
	"strings"

	"linktrial/executor/runsheet"
	"linktrial/internal/stats"
	"linktrial/orchestrator/report/wording"
)

// The chances that lines are for.
const (
	powerChance = 0.8
	sureChance  = 0.95
)

// fixedOnly is said of what comparisons find where a rule may end the run.
const fixedOnly = "; this is of a run to its last iteration, before which its rule to stop by may end it"

// StopLooks is when the rule of a sheet to stop by looks, for people.
func StopLooks(s *runsheet.Stop) string {
	const shown = 8
	n := len(s.Looks)
	var texts []string
	for i, look := range s.Looks {
		if n <= shown || i < shown/2 || i == n-1 {
			texts = append(texts, fmt.Sprint(look))
		} else if i == shown/2 {
			texts = append(texts, "…")
		}
	}
	text := "after " + map[bool]string{true: "iteration ", false: "iterations "}[n == 1] + strings.Join(texts, ", ")
	if n > shown {
		text += fmt.Sprintf(" (%d looks)", n)
	}
	return text
}

// ruleLine is what the rule of a sheet does, and how many iterations a comparison by it takes:
// by the design of the same spending for normal statistics ([stats.SpendingDesign]), at the level of
// the first comparison to be decided. Ranks of few pairs take one or two iterations more where there is
// a difference (TestPrintedIterationsAreThoseOfTheRule).
func ruleLine(sh *runsheet.Sheet) (string, error) {
	s, names := sh.Stop, sh.Compared()
	comparisons, last := len(names)*(len(names)-1)/2, sh.Iterations()
	fractions := make([]float64, len(s.Looks))
	for i, look := range s.Looks {
		fractions[i] = float64(look) / float64(last)
	}
	d, err := stats.SpendingDesign(s.Spending, s.Alpha/float64(comparisons), fractions)
	if err != nil {
		return "", fmt.Errorf("rule to stop by: %w", err)
	}
	text := fmt.Sprintf("rule to stop by: it looks %s; %s spends %.6g %% over all looks and %s: %d treatments are compared pair by pair, by time to delivery (a failed trial counts as the horizon, %s); one that is beaten has no more trials, and the run ends when one is left",
		StopLooks(s), s.Spending, 100*s.Alpha, wording.Plural(comparisons, "comparison", "comparisons"), len(names), sh.Limits.DeliveryHorizon())
	if first := s.Sequential().FirstDecisive(comparisons); first > s.Looks[0] {
		text += fmt.Sprintf("; the first look that can decide anything is after iteration %d", first)
	}
	info, iterations := d.Information(powerChance), func(x float64) string { return fmt.Sprintf("%.0f", x*float64(last)) }
	return text + fmt.Sprintf("; a comparison takes about %s iterations on average where nothing differs, and about %s where the difference is the one that is found with %.0f %% chance by iteration %d; a fixed number that finds it as often is about %s",
		iterations(info.MeanNull/info.Largest), iterations(info.MeanTrue/info.Largest), 100*powerChance, last, iterations(1/info.Largest)), nil
}
