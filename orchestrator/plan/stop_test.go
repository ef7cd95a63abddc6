package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"linktrial/executor/runsheet"
	"linktrial/internal/stats"
	"linktrial/orchestrator/plan"
	"linktrial/orchestrator/sheet"
)

// ruled is a plan of three treatments with more keys.
func ruled(more string) string {
	return `name: x
radio: mpu4
topology: k-lot
size: 64 KiB
treatments:
  - {name: a, protocol: tcp}
  - {name: b, protocol: tcp, options: {congestion: westwood}}
  - {name: c, protocol: tcp, options: {congestion: reno}}
seed: 1
` + more + "\n"
}

func parsed(t *testing.T, text string) *plan.Plan {
	t.Helper()
	p, err := plan.Parse(nil, "x.yaml", []byte(text), testCatalog(t))
	require.NoError(t, err)
	return p
}

// A rule is part of the sheets of its groups, with looks over their own iterations.
func TestStopIsInTheSheet(t *testing.T) {
	p := parsed(t, ruled(`iterations: 30
stop: {first: 16, every: 5}
groups:
  - {name: as-plan}
  - {name: longer, iterations: 32}
  - {name: own, stop: {first: 10, every: 50, spending: pocock, alpha: 1.5 %}}`))
	require.Empty(t, p.Notes)
	sheets, err := sheet.Compile(nil, p)
	require.NoError(t, err)
	for i, want := range []runsheet.Stop{
		{Looks: []int{16, 21, 26, 30}, Alpha: 0.05, Spending: stats.OBrienFleming},
		{Looks: []int{16, 21, 26, 31, 32}, Alpha: 0.05, Spending: stats.OBrienFleming},
		{Looks: []int{10, 30}, Alpha: 0.015, Spending: stats.Pocock},
	} {
		require.Equal(t, &want, sheets[i].Stop)
		require.Equal(t, &want, p.Cells[i].Stop)
	}
	require.Contains(t, sheet.Summary(sheets[0]), "order), at most about ")

	// The last look is not there twice, and a run may have it alone.
	p = parsed(t, ruled("iterations: 20\nstop: {first: 20, every: 5}"))
	require.Equal(t, []int{20}, p.Cells[0].Stop.Looks)

	p = parsed(t, ruled("iterations: 20"))
	sheets, err = sheet.Compile(nil, p)
	require.NoError(t, err)
	require.Nil(t, sheets[0].Stop)
	require.Contains(t, sheet.Summary(sheets[0]), "order), about ")
}

// A first look at which nothing can be decided is said once for each rule.
func TestStopNotes(t *testing.T) {
	p := parsed(t, ruled("iterations: 30\nstop: {first: 5, every: 5}\nsweep: [{name: rate, set: rate, values: [1 Mbit/s, 2 Mbit/s]}]"))
	require.Equal(t, []string{"The rule to stop by can decide nothing after iteration 5: the first look that can is after iteration 15."}, p.Notes)
	p = parsed(t, ruled("iterations: 30\nstop: {first: 5, every: 5, spending: pocock}\ngroups: [{name: g}, {name: h, treatments: [a, b]}]"))
	require.Equal(t, []string{"The rule to stop by of group g can decide nothing after iteration 5: the first look that can is after iteration 10.",
		"The rule to stop by of group h can decide nothing after iteration 5: the first look that can is after iteration 10."}, p.Notes)
}

// Each mistake in a rule is one problem, at its place.
func TestStopMistakes(t *testing.T) {
	const timed = "\nflows: [{duration: 10s}]"
	for text, want := range map[string]string{
		"stop: {every: 5}":                                "11:7: stop.first is missing",
		"stop: {first: 10}":                               "11:7: stop.every is missing",
		"stop: {}":                                        "11:7: stop.first is missing",
		"stop: 10":                                        "11:7: stop: expected a mapping",
		"stop: {first: ten, every: 5}":                    `11:15: stop.first: expected a whole number from 1 to 500, found "ten"`,
		"stop: {first: 0, every: 5}":                      `11:15: stop.first: expected a whole number from 1 to 500, found "0"`,
		"stop: {first: 31, every: 5}":                     "11:15: stop.first: the first look is after iteration 31, expected at most 30, the last one",
		"stop: {first: 10, every: 0}":                     `11:26: stop.every: expected a whole number from 1 to 500, found "0"`,
		"stop: {first: 10, every: 5, spending: all}":      "11:39: stop.spending: ",
		"stop: {first: 10, every: 5, alpha: 0 %}":         `11:36: stop.alpha: expected a number from 0.001 to 50 and %, found "0 %"`,
		"stop: {first: 10, every: 5, alpha: 51 %}":        `11:36: stop.alpha: expected a number from 0.001 to 50 and %, found "51 %"`,
		"stop: {first: 10, every: 5, alpha: 0.05}":        `11:36: stop.alpha: expected a number from 0.001 to 50 and %, found "0.05"`,
		"stop: {first: 10, every: 5, looks: 3}":           `11:29: unknown key "looks"; there are first, every, spending, alpha`,
		"stop: {first: 3, every: 3}\niterations: 7":       "11:7: stop: with 7 iterations no look can decide anything between 3 treatments, compared pair by pair: at least 8 iterations are needed",
		"stop: {first: 1, every: 1}\niterations: 500":     "11:25: stop.every: makes 500 looks at 500 iterations, expected at most 100 looks",
		"stop: {first: 100, every: 50}\niterations: 501":  "11:7: stop: a rule to stop by is for at most 500 iterations, found 501",
		"stop: {first: 10, every: 5}" + timed:             "11:7: stop: a rule to stop by compares times to delivery; flows are bounded by a time and have none",
		"stop: {first: 10, every: 5}\nsize: [1 MB, 2 MB]": "",
		"stop: {first: 10, every: 5}\nmixes: [{name: m, flows: [{treatment: a, duration: 10s}]}]":   "11:7: stop: a rule to stop by compares times to delivery; flows are bounded",
		"stop: {first: 10, every: 5}\ngroups: [{name: g, treatments: a}]":                           "11:7: stop: a rule to stop by compares 2 to 20 treatments that are not missing and are no probes; a run of group g has 1",
		"stop: {first: 10, every: 5}\ngroups: [{name: g, iterations: 9}, {name: h, iterations: 8}]": "11:15: stop.first: the first look is after iteration 10, expected at most 9, the last one of group g",
		"groups: [{name: g, stop: {first: 10, every: 5}, flows: [{duration: 1s}]}, {name: h}]":      "11:26: groups[0].stop: a rule to stop by compares times to delivery; flows of group g are bounded",
	} {
		doc := ruled("iterations: 30\n" + text)
		for _, key := range []string{"iterations", "size"} { // what the case states instead
			if strings.Count(doc, "\n"+key+":") > 1 {
				before, after, _ := strings.Cut(doc, "\n"+key+":")
				_, rest, _ := strings.Cut(after, "\n")
				doc = before + "\n# " + key + "\n" + rest
			}
		}
		_, err := plan.Parse(nil, "x.yaml", []byte(doc), testCatalog(t))
		ps := problemsOf(t, err)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		if len(ps) == 0 || !strings.Contains(fmt.Sprintf("%d:%d: %s", ps[0].Line, ps[0].Column, ps[0].Message), want) || len(ps) > 1 && text != "stop: {}" {
			t.Errorf("%s:\n%v\nexpected %q", text, ps, want)
		}
	}
}

// Probes and treatments that the plan itself cannot run are not compared.
func TestStopComparesTreatmentsWithTrials(t *testing.T) {
	text := ruled("iterations: 30\nstop: {first: 10, every: 5}")
	text = strings.Replace(text, "tcp, options: {congestion: westwood}", "none, missing: not built", 1)
	p := parsed(t, text)
	require.Len(t, p.Missing(), 1)
	_, err := plan.Parse(nil, "x.yaml", []byte(strings.Replace(text, "tcp, options: {congestion: reno}", "other, missing: not built", 1)), testCatalog(t))
	require.EqualError(t, err, "x.yaml:11:7: stop: a rule to stop by compares 2 to 20 treatments that are not missing and are no probes; a run has 1")

	for i := range 18 {
		text = strings.Replace(text, "seed: 1", fmt.Sprintf("  - {name: t%d, protocol: tcp, options: {mss: %d B}}\nseed: 1", i, 500+i), 1)
	}
	require.NotNil(t, parsed(t, text).Cells[0].Stop) // 20 with trials
	_, err = plan.Parse(nil, "x.yaml", []byte(strings.Replace(text, "seed: 1", "  - {name: one, protocol: udt}\nseed: 1", 1)), testCatalog(t))
	require.ErrorContains(t, err, "a run has 21")
}

// Where nodes lack treatments, the rule compares the others; of one there is nothing to compare.
func TestStopOfLackingNodes(t *testing.T) {
	text := ruled("iterations: 30\nstop: {first: 10, every: 5}\nsweep: [{name: rate, set: rate, values: [1 Mbit/s, 2 Mbit/s]}]")
	p := parsed(t, text)
	why := p.MarkUnavailable([]map[string]string{{"b": "not there"}, {"b": "not there", "c": "not there"}})
	require.Equal(t, []string{"treatment b: not there", "the rule to stop by: of a run, fewer than two treatments are left to compare", "treatment c: not there"}, why)
	sheets, err := sheet.Compile(nil, p)
	require.NoError(t, err)
	require.Equal(t, []int{10, 15, 20, 25, 30}, sheets[0].Stop.Looks)
	require.Equal(t, []string{"a", "c"}, sheets[0].Compared())
	require.Nil(t, sheets[1].Stop)
}
