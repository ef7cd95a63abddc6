package report_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"linktrial/executor/runsheet"
	"linktrial/orchestrator/report"
)

// notesOf are the notes that begin so.
func notesOf(t report.RunTable, begin string) (notes []string) {
	for _, n := range t.Notes {
		if strings.HasPrefix(n, begin) {
			notes = append(notes, n)
		}
	}
	return notes
}

// ratesOf are throughputs of so many iterations, KB/s: a level for each treatment, times what
// the iteration makes of it and seeded luck of 5 %.
func ratesOf(seed uint64, n int, iteration func(i int) float64, levels ...float64) (rates map[string][]float64, names []string) {
	rng, rates := rand.New(rand.NewPCG(35, seed)), map[string][]float64{}
	names = []string{"a", "b", "c", "d"}[:len(levels)]
	for i := range n {
		for k, name := range names {
			rates[name] = append(rates[name], levels[k]*iteration(i)*math.Exp(0.05*rng.NormFloat64()))
		}
	}
	return rates, names
}

func steady(int) float64 { return 1 }

func TestOmnibus(t *testing.T) {
	of := func(r report.Run) []string { return append(notesOf(tableOf(r), "The "), notesOf(tableOf(r), "No ")...) }
	rates, names := ratesOf(1, 12, steady, 100, 120, 150)
	require.Equal(t, []string{"The 3 treatments differ as a whole (Friedman, p < 0.001, 12 iterations)."}, of(runOf(rates, names...)))

	rates["c"][3] = 0
	require.Contains(t, of(runOf(rates, names...))[0], "11 iterations", "all treatments have a value in these")

	rates, names = ratesOf(2, 12, steady, 100, 100, 100)
	same := of(runOf(rates, names...))
	require.Len(t, same, 1)
	require.Regexp(t, `^No difference of the 3 treatments as a whole is found \(Friedman, p = 0\.\d{3}, 12 iterations\): differences of pairs may be chance\.$`, same[0])

	running := runOf(rates, names...)
	running.State = "running"
	require.Contains(t, tableOf(running).Notes[0], "So far: no difference of the 3 treatments")

	rates, names = ratesOf(3, 12, steady, 100, 200)
	require.Empty(t, of(runOf(rates, names...)), "two treatments are a pair")
	rates, names = ratesOf(3, 2, steady, 100, 200, 300)
	require.Empty(t, of(runOf(rates, names...)), "too few iterations")
	rates, names = ratesOf(3, 12, steady, 100, 200, 300)
	rates["c"] = nil
	r := runOf(rates, names...)
	r.Sheet.Treatments[2].Missing = "no driver"
	require.Empty(t, of(r), "the third is missing")
}

// A pair may be decided where treatments as a whole are not found to differ. Its P is corrected
// for all pairs, so that it is no chance.
func TestOmnibusBesideADecision(t *testing.T) {
	rates := map[string][]float64{}
	for i := range 12 {
		rates["a"], rates["b"] = append(rates["a"], 130+20*float64(i%2)), append(rates["b"], 129+20*float64(i%2))
		rates["c"], rates["d"] = append(rates["c"], 132-40*float64(i%2)+float64(i%3)), append(rates["d"], 132-40*float64(i%2)+float64((i+1)%3))
	}
	table := tableOf(runOf(rates, "a", "b", "c", "d"))
	require.True(t, table.Lead.Decided, table.Conclusion)
	require.Regexp(t, `^No difference of the 4 treatments as a whole is found \(.*\): differences of pairs other than the decided one may be chance\.$`, table.Notes[0])
}

// Where shares of failures differ, the conclusion is over the time to delivery of all trials, and
// so is the test over all treatments: one that fails is not left out of it.
func TestOmnibusOverDelivery(t *testing.T) {
	times := map[string][]float64{"a": {10, 11, 12, 10, 11, 12}, "b": {20, 21, 0, 20, 0, 22}, "c": {0, 0, 0, 0, 0, 0}}
	notes := tableOf(timesOf(100*time.Second, times, "a", "b", "c")).Notes
	require.Len(t, notes, 1)
	require.Regexp(t, `^The 3 treatments differ as a whole \(Friedman, time to delivery, p (< 0\.001|= 0\.00\d), 6 iterations\)\.$`, notes[0])
}

func TestDriftIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		iteration func(i int) float64
		n         int
		want      string
	}{
		"none":               {steady, 20, ""},
		"a jump":             {func(i int) float64 { return []float64{1, 0.7}[min(1, i/11)] }, 20, `^From iteration 12 on, throughput is (29|3\d) % lower than before \(p < 0\.001, 20 iterations; A −(2[5-9]|3\d) %, B −(2[5-9]|3\d) %\)\. Averages are of both parts; pairs, each of one iteration, stay comparable where treatments changed alike\.$`},
		"a jump upwards":     {func(i int) float64 { return []float64{0.5, 1}[min(1, i/8)] }, 20, `^From iteration 9 on, throughput is (9\d|10\d) % higher than before \(`},
		"a trend":            {func(i int) float64 { return 1 - 0.02*float64(i) }, 20, `^Throughput fell over the iterations: in the last third it is 2\d % lower than in the first \(Kendall's τ = −0\.\d\d, p < 0\.001, 20 iterations; A −2\d %, B −2\d %\)\. Averages are of all of it; pairs, `},
		"too few iterations": {func(i int) float64 { return []float64{1, 0.3}[min(1, i/2)] }, 4, ""},
		"next to nothing":    {steady, 20, ""},
	} {
		rates, names := ratesOf(4, c.n, c.iteration, 100, 200)
		if name == "next to nothing" { // in virtual time nothing else may differ
			for i := range rates["a"] {
				rates["a"][i], rates["b"][i] = 100+0.01*float64(i), 200+0.02*float64(i)
			}
		}
		notes := append(notesOf(tableOf(runOf(rates, names...)), "From iteration"), notesOf(tableOf(runOf(rates, names...)), "Throughput")...)
		if c.want == "" {
			require.Empty(t, notes, name)
			continue
		}
		require.Len(t, notes, 1, name)
		require.Regexp(t, c.want, notes[0], name)
	}
}

// Where one treatment changes alone, its pairs are not comparable: the note has the change of each.
func TestDriftOfOneTreatment(t *testing.T) {
	rates, names := ratesOf(6, 20, steady, 100, 100, 100)
	for i := 10; i < 20; i++ {
		rates["b"][i] *= 0.4
	}
	require.Regexp(t, `^From iteration 11 on, throughput is (2[4-9]|3\d) % lower than before \(.*; A [+−]\d\.\d %, B −(5[5-9]|6\d) %, C [+−]\d\.\d %\)\.`, notesOf(tableOf(runOf(rates, names...)), "From")[0])
	rates, names = ratesOf(6, 20, func(i int) float64 { return []float64{1, 0.7}[min(1, i/11)] }, 100)
	require.Regexp(t, `^From iteration 12 on, throughput is (29|3\d) % lower than before \(p < 0\.001, 20 iterations\)\. The average is of both parts\.$`, notesOf(tableOf(runOf(rates, names...)), "From")[0], "a run of one")
}

func TestDriftOfManyTreatments(t *testing.T) {
	rates, names := map[string][]float64{}, []string{"a", "b", "c", "d", "e"}
	for i := range 20 {
		for k, name := range names {
			rates[name] = append(rates[name], (100+float64(i%3))*[]float64{1, 1 - 0.1*float64(k+1)}[min(1, i/10)])
		}
	}
	require.Contains(t, notesOf(tableOf(runOf(rates, names...)), "From iteration 11 on")[0], " iterations; E −50 %, A −10 %).")
}

// Nobody looks for a drift after every iteration: chance would show one sooner or later.
func TestNoDriftWhileARunGoesOn(t *testing.T) {
	rates, names := ratesOf(4, 20, func(i int) float64 { return []float64{1, 0.7}[min(1, i/11)] }, 100, 200)
	r := runOf(rates, names...)
	require.Len(t, notesOf(tableOf(r), "From iteration 12 on"), 1)
	r.State = "stopped"
	require.Len(t, notesOf(tableOf(r), "From iteration 12 on"), 1, "it has ended")
	r.State = "running"
	require.Empty(t, tableOf(r).Notes)
}

// A treatment that fails in half of the iterations does not hide a drift, and makes none.
func TestDriftBesideFailures(t *testing.T) {
	for jump, want := range map[float64]int{0.7: 1, 1: 0} {
		rates, names := ratesOf(5, 24, func(i int) float64 { return []float64{1, jump}[min(1, i/12)] }, 100, 1000)
		for i := range rates["b"] {
			if i%2 == 1 || i > 20 {
				rates["b"][i] = 0
			}
		}
		require.Len(t, notesOf(tableOf(runOf(rates, names...)), "From iteration 13 on"), want, fmt.Sprint(jump))
	}
}

// Without a drift, one is said of 1 % of runs.
func TestDriftIsSeldomSaidWithoutOne(t *testing.T) {
	said := 0
	const runs = 2000
	for i := range runs {
		rates, names := ratesOf(uint64(1000+i), 12, steady, 100, 120, 150)
		r := runOf(rates, names...)
		r.Sheet.Seed = uint64(i)
		table := report.Analyse(&report.Dataset{Complete: true, Runs: []report.Run{r}}, report.Options{}).Tables[0]
		said += len(notesOf(table, "From")) + len(notesOf(table, "Throughput"))
	}
	t.Logf("%d of %d runs", said, runs)
	require.LessOrEqual(t, float64(said)/runs, 0.015)
}

// dependentRates are those of two treatments whose ratio keeps a share of the one before it.
func dependentRates(n int, share float64) map[string][]float64 {
	rng, rates := rand.New(rand.NewPCG(35, 7)), map[string][]float64{}
	x := rng.NormFloat64()
	for range n {
		channel := math.Exp(0.3 * rng.NormFloat64())
		rates["a"], rates["b"] = append(rates["a"], 100*channel), append(rates["b"], 110*channel*math.Exp(0.1*x))
		x = share*x + math.Sqrt(1-share*share)*rng.NormFloat64()
	}
	return rates
}

func TestDependenceIsSaid(t *testing.T) {
	dependent := notesOf(tableOf(runOf(dependentRates(30, 0.7), "a", "b")), "Ratios")
	require.Len(t, dependent, 1)
	require.Regexp(t, `^Ratios of B to A in neighbouring iterations are alike \(r = 0\.\d\d, p (< 0\.001|= 0\.00\d)\), so that 30 pairs count as about \d+: the interval of this comparison is too narrow, and its p too small\. With an interval that allows for this, the mean ratio is 1\.\d\d \(\d\.\d\d to \d\.\d\d at 95 %\)\.$`, dependent[0])
	require.Empty(t, notesOf(tableOf(runOf(dependentRates(30, 0), "a", "b")), "Ratios"), "independent")
	require.Empty(t, notesOf(tableOf(runOf(dependentRates(9, 0.99), "a", "b")), "Ratios"), "too few iterations")
	few := notesOf(tableOf(runOf(map[string][]float64{
		"a": {100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100, 100}, "b": {50, 51, 52, 53, 55, 100, 110, 150, 190, 195, 197, 199}}, "a", "b")), "Ratios")
	require.Len(t, few, 1)
	require.True(t, strings.HasSuffix(few[0], "and its p too small."), "no interval of fewer than two: %s", few[0])
}

// A mix is no treatment: it is in no test over treatments.
func TestMixesAreInNoNote(t *testing.T) {
	rates, names := ratesOf(1, 12, steady, 100, 120, 300)
	r := runOf(rates, names...)
	r.Sheet.Mixes = []runsheet.Mix{{Name: "c", Label: "A and B"}}
	r.Sheet.Treatments = r.Sheet.Treatments[:2]
	require.Empty(t, tableOf(r).Notes)
}
