package report_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
	"linktrial/orchestrator/report"
)

// runOf is a run of treatments with the throughputs of their iterations, KB/s; 0: failed.
func runOf(rates map[string][]float64, names ...string) report.Run {
	s := &runsheet.Sheet{}
	r := report.Run{ID: "r", State: "completed", Sheet: s}
	for _, name := range names {
		s.Treatments = append(s.Treatments, runsheet.Treatment{Name: name, Label: strings.ToUpper(name)})
		for k, kbps := range rates[name] {
			i := len(s.Trials)
			s.Trials = append(s.Trials, runsheet.Trial{Index: i, Iteration: k + 1, Treatment: name})
			a := report.Attempt{Attempt: 1, Verdict: journal.Failed}
			if kbps > 0 {
				a = report.Attempt{Attempt: 1, Verdict: journal.Succeeded, Verified: true, SizeBytes: 1 << 20, Elapsed: time.Duration(1024 / kbps * 1e9)}
			}
			r.Trials = append(r.Trials, report.Trial{Index: i, Iteration: k + 1, Treatment: name, Verdict: a.Verdict, Attempts: []report.Attempt{a}})
		}
	}
	return r
}

func conclusionOf(r report.Run) string {
	return report.Summarize(&report.Dataset{Complete: true, Runs: []report.Run{r}})[0].Conclusion
}

func TestConclusion(t *testing.T) {
	hundred := []float64{100, 100, 100, 100, 100, 100, 100, 100}
	for name, c := range map[string]struct {
		rates map[string][]float64
		want  string
	}{
		"decided": {map[string][]float64{"a": hundred, "b": {118, 119, 120, 121, 122, 123, 121, 120}},
			"B leads A by 20 % (+19 to +22 % at 95 %, Hodges–Lehmann, paired Wilcoxon, 8 iterations): decided (p = 0.008)."},
		"not decided": {map[string][]float64{"a": hundred, "b": {90, 95, 110, 112, 125, 130, 98, 140}},
			"B leads A by 11 % (−5.0 to +30 % at 95 %, Hodges–Lehmann, paired Wilcoxon, 8 iterations): not decided (p = 0.148); about 4 more iterations would be needed."},
		"too few for an interval": {map[string][]float64{"a": {100, 100, 100}, "b": {150, 151, 152}},
			"B leads A by 51 % (Hodges–Lehmann, paired Wilcoxon, no interval of 3 iterations): not decided (p = 0.250); about 3 more iterations would be needed."},
		"within noise": {map[string][]float64{"a": hundred, "b": {90, 95, 105, 110, 100, 104, 98, 101}},
			"B is within noise of A (+0.2 %, −5.1 to +5.4 % at 95 %, Hodges–Lehmann, paired Wilcoxon, 8 iterations): not decided (p = 1.000)."},
		"two pairs": {map[string][]float64{"a": {100, 100, 0}, "b": {150, 151, 152}},
			"B and A are not compared: 2 iterations have valid values of both, and a comparison takes 3."},
		"the slower of most iterations has the higher average": {map[string][]float64{"a": {100, 100, 100, 100, 100, 100, 100, 100}, "b": {97, 97, 97, 97, 97, 97, 97, 122}},
			"A leads B by 3.1 %, though its average is lower (−8.1 to +3.1 % at 95 %, Hodges–Lehmann, paired Wilcoxon, 8 iterations): not decided (p = 0.195); about 22 more iterations would be needed."},
		"the best of three against the next, corrected": {map[string][]float64{"a": hundred, "b": {118, 119, 120, 121, 122, 123, 121, 120}, "c": {130, 131, 132, 133, 134, 135, 131, 133}},
			"Of 3 treatments, C leads the next, B, by 10 % (+9.0 to +11 % at 95 %, Hodges–Lehmann, paired Wilcoxon, 8 iterations): decided (p = 0.023). Interval and p are corrected for the 3 pairs of treatments (Bonferroni)."},
		"one treatment":             {map[string][]float64{"a": hundred}, ""},
		"the other without a value": {map[string][]float64{"a": hundred, "b": {0, 0, 0}}, ""},
	} {
		if got := conclusionOf(runOf(c.rates, "a", "b", "c")); got != c.want {
			t.Errorf("%s:\n%s\n%s", name, got, c.want)
		}
	}
}

// Lists of campaigns have the conclusion in few words: the same treatments, difference and decision.
func TestLead(t *testing.T) {
	hundred := []float64{100, 100, 100, 100, 100, 100, 100, 100}
	for name, c := range map[string]struct {
		rates map[string][]float64
		want  report.Lead
	}{
		"decided":     {map[string][]float64{"a": hundred, "b": {118, 119, 120, 121, 122, 123, 121, 120}, "c": {130, 131, 132, 133, 134, 135, 131, 133}}, report.Lead{Text: "C leads B by 10 %: decided", Leader: "C", Decided: true}},
		"not decided": {map[string][]float64{"a": hundred, "b": {90, 95, 110, 112, 125, 130, 98, 140}}, report.Lead{Text: "B leads A by 11 %: not decided", Leader: "B"}},
		"noise":       {map[string][]float64{"a": hundred, "b": {90, 95, 105, 110, 100, 104, 98, 101}}, report.Lead{Text: "B is within noise of A"}},
		"too few":     {map[string][]float64{"a": {100, 100, 0}, "b": {150, 151, 152}}, report.Lead{Text: "B and A are not compared: 2 iterations have valid values of both, and a comparison takes 3"}},
		"one":         {map[string][]float64{"a": hundred}, report.Lead{}},
	} {
		r := runOf(c.rates, "a", "b", "c")
		if got := report.Summarize(&report.Dataset{Complete: true, Runs: []report.Run{r}})[0].Lead; got != c.want {
			t.Errorf("%s: %+v, expected %+v", name, got, c.want)
		}
	}
}

func TestConclusionOfARunUnderWay(t *testing.T) {
	r := runOf(map[string][]float64{"a": {100, 101, 102, 103}, "b": {200, 201, 203, 203}}, "a", "b")
	r.State = "running"
	if got := conclusionOf(r); !strings.HasPrefix(got, "So far: B leads A by 9") {
		t.Error(got)
	}
}

// A mix has the flows of several treatments in one trial: it is none of those compared.
func TestConclusionLeavesOutMixes(t *testing.T) {
	r := runOf(map[string][]float64{"a": {100, 101, 102}, "b": {200, 201, 203}, "both": {900, 901, 902}}, "a", "b", "both")
	r.Sheet.Treatments = r.Sheet.Treatments[:2]
	r.Sheet.Mixes = []runsheet.Mix{{Name: "both", Label: "BOTH"}}
	if got := conclusionOf(r); !strings.HasPrefix(got, "B leads A by ") {
		t.Error(got)
	}
}

// The sentence agrees with the row's comparison where there is only that one.
func TestConclusionAgreesWithTheTable(t *testing.T) {
	rates := map[string][]float64{"a": {100, 97, 104, 99, 105, 101, 95}, "b": {110, 112, 118, 104, 121, 115, 99}}
	table := report.Summarize(&report.Dataset{Complete: true, Runs: []report.Run{runOf(rates, "a", "b")}})[0]
	c := table.Rows[1].Comparison
	want := fmt.Sprintf("B leads A by %.0f %% (+%.1f to +%.0f %% at 95 %%", 100*(*c.Ratio-1), 100*(c.RatioCI.Low-1), 100*(c.RatioCI.High-1))
	if !strings.HasPrefix(table.Conclusion, want) || !strings.Contains(table.Conclusion, fmt.Sprintf("(p = %.3f)", *c.P)) {
		t.Errorf("%s\n%s, p %v", table.Conclusion, want, *c.P)
	}
}
