package report

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"linktrial/executor/runsheet"
	"linktrial/internal/stats"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/report/wording"
)

// Bounds of what people ask of a plan's power, as shares: spreads and effects.
const (
	AssumedSpread = 0.2 // where nobody states one
	LeastShare    = 0.001
	MostShare     = 10.
)

// PowerOptions are what the power of a plan is computed from.
type PowerOptions struct {
	// Earlier is where spreads come from; nil: they are assumed.
	Earlier *Spreads
	// Assumed is the standard deviation of the logarithm of the ratio of two treatments in
	// one iteration, for comparisons that Earlier does not have; 0: [AssumedSpread].
	Assumed float64
	// Effect is a difference, as a share, for which the needed iterations are wanted; 0: none.
	Effect float64
}

// PowerLine is what comparisons of a plan that are alike can find.
type PowerLine struct {
	Runs []int  // of the plan, from 0
	Text string // for people
}

// PowerNote says how the lines are made.
const PowerNote = "A difference of 15 %: the throughputs of two treatments in the same iteration have a ratio of 1.15. It is found where the signed-rank test of the results refuses \"no difference\", at 5 % over the number of comparisons of the run (the first step of Holm's correction). Spread: the standard deviation of the logarithm of this ratio. Logarithms are taken as normal, iterations as independent."

// powers are those of a plan: lines by text, and what they are computed with.
type powers struct {
	PowerOptions
	tests map[int]*stats.Power // by the number of comparisons
	lines []PowerLine
	at    map[string]int // where a text is among them
}

// Power is what each comparison of the runs of a plan, a treatment against the reference,
// can find: the smallest difference found with 80 % and with 95 % chance. Runs and
// comparisons that are alike share a line. A run with a rule to stop by has a line for it. It ends with the error of stop, if that has one.
func Power(stop func() error, sheets []*runsheet.Sheet, o PowerOptions) ([]PowerLine, error) {
	if o.Assumed == 0 {
		o.Assumed = AssumedSpread
	}
	w := &powers{PowerOptions: o, tests: map[int]*stats.Power{}, at: map[string]int{}}
	for i, sh := range sheets {
		if err := w.add(stop, i, sh); err != nil {
			return nil, err
		}
	}
	return w.lines, nil
}

// add adds the comparisons of a run.
func (w *powers) add(stop func() error, run int, sh *runsheet.Sheet) error {
	rows := slices.DeleteFunc(treatments(&Run{Sheet: sh}), func(t runsheet.Treatment) bool { return t.Missing != "" })
	if len(rows) < 2 {
		return nil
	}
	reference, others := rows[0].Name, rows[1:]
	var texts []string // in their order
	labels := map[string][]string{}
	for _, t := range others {
		if err := stop(); err != nil {
			return err
		}
		text := w.compare(sh, reference, t.Name, len(others))
		if sh.Stop != nil {
			text += fixedOnly
		}
		if labels[text] == nil {
			texts = append(texts, text)
		}
		labels[text] = append(labels[text], sh.Label(t.Name))
	}
	for _, text := range texts {
		who := strings.Join(labels[text], ", ")
		if n := len(labels[text]); n == len(others) && n > 1 {
			who = fmt.Sprintf("each of %d treatments", n)
		}
		w.put(run, wording.Clean(fmt.Sprintf("%s against %s", who, sh.Label(reference)))+": "+text)
	}
	if sh.Stop == nil {
		return nil
	}
	text, err := ruleLine(sh)
	if err == nil {
		w.put(run, text)
	}
	return err
}

// put adds a run to the line of a text.
func (w *powers) put(run int, text string) {
	i, known := w.at[text]
	if !known {
		i = len(w.lines)
		w.at[text], w.lines = i, append(w.lines, PowerLine{Text: text})
	}
	w.lines[i].Runs = append(w.lines[i].Runs, run)
}

// compare is what one of a run's comparisons can find, in words.
func (w *powers) compare(sh *runsheet.Sheet, reference, treatment string, comparisons int) string {
	s, basis := w.spread(sh, reference, treatment)
	test := w.tests[comparisons]
	if test == nil {
		test = stats.NewPower(level, comparisons)
		w.tests[comparisons] = test
	}
	n := sh.Iterations()
	pairs := n * s.pairs / s.iterations
	with, comma := wording.Plural(n, "iteration", "iterations"), ""
	if s.pairs < s.iterations {
		comma = ","
		with += fmt.Sprintf(", of which about %d are valid in both (as %d of %d were)", pairs, s.pairs, s.iterations)
	}
	var parts []string
	likely, sure := math.Expm1(s.log*test.Shift(pairs, powerChance)), math.Expm1(s.log*test.Shift(pairs, sureChance))
	switch least := test.LeastPairs(); {
	case pairs < least:
		text := fmt.Sprintf("no difference can be found with %d treatments and %s: %d iterations are needed", comparisons+1, with, s.iterationsOf(least))
		if w.Effect == 0 && !s.failing {
			return text // whatever the spread is
		}
		parts = append(parts, text)
	case sure < smallest:
		parts = append(parts, fmt.Sprintf("with %s any difference of %s is found: the ratio hardly varies", with+comma, smallestText))
	default:
		parts = append(parts, fmt.Sprintf("with %s a difference of %s is found with %.0f %% chance, of %s with %.0f %%", with+comma,
			percent(likely), 100*powerChance, percent(sure), 100*sureChance))
	}
	if w.Effect > 0 {
		parts = append(parts, w.needed(test, &s))
	}
	return strings.Join(append(parts, basis), "; ")
}

// Finding is what one comparison of a run can find, before the run is a plan. It is not for
// several goroutines at once.
type Finding struct {
	test   *stats.Power
	spread float64
}

// NewFinding is of one of so many comparisons, where the ratio of two treatments has the spread.
func NewFinding(comparisons int, spread float64) *Finding {
	return &Finding{stats.NewPower(level, comparisons), spread}
}

// Smallest is the smallest difference, as a share, that so many iterations find with 80 %
// chance; +Inf: none.
func (f *Finding) Smallest(iterations int) float64 {
	return math.Expm1(f.spread * f.test.Shift(iterations, powerChance))
}

// Needed is how many iterations find a difference with 80 % chance; false: more than a plan
// may have.
func (f *Finding) Needed(difference float64) (int, bool) {
	return f.test.Pairs(math.Log1p(difference)/f.spread, powerChance, plan.MaxIterations)
}

// Least is the fewest iterations that find any difference.
func (f *Finding) Least() int { return f.test.LeastPairs() }

// spread is that of a comparison, and what it is based on.
func (w *powers) spread(sh *runsheet.Sheet, reference, treatment string) (spread, string) {
	assumed := spread{log: w.Assumed, pairs: 1, iterations: 1}
	text := "assumed spread of " + percent(w.Assumed)
	if w.Earlier == nil {
		return assumed, text
	}
	s, err := w.Earlier.of(sh, reference, treatment)
	if err != nil {
		assumed.failing = errors.Is(err, errFewValid)
		return assumed, fmt.Sprintf("%s (%v)", text, err)
	}
	return s, fmt.Sprintf("spread of %s, from %s", percent(s.log), s.from)
}

// needed is how many iterations find the wanted effect.
func (w *powers) needed(test *stats.Power, s *spread) string {
	iterations := func(chance float64) string {
		shift := math.Inf(1) // without a spread any effect is found with the fewest pairs
		if s.log > 0 {
			shift = math.Log1p(w.Effect) / s.log
		}
		n, ok := test.Pairs(shift, chance, plan.MaxIterations)
		if n = s.iterationsOf(n); !ok || n > plan.MaxIterations {
			return fmt.Sprintf("more than %d", plan.MaxIterations)
		}
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("one of %s takes %s iterations for %.0f %% chance, %s for %.0f %%", percent(w.Effect), iterations(powerChance), 100*powerChance, iterations(sureChance), 100*sureChance)
}

// iterationsOf is how many iterations leave so many pairs.
func (s *spread) iterationsOf(pairs int) int { return (pairs*s.iterations + s.pairs - 1) / s.pairs }

// smallest is the least share that is written: below it only that, as in virtual time,
// where iterations may differ by nanoseconds.
const (
	smallest     = 1e-4
	smallestText = "0.01 %"
)

// percent writes a share with three digits at least.
func percent(share float64) string {
	if share < smallest {
		return "less than " + smallestText
	}
	return wording.Percent(&share, 1)
}

// RunNumbers names runs of a plan by their numbers from 1: "all 3 runs", "runs 1 to 4, 7".
func RunNumbers(runs []int, all int) string {
	if len(runs) == all && all > 1 {
		return fmt.Sprintf("all %d runs", all)
	}
	var parts []string
	for i := 0; i < len(runs); {
		k := i
		for k+1 < len(runs) && runs[k+1] == runs[k]+1 {
			k++
		}
		from, to := runs[i]+1, runs[k]+1
		switch k {
		case i:
			parts = append(parts, fmt.Sprint(from))
		case i + 1:
			parts = append(parts, fmt.Sprintf("%d, %d", from, to))
		default:
			parts = append(parts, fmt.Sprintf("%d to %d", from, to))
		}
		i = k + 1
	}
	if len(runs) == 1 {
		return "run " + parts[0]
	}
	return "runs " + strings.Join(parts, ", ")
}
