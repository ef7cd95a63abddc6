package report

import (
	"math"
	"strings"
	"testing"
	"time"

	"linktrial/executor/journal"
	"linktrial/executor/runsheet"
)

func near(t *testing.T, what string, got *float64, want float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > 1e-6*math.Abs(want) {
		t.Errorf("%s: got %v, want %v", what, deref(got), want)
	}
}

func deref(x *float64) any {
	if x == nil {
		return nil
	}
	return *x
}

// trial makes a trial whose attempts took the given seconds for 10 KB; 0 is a time-out.
func trial(iteration int, treatment string, seconds ...float64) Trial {
	t := Trial{Iteration: iteration, Treatment: treatment}
	for i, s := range seconds {
		a := Attempt{Attempt: i + 1, SizeBytes: 10240, Verdict: journal.TimedOut, Reason: "transfer-timeout"}
		if s > 0 {
			e := time.Duration(s * 1e9)
			a = Attempt{Attempt: i + 1, SizeBytes: 10240, Verdict: journal.Succeeded, Verified: true, Elapsed: e, Ideal: (e + time.Second) / 2, CodedBound: (e + time.Second) * 4 / 5, Connect: time.Second}
		}
		t.Attempts, t.Verdict = append(t.Attempts, a), a.Verdict
	}
	return t
}

func TestSummarize(t *testing.T) {
	s := &runsheet.Sheet{Treatments: []runsheet.Treatment{{Name: "x", Missing: "no driver"}, {Name: "a", Label: "A"}, {Name: "b", Label: "B"}}}
	r := Run{ID: "r", State: "completed", Sheet: s, Trials: []Trial{
		trial(1, "a", 1), trial(1, "b", 2),
		trial(2, "a", 0, 2), trial(2, "b", 4),
		trial(3, "a", 4), trial(3, "b", 0, 0),
		trial(4, "a", 5), trial(4, "b", 8),
	}}
	tables := Summarize(&Dataset{Runs: []Run{r}})
	if len(tables) != 1 || len(tables[0].Rows) != 3 {
		t.Fatalf("tables %+v", tables)
	}
	table := tables[0]
	if table.Partial || table.Reference != "a" {
		t.Errorf("partial %v, reference %q", table.Partial, table.Reference)
	}
	x, a, b := table.Rows[0], table.Rows[1], table.Rows[2]
	if x.Missing != "no driver" || x.Trials != 0 || x.AverageKBps != nil || x.FailedShare != nil || x.Comparison != nil {
		t.Errorf("missing row %+v", x)
	}
	if a.Trials != 4 || a.Valid != 4 || a.Failed != 0 || a.ExtraAttempts != 1 || len(a.Failures) != 1 || a.Failures[0] != (Failure{journal.TimedOut, "transfer-timeout", 1}) {
		t.Errorf("counts of a: %+v", a)
	}
	// 10, 5, 2.5 and 2 KB/s.
	near(t, "average", a.AverageKBps, 4.875)
	near(t, "max", a.MaxKBps, 10)
	near(t, "min", a.MinKBps, 2)
	near(t, "median", a.MedianKBps, 3.75)
	near(t, "sd", a.SDKBps, math.Sqrt((5.125*5.125+0.125*0.125+2.375*2.375+2.875*2.875)/3))
	near(t, "share of ideal", a.ShareOfIdeal, 0.5)
	near(t, "share of the coded bound", a.ShareOfCodedBound, 0.8)
	// Ideal is ready once within the second that connecting took, and what the radios
	// can carry at best is not known here: there is no throughput of it.
	if a.IdealKBps != nil || a.CodedBoundKBps != nil {
		t.Errorf("throughputs of the bounds: %v, %v", a.IdealKBps, a.CodedBoundKBps)
	}
	near(t, "elapsed", a.ElapsedSeconds, 3)
	if a.MeanCI == nil || a.BootstrapCI == nil || a.MoreIterations == nil || a.Comparison != nil || a.Normalised != nil {
		t.Errorf("values of a: %+v", a)
	}
	if b.Trials != 4 || b.Valid != 3 || b.Failed != 1 || b.ExtraAttempts != 1 || len(b.Failures) != 1 || b.Failures[0].Attempts != 2 {
		t.Errorf("counts of b: %+v", b)
	}
	near(t, "failed share", b.FailedShare, 0.25)
	c := b.Comparison
	if c == nil || c.Pairs != 3 || c.Reference != "a" || !c.Exact {
		t.Fatalf("comparison %+v", c)
	}
	// Iterations 1, 2 and 4: 5, 2.5 and 1.25 KB/s against 10, 5 and 2.
	near(t, "difference", c.DifferenceKBps, -(5+2.5+0.75)/3)
	// The middle of the six means of two logarithms: between 0.5 and the root of 0.5·0.625.
	near(t, "ratio", c.Ratio, math.Sqrt(0.5*math.Sqrt(0.5*0.625)))
	if c.RatioCI != nil {
		t.Errorf("an interval %v of three pairs, of which no test refuses anything at 5 %%", *c.RatioCI)
	}
	near(t, "gain", c.GainPercent, 100*(8.0-14)/8)
	near(t, "P", c.P, 0.25)
	near(t, "rank-biserial", c.RankBiserial, -1)
}

// A trial that the apparatus, a mark or a person ended tells nothing of its protocol: it is
// not among the failed ones, and in no share of them.
func TestExcludedTrials(t *testing.T) {
	s := &runsheet.Sheet{Treatments: []runsheet.Treatment{{Name: "a", Label: "A"}}}
	last := func(iteration int, v journal.Verdict, reason string) Trial {
		x := trial(iteration, "a", 0)
		x.Attempts = append(x.Attempts, Attempt{Attempt: 2, Verdict: v, Reason: reason})
		x.Verdict = v
		return x
	}
	marked := trial(3, "a", 1)
	marked.Attempts[0].Verdict, marked.Attempts[0].Reason = journal.Invalid, "marked"
	skipped := Trial{Iteration: 5, Treatment: "a", Verdict: journal.Aborted}
	r := Run{ID: "r", State: "completed", Sheet: s, Trials: []Trial{
		trial(1, "a", 1), last(2, journal.Invalid, "server-down"), marked, last(4, journal.Aborted, journal.ReasonSkipped), skipped,
		trial(6, "a", 0), last(7, journal.Failed, "connect-refused"), trial(8, "a", 2),
	}}
	row := Summarize(&Dataset{Runs: []Run{r}})[0].Rows[0]
	if row.Trials != 8 || row.Valid != 2 || row.Failed != 2 || row.Excluded != 4 || row.NotEnded != 0 {
		t.Errorf("counts %+v", row)
	}
	near(t, "failed share", row.FailedShare, 0.5)
	if want := "2 of 8 trials failed, so that the average is of 2 of 4; 4 of 8 trials excluded; "; !strings.HasPrefix(row.Troubles(), want) {
		t.Errorf("%q, expected %q first", row.Troubles(), want)
	}
}

func TestWhatIsPartial(t *testing.T) {
	unverified := trial(1, "a", 3)
	unverified.Attempts[0].Verified = false
	for _, c := range []struct {
		name                 string
		state                string
		trials               []Trial
		valid, failed, waits int
		partial              bool
		failures             int
		noRows               bool
	}{
		{"completed", "completed", []Trial{trial(1, "a", 1)}, 1, 0, 0, false, 0, false},
		{"running", "running", []Trial{trial(1, "a", 1), {Iteration: 2, Treatment: "a"}}, 1, 0, 1, true, 0, false},
		{"an attempt is running", "running", []Trial{{Iteration: 2, Treatment: "a", Attempts: []Attempt{{Attempt: 1}}}}, 0, 0, 1, true, 0, false},
		{"aborted though nothing is open", "aborted", []Trial{trial(1, "a", 1)}, 1, 0, 0, true, 0, false},
		{"the server has not spoken yet", "collecting", []Trial{unverified}, 0, 0, 1, true, 0, false},
		{"the server never spoke", "completed", []Trial{unverified}, 0, 1, 0, false, 1, false},
		{"queued", "queued", nil, 0, 0, 0, true, 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := Summarize(&Dataset{Runs: []Run{{State: c.state, Trials: c.trials}}})[0]
			if table.Partial != c.partial {
				t.Errorf("partial %v", table.Partial)
			}
			if (table.PartialNote() != "") != c.partial {
				t.Errorf("said to be %q", table.PartialNote())
			}
			if c.noRows {
				if len(table.Rows) != 0 {
					t.Errorf("rows %+v", table.Rows)
				}
				return
			}
			r := table.Rows[0]
			if r.Valid != c.valid || r.Failed != c.failed || r.NotEnded != c.waits || len(r.Failures) != c.failures {
				t.Errorf("row %+v", r)
			}
			if r.Valid == 0 && (r.AverageKBps != nil || r.MeanCI != nil || r.ShareOfIdeal != nil || r.CodedBoundKBps != nil || r.MoreIterations != nil) {
				t.Errorf("values of nothing: %+v", r)
			}
		})
	}
}

func TestFewPairsAreNotCompared(t *testing.T) {
	r := Run{State: "completed", Trials: []Trial{
		trial(1, "a", 1), trial(1, "b", 2), trial(2, "a", 1), trial(2, "b", 2), trial(3, "a", 1), trial(4, "b", 1),
	}}
	if b := Summarize(&Dataset{Runs: []Run{r}})[0].Rows[1]; b.Comparison != nil || b.Valid != 3 {
		t.Errorf("two iterations in common were compared: %+v", b)
	}
}

func TestValuesAreRounded(t *testing.T) {
	if got := *Rounded(1.0 / 3); got != 0.333333333 {
		t.Errorf("got %v", got)
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if Rounded(x) != nil {
			t.Errorf("%v became a value", x)
		}
	}
	if math.Signbit(*Rounded(math.Copysign(0, -1))) {
		t.Error("negative zero")
	}
}

// Failures whose reasons differ in numbers alone are one in a row's remark, with the
// numbers of the first; names with digits tell them apart.
func TestFailuresThatAreAlike(t *testing.T) {
	row := Row{Failures: []Failure{
		{Verdict: journal.Invalid, Reason: "marked: foreign-traffic: 57.3 KiB at port 5003", Attempts: 1},
		{Verdict: journal.Invalid, Reason: "marked: foreign-traffic: 70 KiB at port 5003", Attempts: 2},
		{Verdict: journal.Failed, Reason: "reset", Attempts: 3},
		{Verdict: journal.Invalid, Reason: "marked: cable of radio1", Attempts: 1},
		{Verdict: journal.Invalid, Reason: "marked: cable of radio2", Attempts: 1},
	}}
	want := "8 attempts gave no value: 3× invalid (marked: foreign-traffic: 57.3 KiB at port 5003) (2 with other numbers), 3× failed (reset), 1× invalid (marked: cable of radio1), 1× invalid (marked: cable of radio2)"
	if got := row.Troubles(); got != want {
		t.Errorf("%q, expected %q", got, want)
	}
}
